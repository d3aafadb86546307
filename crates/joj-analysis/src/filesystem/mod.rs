//! What joj knows of filesystems: where each keeps what is not data, and what such blocks are for.

pub mod ext4;
pub mod xfs;
pub mod btrfs;
pub mod nilfs2;
pub mod f2fs;
pub mod layout;
pub mod region;
pub mod class;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod samples;

use crate::filesystem::layout::{Extent, Layout, ReadAt};

/// Reads the layout of a filesystem of this `kind` (ext2, ext3, ext4, xfs, btrfs, f2fs, nilfs2); `None` for any other kind.
/// # Errors
/// The bytes cannot be read, or are not those of such a filesystem on such a device.
pub fn layout_of(kind: &str, device: Extent, bytes: &mut ReadAt<'_>) -> Result<Option<Layout>, String> {
    let layout = match kind {
        "ext2" | "ext3" | "ext4" => ext4::layout(device, bytes),
        "xfs" => xfs::layout(device, bytes),
        "btrfs" => btrfs::layout(device, bytes),
        "f2fs" => f2fs::layout(device, bytes),
        "nilfs2" => nilfs2::layout(device, bytes),
        _ => return Ok(None),
    };
    layout.map(Some)
}
