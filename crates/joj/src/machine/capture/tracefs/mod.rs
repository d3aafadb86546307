//! A capture by the kernel's trace events: what the events do not name is looked up beside them.
//!
//! ```text
//! instance -> buffer -> events -> spool
//!
//! capture      the whole capture
//! following    how the names of files follow what the watch saw, and when nobody knows them
//! files        which file an inode number stands for
//! sources      the filesystems whose files can be asked for
//! places       where a file lies that was there before the capture
//! name_changes when files got and lost their names
//! threads      which process a thread belongs to, and what it is called
//! volumes      the mounted filesystems whose files can be placed
//! buffer       an instance's per-processor buffers, read as pages
//! events       which of this kernel's events are switched on, and what is missed without the others
//! instance     a trace buffer of our own, which goes with us
//! ```

pub mod capture;
mod following;
mod files;
mod sources;
mod places;
mod name_changes;
mod threads;
mod volumes;
mod buffer;
mod events;
mod instance;
