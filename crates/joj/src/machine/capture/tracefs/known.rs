//! What is known of one file, and what it is called.

use crate::machine::capture::tracefs::name_changes::links::Links;
use crate::machine::files::file_handle::Handle;
use crate::machine::files::file_watch::Change;

/// What is known of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// `i_generation`, or a number other than those of the files that had its inode number before.
    pub generation: u32,
    /// Its last name, from the filesystem's root; a directory's ends with a slash.
    pub name: Option<String>,
    /// Its other names.
    pub links: Links,
    pub directory: bool,
    /// What it has in blocks is metadata: a directory's entries, a link's target, the value of an attribute.
    pub holds_metadata: bool,
    /// The watch saw it being created.
    pub created: bool,
    /// Its last name was removed.
    pub nameless: bool,
    /// Its number came into memory again: another file may have it.
    pub doubtful: bool,
    /// By which it is found.
    pub handle: Option<Handle>,
    /// It has a name that was not known for a while, and is to be asked for again.
    pub withheld: bool,
    /// True once its name was handed on, and when that was at the latest, if it was asked for.
    pub told: bool,
    pub told_ns: u64,
    /// True once its blocks were asked for, or all of them were seen when it got them.
    pub placed: bool,
}

impl Known {
    /// As the watch saw it, with this name.
    pub fn seen(change: &Change, path: &str) -> Self {
        Self {
            generation: change.generation,
            name: Some(named(path.to_owned(), change.directory)),
            links: Links::default(),
            directory: change.directory,
            holds_metadata: change.directory,
            created: change.created,
            nameless: false,
            doubtful: false,
            handle: Some(change.handle.clone()),
            withheld: false,
            told: false,
            told_ns: 0,
            placed: change.created,
        }
    }

    /// True where its name is to be handed on now.
    pub fn tell(&mut self, time_ns: u64) -> bool {
        let untold = self.name.is_some() && !std::mem::replace(&mut self.told, true);
        if untold {
            self.told_ns = time_ns;
        }
        untold
    }
}

/// A name as it is handed on.
pub fn named(mut path: String, is_directory: bool) -> String {
    if is_directory && !path.ends_with('/') {
        path.push('/');
    }
    path
}
