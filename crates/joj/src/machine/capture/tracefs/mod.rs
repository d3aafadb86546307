//! A capture by the kernel's trace events: what the events do not name is looked up beside them.
//!
//! ```text
//! instance -> buffer -> events -> spool
//!
//! capture      the whole capture
//! files        which file an inode number stands for
//! sources      the filesystems whose files can be asked for
//! links        the other names of a file that has several
//! places       where a file lies that was there before the capture
//! changes      when files got and lost their names, and which file was created under a number
//! file_names   names that files get and lose on the watched filesystems
//! threads      which process a thread belongs to, and what it is called
//! volumes      the mounted filesystems whose files can be placed
//! buffer       an instance's per-processor buffers, read as pages
//! events       which of this kernel's events are switched on, and what is missed without the others
//! instance     a trace buffer of our own, which goes with us
//! ```

pub mod capture;
mod files;
mod sources;
mod links;
mod places;
mod changes;
mod file_names;
mod threads;
mod volumes;
mod buffer;
mod events;
mod instance;
