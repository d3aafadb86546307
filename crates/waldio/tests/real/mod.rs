//! What the `real_*` tests share: SQLite libraries as users have them, children, and file systems to stand on.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub mod backup;
pub mod ordeal;
pub mod refusal;
pub mod chance;
pub mod child;
pub mod counting_disk;
pub mod crew;
pub mod fork;
pub mod heap;
pub mod lock_calls;
pub mod place;
pub mod promises;
pub mod seldom;
pub mod short_memory;
pub mod space;
pub mod sqlite;
pub mod sqlite_config;
pub mod sqlite_shim;
pub mod statements;
pub mod writers;
