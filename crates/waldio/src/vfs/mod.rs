//! SQLite's calls into us: the VFS, its two kinds of files, the status table. Top to bottom.

pub(crate) mod register_table;
pub(crate) mod status_table;
pub(crate) mod convert_function;
pub(crate) mod vfs_methods;
mod main_methods;
mod log_methods;
mod main_controls;
mod last_close;
mod main_handle;
mod embedding;
mod private_shm;
mod gated;
mod database_sync;
mod answers;
mod waiter;
pub(crate) mod registered;
