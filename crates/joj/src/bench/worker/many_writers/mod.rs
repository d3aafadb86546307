//! Many writers on one database.
//!
//! ```text
//! run       prepares the database, starts the writing processes, watches them, verifies
//! writers   one such process: threads that commit one INSERT after another
//! ```

pub mod run;
pub mod writers;
