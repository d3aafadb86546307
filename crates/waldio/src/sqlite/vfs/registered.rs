//! What belongs to one registration of our VFS.

use std::ffi::CStr;
use std::sync::Arc;

use blockio::disk::Disk;

use crate::ffi::api::Api;
use crate::ffi::base_vfs::BaseVfs;
use crate::options::Options;

/// What belongs to one registration with one SQLite library. Lives as long as the process.
pub(crate) struct Registered {
    pub(crate) api: Api,
    pub(crate) base: BaseVfs,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) inline_worker: bool,
    pub(crate) options: Options,
    /// Whether the log may be opened beside the base VFS: its files are plain files.
    pub(crate) base_is_plain: bool,
    pub(crate) name: &'static CStr,
    /// Whether another thread may call the base VFS for a connection: SQLite was neither built nor configured without mutexes.
    pub(crate) has_mutexes: bool,
}

impl Registered {
    pub(crate) fn name(&self) -> &'static str {
        self.name.to_str().unwrap_or("waldio")
    }

    /// Why logs cannot be opened beside the base VFS, if they cannot.
    pub(crate) fn base_is_strange(&self) -> Option<String> {
        let why = || format!("the VFS below is {}, whose files may not be plain files", self.base.name());
        (!self.base_is_plain).then(why)
    }

    /// Whether the VFS below lacks what keeps connections of the `embedded` layout and of SQLite's own apart: locks that
    /// others see, and a wal-index. Of SQLite's, "unix-none" has no locks and "unix-dotfile" no wal-index.
    pub(crate) fn base_cannot_embed(&self) -> bool {
        ["unix-none", "unix-dotfile"].contains(&self.base.name().as_str())
    }
}
