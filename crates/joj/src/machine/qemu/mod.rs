//! The emulated machine. `process` runs on the host, `guest_kernel` and `nbd_client` in the guest:
//!
//! ```text
//! guest_kernel     what a first process asks the kernel for: modules, mounts, power off
//! process          QEMU with a virtual clock, spoken to line by line
//! nbd_client       the kernel's side of an NBD connection: a block device out of a socket
//! opened_files     which files of a filesystem are opened
//! own_namespaces   mounts, IPC and host name of a thread's own
//! error            why there is no emulated machine, or its kernel refuses
//! ```

pub mod guest_kernel;
pub mod process;
pub mod nbd_client;
pub mod opened_files;
pub mod own_namespaces;
pub mod error;
