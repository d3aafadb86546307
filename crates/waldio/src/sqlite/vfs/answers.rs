//! What SQLite is told of what happened.

use std::ffi::c_int;

use crate::failure::Failure;
use crate::ffi::codes::{SQLITE_FULL, SQLITE_IOERR_FSYNC, SQLITE_IOERR_WRITE, SQLITE_OK};

/// A failure as SQLite's code: what failed, whichever call of SQLite's it was in; else the given code.
pub(super) fn code_of(failure: &Failure, otherwise: c_int) -> c_int {
    match failure {
        Failure::Full => SQLITE_FULL,
        Failure::Write(_) => SQLITE_IOERR_WRITE,
        Failure::Sync(_) | Failure::Poisoned(_) => SQLITE_IOERR_FSYNC,
        Failure::Io(_) => otherwise,
    }
}

/// A result as SQLite's code.
pub(super) fn answer(result: Result<(), Failure>, otherwise: c_int) -> c_int {
    result.map_or_else(|failure| code_of(&failure, otherwise), |()| SQLITE_OK)
}
