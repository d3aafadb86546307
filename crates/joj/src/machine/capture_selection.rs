//! Which part of what a machine does a capture shall see.

use joj_analysis::trace::event::DeviceNumber;

/// What to capture. Requests are chosen by device alone: a journal's thread writes for everybody.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// Whole disks whose requests are wanted; empty for all.
    pub devices: Vec<DeviceNumber>,
    /// The only process (Linux's tgid) whose sync calls, durable writes and locks are wanted; `None` for all.
    pub process: Option<u32>,
    /// Look into the blocks of a jbd2 log, to say how many bytes changed since each was logged last. Costs a copy of each.
    pub log_contents: bool,
}
