//! The bundled SQLite as the crash tests use it: the connection of the real tests, its values, its random source.

use std::ffi::c_int;
use std::ptr;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::library;
pub use super::library::{Library, SqlError, ffi};

/// A value of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value(String);

impl Value {
    /// The integer, 0 for anything else.
    pub fn int(&self) -> i64 {
        self.0.parse().unwrap_or(0)
    }

    /// The value as text.
    pub fn text(&self) -> String {
        self.0.clone()
    }
}

/// An open connection; closed when dropped.
pub struct Connection(library::Connection);

/// The source of random bytes is one for the whole process: who needs the same bytes again takes it alone.
static RANDOM: RwLock<()> = RwLock::new(());

/// Takes SQLite's random source alone and starts it from `seed`.
pub fn with_seed(seed: c_int) -> RwLockWriteGuard<'static, ()> {
    let guard = RANDOM.write().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: this control takes an int and a connection or null.
    unsafe {
        ffi::sqlite3_test_control(ffi::SQLITE_TESTCTRL_PRNG_SEED, seed, ptr::null_mut::<ffi::sqlite3>())
    };
    guard
}

/// Uses SQLite's random source beside others.
pub fn with_any_random() -> RwLockReadGuard<'static, ()> {
    RANDOM.read().unwrap_or_else(PoisonError::into_inner)
}

impl Connection {
    /// Opens `path` through the VFS `vfs`. It does not wait for locks: nobody would give them back meanwhile.
    pub fn open(path: &str, vfs: &str) -> Result<Connection, SqlError> {
        let connection = library::bundled().open_with(path, Some(vfs))?;
        connection.busy_timeout(0);
        Ok(Connection(connection))
    }

    /// Runs all statements of `sql` and drops their rows.
    pub fn exec(&self, sql: &str) -> Result<(), SqlError> {
        self.0.run(sql).1.map_or(Ok(()), Err)
    }

    /// Runs statements and returns their rows.
    pub fn query(&self, sql: &str) -> Result<Vec<Vec<Value>>, SqlError> {
        let (rows, error) = self.0.run(sql);
        let values = |row: library::Row| row.into_iter().map(Value).collect();
        error.map_or_else(|| Ok(rows.into_iter().map(values).collect()), Err)
    }

    /// Whether no transaction is open.
    pub fn is_autocommit(&self) -> bool {
        // SAFETY: an open connection of the bundled library.
        unsafe { ffi::sqlite3_get_autocommit(self.0.raw) != 0 }
    }

    /// Has a database that is about to be made reserve so much of each page.
    pub fn reserve_bytes(&self, bytes: u8) {
        self.0.reserve_bytes(bytes);
    }

    /// Closes; SQLite's last checkpoint may fail, which this does not tell.
    pub fn close(self) {}
}
