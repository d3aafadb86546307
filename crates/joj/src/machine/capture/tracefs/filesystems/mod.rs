//! What is known of each mounted filesystem.
//!
//! ```text
//! sources    the filesystems whose files can be asked for, and what each tells by itself
//! places     where a file lies that was there before the capture
//! volumes    the mounted filesystems whose files can be placed
//! subvolumes which of Btrfs's subvolumes a file is of
//! ```

pub mod sources;
pub mod places;
pub mod volumes;
pub mod subvolumes;
