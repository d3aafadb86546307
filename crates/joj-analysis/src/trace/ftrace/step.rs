//! What records stand for.

use crate::trace::event::{Event, FileKey};
use crate::trace::ftrace::bracket::Bracket;
use crate::trace::ftrace::record::{Command, InodeKind, NameChange};
use crate::trace::texts::Texts;

/// What comes out: events, of which generation, process and command are still to be filled in, and what helps with that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// An event, and its thread's name where the record had it.
    Event(Event, Option<Command>),
    /// An inode's number belongs to a new file.
    Created {
        /// The file. Its generation is 0 until it is filled in.
        file: FileKey,
        kind: InodeKind,
    },
    /// The file is gone.
    Ended(FileKey),
    /// An inode was brought into memory, for another reason than that a thread creates a file.
    Fetched(FileKey),
    /// A call of a thread that changes names of files has succeeded.
    NamesChanged {
        /// The thread in which it happened.
        thread: u32,
        change: NameChange,
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

/// Whom to ask for the file behind a thread's descriptor, and whom to hand steps to.
pub struct Surroundings<'a> {
    /// Names of calls go there.
    pub texts: &'a mut Texts,
    /// (thread, descriptor, whether a record names the file of such a call) to a file, generation included, or to [`FileKey::NONE`].
    pub ask: &'a mut dyn FnMut(u32, u32, bool) -> FileKey,
    /// Takes the steps; nearly in the order of their times.
    pub sink: &'a mut dyn FnMut(Step),
}

impl std::fmt::Debug for Surroundings<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Surroundings").finish_non_exhaustive()
    }
}

impl Surroundings<'_> {
    pub(super) fn event(&mut self, event: Event, command: Option<Command>) {
        (self.sink)(Step::Event(event, command));
    }

    /// A thread was made: one more of the process whose event this is, or a process of its own.
    pub(super) fn made(&mut self, forked: Event, new: u32, same_process: bool, command: Command) {
        let of = same_process.then_some(forked.thread);
        (self.sink)(Step::NewThread { thread: new, of, command });
        if !same_process {
            self.event(Event { detail: i64::from(new), ..forked }, None);
        }
    }

    /// Hands the first event of what this thread is in on, with the file behind its descriptor where it has one.
    pub(super) fn tell(&mut self, thread: u32, bracket: &mut Bracket) {
        self.look_up(thread, bracket);
        self.tell_as_it_is(bracket);
    }

    /// Asks for the file of what this thread is in.
    pub(super) fn look_up(&mut self, thread: u32, bracket: &mut Bracket) {
        if let Some(descriptor) = bracket.descriptor {
            bracket.begin.file = (self.ask)(thread, descriptor, bracket.is_named);
        }
    }

    /// The same as [`Surroundings::tell`], and asks nobody.
    pub(super) fn tell_as_it_is(&mut self, bracket: &mut Bracket) {
        bracket.told = true;
        self.event(bracket.begin, None);
    }
}
