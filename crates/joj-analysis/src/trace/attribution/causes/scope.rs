//! How much a sync call makes durable.

use crate::trace::event::Event;
use crate::trace::texts::Texts;

/// What a call is for. What a kernel thread writes is for the narrowest that it can be for: a call for a file waits for that
/// file at least, while one for all may be busy elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// A file.
    File,
    /// A filesystem: syncfs.
    Filesystem,
    /// Every filesystem: sync. So is a call of which nobody knows the file.
    All,
}

impl Scope {
    /// That of a call which begins.
    pub fn of(event: &Event, texts: &Texts) -> Self {
        match texts.get(event.name) {
            "syncfs" => Self::Filesystem,
            // It asks for nothing but its file's pages, also where that is not known.
            "sync_file_range" => Self::File,
            _ if event.file.is_some() => Self::File,
            _ => Self::All,
        }
    }
}
