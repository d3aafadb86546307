//! Disks: which there are, and the bytes on them that say whose blocks are whose.

pub mod device_bytes;
pub(in crate::machine) mod btrfs_chunks;
pub(in crate::machine) mod btrfs_tree;
pub(in crate::machine) mod device_base;
pub mod disks;
