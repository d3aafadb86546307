//! Bugs that are planted in waldio, for the whole process: one at a time, in a program of their own.
//!
//! alone         one connection;  group  several that share a flush
//! growth_race   space that is reserved in the background, without a bug as well

use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg(feature = "planted-bugs")]
mod alone;
#[cfg(feature = "planted-bugs")]
mod group;
mod growth_race;

#[path = "../support/mod.rs"]
mod support;

static ONE_BUG: Mutex<()> = Mutex::new(());

/// As long as a test has it, no other test plants a bug.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    ONE_BUG.lock().unwrap_or_else(PoisonError::into_inner)
}
