//! What runs in the emulated machine, as its first process.

pub mod agent;
mod crash;
mod recording;
mod measure;
mod volume;
mod emulated;
mod error;
