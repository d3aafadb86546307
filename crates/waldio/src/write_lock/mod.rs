//! Who writes next. Top to bottom:
//!
//! ```text
//! lock_queue          connections of this process wait for the write lock; whoever gives it back wakes the next
//! queue_state         decides who that is, and who may pass
//! shared_lock_queue   the same between processes, in a page they share
//! busy_timeout        the naps of SQLite's busy handler, and when they are used up
//! ```

pub(crate) mod lock_queue;
pub(crate) mod shared_lock_queue;
pub(crate) mod queue_state;
pub(crate) mod busy_timeout;
