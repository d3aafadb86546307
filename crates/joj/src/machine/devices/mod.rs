//! Disks: which there are, and the bytes on them that say whose blocks are whose.
//!
//! ```text
//! device_bytes   bytes of a block device, for who reads a filesystem's own description
//! btrfs_chunks   where Btrfs's addresses lie on its disks;  btrfs_tree: items of its trees
//! device_base    which whole disk a device is part of, and where it begins there
//! disks          the disks of this machine and their partitions, as sysfs lists them
//! ```

pub mod device_bytes;
pub(in crate::machine) mod btrfs_chunks;
pub(in crate::machine) mod btrfs_tree;
pub(in crate::machine) mod device_base;
pub mod disks;
