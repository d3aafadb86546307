//! `joj device`: what a disk does over its addresses, and the emulated devices.
//!
//! ```text
//! command   from the options to the exit code
//! probe     `joj device probe`: a directory's disk, measured over growing ranges
//! models    the emulated devices, and what the model makes of them
//! ```

pub mod command;
pub mod probe;
pub mod models;
