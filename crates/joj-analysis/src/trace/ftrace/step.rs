//! What records stand for.

use crate::trace::event::{Event, FileKey};
use crate::trace::ftrace::record::Command;

/// What comes out: events, of which generation, process and command are still to be filled in, and what helps with that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// An event, and its thread's name where the record had it.
    Event(Event, Option<Command>),
    /// An inode's number belongs to a new file.
    Created {
        /// The file. Its generation is 0 until it is filled in.
        file: FileKey,
        /// True for a directory.
        directory: bool,
    },
    /// The file is gone.
    Ended(FileKey),
    /// A call of a thread that removes a name, or gives a file another one, has succeeded.
    NamesChanged {
        /// The thread in which it happened.
        thread: u32,
        /// True for a removal.
        removed: bool,
    },
    /// A new thread.
    NewThread {
        thread: u32,
        /// The thread that made it, where both belong to one process.
        of: Option<u32>,
        command: Command,
    },
    /// A thread has another name.
    Renamed { thread: u32, command: Command },
}
