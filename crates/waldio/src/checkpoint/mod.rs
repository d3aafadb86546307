//! Copying the log into the database while others write. Top to bottom:
//!
//! ```text
//! barrier       keeps new transactions out for the moment in which the log begins anew
//! reset_guard   a checkpoint whose log was begun anew under it copies nothing more
//! ```

pub(crate) mod barrier;
pub(crate) mod reset_guard;
