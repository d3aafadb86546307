//! What joj has to know of a filesystem: the columns of the table whose rows are the files beside it.

use crate::filesystem::layout::{Extent, Layout, ReadAt};

/// One filesystem.
#[derive(Debug)]
pub struct Facts {
    /// Its name in /proc/filesystems and in plans; `mkfs.NAME` makes it.
    pub name: &'static str,
    /// Older ones under its driver, as a mount names them.
    pub older_names: &'static [&'static str],
    /// Reads the layout of one of its devices.
    /// # Errors
    /// The bytes cannot be read, or are not those of such a filesystem on such a device.
    pub layout: fn(Extent, &mut ReadAt<'_>) -> Result<Layout, String>,
}
