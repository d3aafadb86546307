//! The emulated machine: QEMU's process, the guest's kernel, and the kernel's NBD client in the guest.

pub mod guest_kernel;
pub mod process;
pub mod nbd_client;
pub mod error;
