//! The real disk. Top to bottom:
//!
//! ```text
//! disk           files by their names: opened, removed, directories synced
//! file           an open file: reads and writes, buffered and direct, and its syncs
//! medium         what the medium has of a file, beside what the page cache shows
//! whole          reads and writes of whole ranges, which the kernel may do in parts
//! sync_turn      turns for the syncs of one file on F2FS, over threads and processes
//! descriptors    files get descriptors above 2, which are the standard streams'
//! device_facts   what the kernel tells of a file's file system and device
//! page_cache     whether the page cache holds a range of a file, without a read
//! ```

pub mod disk;
mod file;
mod medium;
mod whole;
mod sync_turn;
pub mod descriptors;
mod device_facts;
mod page_cache;
