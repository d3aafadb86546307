//! What is known of each mounted filesystem.
//!
//! ```text
//! volumes  the mounted filesystems whose files can be placed
//! sources  those whose files can be asked for, and what each tells by itself
//! places   where a file lies that was there before the capture
//! ```

pub mod volumes;
pub mod sources;
pub mod places;
