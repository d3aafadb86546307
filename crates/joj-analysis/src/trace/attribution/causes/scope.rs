//! How much a sync call makes durable.

use crate::trace::event::Event;
use crate::trace::texts::Texts;

/// What a call is for. What a kernel thread writes stands with the narrowest call that may wait for it. A call for a file waits for
/// that file at least, while one for all may be busy with another filesystem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// A file.
    File,
    /// A filesystem: syncfs.
    Filesystem,
    /// Every filesystem: sync. So is a call whose file is not known.
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
