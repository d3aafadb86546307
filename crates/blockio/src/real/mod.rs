//! The real disk. Top to bottom: the disk, an open file, syncs that take turns, descriptors above 2, what the device can, the page cache.

pub mod disk;
mod file;
mod sync_turn;
pub mod descriptors;
mod device_facts;
mod page_cache;
