//! What each run of a program begins with: a copy of the directory in which joj stands.
//!
//! ```text
//! place        where a copy lies: some directories below one of joj's own
//! files        the files below a directory, copied into it
//! attributes   their extended attributes and ACLs
//! error        why there is none
//! ```

pub mod place;
pub mod files;
pub mod attributes;
pub mod error;
