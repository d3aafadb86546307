//! When files got and lost their names.
//!
//! ```text
//! changes      which call made which change
//! creations    which file was created under a number
//! doubts       files whose names are not known for a while
//! watcher      a thread that looks at once when a name comes or goes
//! file_names   names that files get and lose on the watched filesystems
//! links        the other names of a file that has several
//! working_names  those that overlayfs makes for a moment
//! ```

pub mod changes;
pub mod creations;
pub mod doubts;
pub mod watcher;
pub mod file_names;
pub mod links;
pub mod working_names;
