//! No panic crosses the border to C, and no thread is cancelled on our side of it.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::kernel::cancellation::Uncancelled;

/// Runs `body`; a panic becomes `code` (docs: an assert of ours is a bug of ours, and SQLite reports it as an
/// I/O error). The message went to stderr through the panic hook. The thread is not cancelled meanwhile.
pub(crate) fn code_or<F: FnOnce() -> c_int>(code: c_int, body: F) -> c_int {
    value_or(code, body)
}

/// As [`code_or`], for calls that return something else.
pub(crate) fn value_or<T, F: FnOnce() -> T>(otherwise: T, body: F) -> T {
    let _uncancelled = Uncancelled::begin();
    // Unwind safety: every structure that a panic could leave half changed sits behind a mutex, which the panic
    // poisons, and a poisoned mutex is answered with an I/O error (`connection`).
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ffi::codes::SQLITE_IOERR;

    #[test]
    fn a_panic_becomes_an_io_error() {
        assert_eq!(code_or(SQLITE_IOERR, || panic!("planted")), SQLITE_IOERR);
        assert_eq!(code_or(SQLITE_IOERR, || 0), 0);
    }
}
