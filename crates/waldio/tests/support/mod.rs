//! What the crash tests share: a simulated computer, workloads, and the judgement of what recovers.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod group_plan;
pub mod group_faults;
pub mod group;
pub mod flushes;
pub mod acts;
pub mod actor;
pub mod turns;
pub mod plan;
pub mod explore;
pub mod workload;
pub mod history;
pub mod machine;
pub mod hooked_disk;
pub mod watch_vfs;
pub mod sqlite_waldio;
#[path = "../real/sqlite_shim.rs"]
#[allow(clippy::unwrap_used, reason = "as below")]
pub mod sqlite_shim;
pub mod sqlite;
#[path = "../real/sqlite.rs"]
#[allow(clippy::unwrap_used, reason = "it belongs to the real tests, which allow it as a whole")]
pub mod library;
#[path = "../real/sqlite_config.rs"]
pub mod sqlite_config;
pub mod sim_vfs;
pub mod sim_host;
pub mod sim_locks;
