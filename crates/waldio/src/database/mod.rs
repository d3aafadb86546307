//! One database in this process: what its connections share. Top to bottom:
//!
//! ```text
//! shared            options, queue, barrier, threads; opens the log
//! old_spare         removes what older versions left beside a closed database
//! super_journal     transactions over several databases
//! synced_database   how much of the database file is on the medium
//! ```

mod shared;
mod old_spare;
pub(crate) mod super_journal;
pub(crate) mod synced_database;

pub use shared::{Database, Helpers};
