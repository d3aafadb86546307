//! A capture by the kernel's trace events: what the events do not name is looked up beside them.
//!
//! ```text
//! instance -> buffer -> events -> spool
//!
//! capture      the whole capture
//! following    how the names of files follow what the watch saw, and when nobody knows them
//! files        which file an inode number stands for
//! known        what is known of one file
//! name_changes when files got and lost their names
//! threads      which process a thread belongs to, and what it is called
//! buffer       an instance's per-processor buffers, read as pages
//! events       which of this kernel's events are switched on, and what is missed without the others
//! filesystems  what is known of each mounted filesystem
//! instance     a trace buffer of our own, which goes with us
//! ```

pub mod capture;
mod following;
mod files;
mod known;
mod name_changes;
mod threads;
mod buffer;
mod events;
mod filesystems;
mod instance;
