//! Which part of what a machine does a capture shall see.

use joj_analysis::trace::event::DeviceNumber;

/// What to capture. Requests are chosen by device alone, and calls are everybody's: a journal's thread writes for all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// Whole disks whose requests are wanted; empty for all.
    pub devices: Vec<DeviceNumber>,
    /// Kinds of the filesystems on these disks: `ext4`, `xfs`, ..
    pub kinds: Vec<String>,
    /// A process whose open files shall be known from the start.
    pub open_files_of: Option<u32>,
    /// Look into the blocks of a jbd2 log, to say how many bytes changed since each was logged last. Costs a copy of each.
    pub log_contents: bool,
}
