//! What a guest boots from: packages (Debian's kernel) + libraries (this machine's) -> archive.
//!
//! ```text
//! archive          the archive that it boots from: joj, libraries, programs, kernel modules
//! libraries        the shared libraries that a program needs
//! packages         Debian's kernel and mkfs programs, fetched once with apt and kept
//! kernel_modules   which modules the guest needs, in the order in which they are loaded
//! error            why one of these cannot be had
//! ```

pub mod archive;
pub mod libraries;
pub mod packages;
mod kernel_modules;
pub mod error;
