//! `pthread_cancel` of a thread in the middle of our work waits until the next statement begins.
//!
//! The C library ends a cancelled thread in its next system call, and unwinds its stack. Rust frames cannot be unwound so:
//! the process would abort, or keep locks for ever. A thread may also ask to be cancelled at any instruction
//! (`PTHREAD_CANCEL_ASYNCHRONOUS`). It would end at the end of a call of ours, still in a Rust frame. So from its first call on
//! it is cancelled at cancellation points alone. Source: pthreads(7), "Cancellation points"; pthread_setcancelstate(3).

use std::ffi::c_int;
use std::marker::PhantomData;

/// Android's C library has no cancellation.
#[cfg(not(target_os = "android"))]
mod state {
    use std::ffi::c_int;

    /// The same in glibc, musl and uclibc, as the next one.
    pub(super) const DISABLE: c_int = 1;
    const DEFERRED: c_int = 0;

    unsafe extern "C" {
        safe fn pthread_setcancelstate(state: c_int, before_out: &mut c_int) -> c_int;
        safe fn pthread_setcanceltype(kind: c_int, before_out: &mut c_int) -> c_int;
    }
    unsafe extern "C-unwind" {
        pub(super) safe fn pthread_testcancel();
    }

    /// Sets it for this thread, and says what it was.
    pub(super) fn set(state: c_int) -> c_int {
        let mut before = DISABLE;
        pthread_setcancelstate(state, &mut before);
        before
    }

    /// From now on, this thread is not cancelled but at cancellation points.
    pub(super) fn defer() {
        let mut before = DEFERRED;
        pthread_setcanceltype(DEFERRED, &mut before);
    }

    pub(super) fn point() {
        pthread_testcancel();
    }
}

#[cfg(target_os = "android")]
mod state {
    use std::ffi::c_int;

    pub(super) const DISABLE: c_int = 1;

    pub(super) fn set(_: c_int) -> c_int {
        DISABLE
    }

    pub(super) fn defer() {}

    pub(super) fn point() {}
}

/// A cancelled thread ends here. To be called from `extern "C-unwind"` functions alone that have nothing to drop, while their
/// connection has no lock: SQLite's mutex of that connection stays locked, as where stock is cancelled.
pub(crate) fn point() {
    state::point();
}

/// While it lives, this thread is not cancelled. What was asked for meanwhile comes at the next cancellation point after it.
pub(crate) struct Uncancelled {
    before: c_int,
    /// The state is the thread's: the value stays on it.
    _thread: PhantomData<*const ()>,
}

impl Uncancelled {
    /// Costs three stores to the thread's own memory; within another, too.
    pub(crate) fn begin() -> Uncancelled {
        let before = state::set(state::DISABLE);
        state::defer();
        Uncancelled { before, _thread: PhantomData }
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        state::set(self.before);
    }
}
