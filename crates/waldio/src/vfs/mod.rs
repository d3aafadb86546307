//! SQLite's calls into us: the VFS, its two kinds of files, the status table. Top to bottom.

pub(crate) mod register_table;
pub(crate) mod status_table;
pub(crate) mod vfs_methods;
mod main_methods;
mod gated;
mod log_methods;
mod waiter;
pub(crate) mod registered;
