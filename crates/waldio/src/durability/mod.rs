//! What of the log is on the medium, and who flushes it. Top to bottom:
//!
//! ```text
//! delayed_flush    waldio_group: commits that do not wait, and the thread that flushes for them
//! growth           the thread that reserves log space ahead of need
//! log_session      one log that connections of this process have open
//! reserved_space   the space ahead of a log's frames: how much, whether more is wanted
//! persist_choice   flush, or durable writes, and how the log is filled
//! flush            the one place that flushes a log, and that poisons it
//! group_commit     commits that share a flush: numbers, the durable mark, who flushes
//! oldest_commit    since when the oldest commit that no flush covers has waited
//! durable_reads    readers that wait until what they see is durable
//! ```

pub(crate) mod delayed_flush;
pub(crate) mod growth;
pub(crate) mod log_session;
pub(crate) mod reserved_space;
mod persist_choice;
pub(crate) mod flush;
pub(crate) mod group_commit;
mod oldest_commit;
pub(crate) mod durable_reads;
