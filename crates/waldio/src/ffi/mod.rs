//! The border to C: SQLite's structures, our calls into it, its shared memory. Top to bottom.

#[cfg_attr(
    feature = "static-link",
    allow(dead_code, reason = "a program that links waldio has its own allocator")
)]
pub(crate) mod memory;
pub mod kernel;
pub(crate) mod sync_observer;
pub(crate) mod guard;
pub mod wal_index;
pub(crate) mod base_vfs;
#[cfg(feature = "static-link")]
pub(crate) mod static_table;
pub(crate) mod own_connection;
pub mod api;
pub mod types;
pub mod codes;
