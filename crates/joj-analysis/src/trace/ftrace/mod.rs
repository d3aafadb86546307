//! The kernel's own trace buffers (tracefs): binary pages and the text that describes them, read into events.
//!
//! ```text
//! format text -> [`format`]: where each field lies ----------+
//! page bytes  -> [`page`]: time and bytes of each record --> [`decoder`] -> [`record`] -> [`assembler`] -> events
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
pub mod rwbs;
pub mod page;
pub mod format;
pub mod error;
