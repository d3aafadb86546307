//! Files whose writes and syncs are what is measured.
//!
//! ```text
//! limit_file    a file like the best log there could be: the limit for a commit
//! record_file   a file of records, written and synced in each of the ways that there are
//! ```

pub mod limit_file;
pub mod record_file;
