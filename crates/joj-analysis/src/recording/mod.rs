//! Recordings: which calls programs made on their files, and what a replay needs to know of them.
//!
//! ```text
//! strace | MobiGen -> import -> Recording -> hidden_names -> saved;  read -> compat -> file_tree, order -> replay
//!
//! whatif              configurations that a program is seen in, what they cost, and what to make of it
//! lab_result          what came of a recording on emulated devices
//! page_transactions   the commits of SQLite databases, and the pages that each wrote
//! outcome             what came of a replay, in numbers
//! import              recordings made of other programs' text
//! system_calls        what system calls mean for files: descriptors, processes, paths
//! compat              a MobiGen script as Mobibench's own replayer reads it
//! order               which calls each call waits for
//! failures            calls on names that failed, and whether they fail in a replay
//! file_tree           the files before the first call and after the last, as the calls imply them
//! tree_entries        what names of a tree stand for
//! blocks              what of a file takes room
//! hidden_names        hashes in the place of names
//! call                one system call
//! flags               flags and errors by their names
//! paths               paths as the kernel takes them
//! ```

pub mod whatif;
pub mod lab_result;
pub mod page_transactions;
pub mod outcome;
pub mod import;
pub mod system_calls;
pub mod compat;
pub mod order;
pub mod failures;
pub mod file_tree;
mod tree_entries;
mod blocks;
pub mod hidden_names;
pub mod call;
pub mod flags;
pub mod paths;

use crate::recording::call::RecordedCall;
use crate::trace::header::Header;
use crate::trace::texts::Texts;

/// Calls in the order in which they began, with their names and what the recording says of itself.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    /// The head of the saved trace.
    pub header: Header,
    /// The calls.
    pub calls: Vec<RecordedCall>,
    /// Their names.
    pub texts: Texts,
}
