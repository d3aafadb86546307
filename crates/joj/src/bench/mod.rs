//! `joj bench`: SQLite's journal modes, waldio, and the disk's own limit, measured side by side.
//!
//! ```text
//! command -> experiments, one file each -> experiment: rounds of runs -> session -> ask -> worker
//!
//! command       from the options to the exit code;  error: why there is no result
//! experiments   what can be measured, one file each
//! experiment    what they have in common: rounds, and the order of rows in them
//! disk_limits   the disk without SQLite, measured beside the rows
//! session       what every run needs: the place, the workers, the builds
//! builds        the SQLite builds and the extension, found and asked who they are
//! conditions    the machine and the place of a result
//! progress      what is going on, on standard error;  forecast: how long runs will take
//! ask           tasks to workers, and their answers
//! worker        the half that is measured
//! ```
//!
//! The upper half asks, the lower half, from `worker` on, answers in a process of its own. A file uses only files
//! below it.

pub mod command;
pub mod error;
pub mod experiments;
pub mod experiment;
pub mod disk_limits;
pub mod session;
pub mod builds;
pub mod conditions;
pub mod progress;
pub mod forecast;
pub mod ask;
pub mod worker;
