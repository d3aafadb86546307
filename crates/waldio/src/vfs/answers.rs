//! What SQLite is told of what happened.

use std::ffi::c_int;

use crate::failure::Failure;
use crate::ffi::codes::{SQLITE_FULL, SQLITE_OK};

/// A failure as SQLite's code: FULL for a full disk, else the given code of the I/O error family.
pub(super) fn code_of(failure: &Failure, otherwise: c_int) -> c_int {
    match failure {
        Failure::Full => SQLITE_FULL,
        Failure::Io(_) | Failure::Poisoned(_) => otherwise,
    }
}

/// A result as SQLite's code.
pub(super) fn answer(result: Result<(), Failure>, otherwise: c_int) -> c_int {
    result.map_or_else(|failure| code_of(&failure, otherwise), |()| SQLITE_OK)
}
