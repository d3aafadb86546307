//! What a guest boots from: packages (Debian's kernel) + libraries (this machine's) -> archive.

pub mod archive;
pub mod libraries;
pub mod packages;
mod kernel_modules;
pub mod error;
