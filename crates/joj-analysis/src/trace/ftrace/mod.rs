//! The kernel's own trace buffers (tracefs): binary pages and the text that describes them, read into events.
//!
//! ```text
//! format text -> format: where each field lies ----------+
//! page bytes  -> page: time and bytes of each record --> decoder -> record -> assembler -> events
//!
//! assembler   records become events: a call gets its file, a mapping its sectors
//! step        what comes out: events, and what later names their files and threads
//! volume      where a filesystem's own addresses lie on disks
//! decoder     from a record's bytes to a record, by the formats of this kernel
//! known       an event that we can read: its names, its fields
//! bracket     a sync or durable write that is under way in a thread
//! record      one record, whatever the kernel's version calls its fields
//! inode_number  which file of Btrfs's subvolumes a number is
//! rwbs        the letters in which block events say what a request does
//! page        a page of a ring buffer;  format: what tracefs says of a record's bytes
//! error       what is wrong with what a kernel says
//! ```
//!
//! Everything here gets bytes from a kernel, or from whoever says so: no input may make it panic.

pub mod assembler;
pub mod step;
pub mod volume;
pub mod decoder;
pub mod known;
mod bracket;
pub mod record;
pub mod inode_number;
pub mod rwbs;
pub mod page;
pub mod format;
pub mod error;
