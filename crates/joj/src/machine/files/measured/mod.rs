//! Files whose writes and syncs are what is measured.
//!
//! ```text
//! limit_file    a file like the best log there could be: the limit for a commit
//! record_file   a file of records, written and synced in each of the ways that there are
//! polled_ring   io_uring for one record at a time, polled for
//! ```

pub mod limit_file;
pub mod record_file;
pub mod polled_ring;
