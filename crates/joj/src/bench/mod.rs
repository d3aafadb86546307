//! `joj bench`: SQLite's journal modes, waldio, and the disk's own limit, measured side by side.
//!
//! The worker's half: task, workload, worker, database_run. The other half, which asks: plan, forecast, ask, builds,
//! session. What it shows: text, table.

pub mod task;

pub mod workload;

pub mod worker;

pub mod database_run;

pub mod plan;

pub mod forecast;

pub mod text;

pub mod progress;

pub mod ask;

pub mod builds;

pub mod session;

pub mod table;

pub mod command;
