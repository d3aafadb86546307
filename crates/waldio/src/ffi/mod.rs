//! The border to C: SQLite's structures, its calls into us and ours into it. All `unsafe` of waldio is below here.

pub mod api;
pub mod codes;
pub mod types;
pub mod wal_index;

pub(crate) mod base_vfs;
pub(crate) mod guard;
pub(crate) mod leaked;
pub(crate) mod log_methods;
pub(crate) mod main_methods;
pub(crate) mod register_table;
pub(crate) mod signals;
pub(crate) mod status_table;
pub(crate) mod sync_observer;
pub(crate) mod vfs_methods;
#[cfg(feature = "static-link")]
pub(crate) mod static_table;
