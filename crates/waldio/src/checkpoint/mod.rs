//! Copying the log into the database beside writers. Top to bottom:
//!
//! ```text
//! worker        a thread that enlarges the log and copies it, when asked
//! barrier       keeps new transactions out for the moment in which the log begins anew
//! reset_guard   a checkpoint whose log was begun anew under it copies nothing more
//! ```

pub(crate) mod worker;
pub(crate) mod barrier;
pub(crate) mod reset_guard;
