//! Which connection a thread's `xSleep` is for: SQLite passes no file there.
//!
//! The busy handler runs in the thread that was told BUSY, right after it. A thread that never calls it and sleeps
//! for another reason is woken early at most, when the lock that it was refused is free for it.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use crate::connection::Connection;

thread_local! {
    static REFUSED: RefCell<Weak<Connection>> = const { RefCell::new(Weak::new()) };
}

/// This thread was refused the write lock of `connection`'s database.
pub(crate) fn refused(connection: &Arc<Connection>) {
    // A thread that is ending has no such memory any more, and no busy handler either.
    let _ = REFUSED.try_with(|refused| *refused.borrow_mut() = Arc::downgrade(connection));
}

/// This thread got it, or is done with it.
pub(crate) fn settled() {
    let _ = REFUSED.try_with(|refused| *refused.borrow_mut() = Weak::new());
}

/// The connection that this thread waits for, if any: once for each refusal, because what follows the busy
/// handler's nap may sleep too, for the readers' locks.
pub(crate) fn take() -> Option<Arc<Connection>> {
    REFUSED.try_with(|refused| refused.take().upgrade()).ok().flatten()
}
