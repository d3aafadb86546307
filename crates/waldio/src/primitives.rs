//! What threads wait on: the standard library's, in one place, so that a model checker can put its own there.

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use std::thread;
