//! Threads, locks and time. Top to bottom:
//!
//! ```text
//! timer         a thread that does things when they are due
//! lazy_thread   a thread that starts with its first order
//! primitives    locks, atomics and clocks of the system, or of the model that tests them
//! origin        which process made a value: a child of fork has none of its parent's threads
//! ```

pub(crate) mod timer;
pub(crate) mod lazy_thread;
pub(crate) mod primitives;
pub(crate) mod origin;
