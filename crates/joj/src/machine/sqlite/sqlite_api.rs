//! SQLite's C functions as pointers: those inside this program, or those of any shared library.
//!
//! Libraries are opened with RTLD_LOCAL, so several SQLites of one process do not see each other.

use std::error::Error as _;
use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::ptr;

use libloading::Library;
use libsqlite3_sys as ffi;
use thiserror::Error;

type Db = *mut ffi::sqlite3;
type RawStatement = *mut ffi::sqlite3_stmt;
type Destructor = Option<unsafe extern "C" fn(*mut c_void)>;
type RowCallback =
    Option<unsafe extern "C" fn(*mut c_void, c_int, *mut *mut c_char, *mut *mut c_char) -> c_int>;

/// The functions that joj calls, each with the meaning that <https://sqlite.org/c3ref/funclist.html> gives it.
#[derive(Debug)]
pub struct Api {
    pub open_v2: unsafe extern "C" fn(*const c_char, *mut Db, c_int, *const c_char) -> c_int,
    pub close: unsafe extern "C" fn(Db) -> c_int,
    pub errmsg: unsafe extern "C" fn(Db) -> *const c_char,
    pub prepare_v2:
        unsafe extern "C" fn(Db, *const c_char, c_int, *mut RawStatement, *mut *const c_char) -> c_int,
    pub exec: unsafe extern "C" fn(Db, *const c_char, RowCallback, *mut c_void, *mut *mut c_char) -> c_int,
    pub step: unsafe extern "C" fn(RawStatement) -> c_int,
    pub reset: unsafe extern "C" fn(RawStatement) -> c_int,
    pub finalize: unsafe extern "C" fn(RawStatement) -> c_int,
    pub bind_int64: unsafe extern "C" fn(RawStatement, c_int, i64) -> c_int,
    pub bind_text: unsafe extern "C" fn(RawStatement, c_int, *const c_char, c_int, Destructor) -> c_int,
    pub column_text: unsafe extern "C" fn(RawStatement, c_int) -> *const u8,
    pub column_bytes: unsafe extern "C" fn(RawStatement, c_int) -> c_int,
    pub enable_load_extension: unsafe extern "C" fn(Db, c_int) -> c_int,
    pub load_extension: unsafe extern "C" fn(Db, *const c_char, *const c_char, *mut *mut c_char) -> c_int,
    pub db_status: unsafe extern "C" fn(Db, c_int, *mut c_int, *mut c_int, c_int) -> c_int,
    pub free: unsafe extern "C" fn(*mut c_void),
    pub vfs_find: unsafe extern "C" fn(*const c_char) -> *mut ffi::sqlite3_vfs,
    pub libversion: unsafe extern "C" fn() -> *const c_char,
    pub sourceid: unsafe extern "C" fn() -> *const c_char,
    /// Keeps the library loaded for as long as the pointers are there.
    _library: Option<Library>,
}

impl Api {
    /// The SQLite inside this program, compiled as crates.io's `bundled` feature compiles it, and for F2FS's atomic writes
    /// (.cargo/config.toml).
    pub fn bundled() -> Api {
        Api {
            open_v2: ffi::sqlite3_open_v2,
            close: ffi::sqlite3_close,
            errmsg: ffi::sqlite3_errmsg,
            prepare_v2: ffi::sqlite3_prepare_v2,
            exec: ffi::sqlite3_exec,
            step: ffi::sqlite3_step,
            reset: ffi::sqlite3_reset,
            finalize: ffi::sqlite3_finalize,
            bind_int64: ffi::sqlite3_bind_int64,
            bind_text: ffi::sqlite3_bind_text,
            column_text: ffi::sqlite3_column_text,
            column_bytes: ffi::sqlite3_column_bytes,
            enable_load_extension: ffi::sqlite3_enable_load_extension,
            load_extension: ffi::sqlite3_load_extension,
            db_status: ffi::sqlite3_db_status,
            free: ffi::sqlite3_free,
            vfs_find: ffi::sqlite3_vfs_find,
            libversion: ffi::sqlite3_libversion,
            sourceid: ffi::sqlite3_sourceid,
            _library: None,
        }
    }

    /// The SQLite of a shared library, `file` as dlopen(3) takes it.
    /// # Errors
    /// What dlopen said, or which function is missing.
    pub fn from_file(file: &str) -> Result<Api, LibraryError> {
        // SAFETY: loading runs the file's initialisers; the user named it as a SQLite, and SQLite's do nothing.
        let library = unsafe { Library::new(file) }.map_err(LibraryError::Refused)?;
        let like = Api::bundled();
        Ok(Api {
            open_v2: find(&library, "sqlite3_open_v2", like.open_v2)?,
            close: find(&library, "sqlite3_close", like.close)?,
            errmsg: find(&library, "sqlite3_errmsg", like.errmsg)?,
            prepare_v2: find(&library, "sqlite3_prepare_v2", like.prepare_v2)?,
            exec: find(&library, "sqlite3_exec", like.exec)?,
            step: find(&library, "sqlite3_step", like.step)?,
            reset: find(&library, "sqlite3_reset", like.reset)?,
            finalize: find(&library, "sqlite3_finalize", like.finalize)?,
            bind_int64: find(&library, "sqlite3_bind_int64", like.bind_int64)?,
            bind_text: find(&library, "sqlite3_bind_text", like.bind_text)?,
            column_text: find(&library, "sqlite3_column_text", like.column_text)?,
            column_bytes: find(&library, "sqlite3_column_bytes", like.column_bytes)?,
            enable_load_extension: find(
                &library,
                "sqlite3_enable_load_extension",
                like.enable_load_extension,
            )?,
            load_extension: find(&library, "sqlite3_load_extension", like.load_extension)?,
            db_status: find(&library, "sqlite3_db_status", like.db_status)?,
            free: find(&library, "sqlite3_free", like.free)?,
            vfs_find: find(&library, "sqlite3_vfs_find", like.vfs_find)?,
            libversion: find(&library, "sqlite3_libversion", like.libversion)?,
            sourceid: find(&library, "sqlite3_sourceid", like.sourceid)?,
            _library: Some(library),
        })
    }

    /// From now on each ioctl(2) of this SQLite fails, as on a filesystem that does not know it. SQLite has ioctls for F2FS's
    /// atomic writes alone, and asks with the first of them whether there are any (os_unix.c, setDeviceCharacteristics). A build
    /// without that call has none to refuse. To be called before an extension brings a VFS of its own.
    pub fn refuse_ioctls(&self) {
        self.replace_system_call(c"ioctl", refuse_ioctl as *const ());
    }

    /// From now on this SQLite opens no directory, and so syncs none, as if it were compiled with `SQLITE_DISABLE_DIRSYNC`:
    /// it takes a directory that cannot be opened for one that needs no sync (os_unix.c, unixSync and unixDelete).
    /// To be called before an extension brings a VFS of its own. False where this build opens directories in a way of its own.
    #[must_use]
    pub fn refuse_directories(&self) -> bool {
        self.replace_system_call(c"openDirectory", refuse_directory as *const ())
    }

    /// Puts a function in the place of one of those that SQLite reaches the system through; false where there is none of the name.
    fn replace_system_call(&self, name: &CStr, function: *const ()) -> bool {
        // SAFETY: a null name asks for the default VFS; SQLite initialises itself for the question.
        let vfs = unsafe { (self.vfs_find)(ptr::null()) };
        if vfs.is_null() {
            return false;
        }
        // SAFETY: a VFS that is registered stays where it is, and its version is its first field.
        let version = unsafe { (*vfs).iVersion };
        if version < VFS_VERSION_OF_SYSTEM_CALLS {
            return false;
        }
        // SAFETY: from that version on the field is there.
        let Some(set_system_call) = (unsafe { (*vfs).xSetSystemCall }) else { return false };
        // SAFETY: a function's address; SQLite casts it back to the type of `name` before it calls it.
        let function = unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn()>(function) };
        // SAFETY: the VFS is SQLite's, the name ends with a zero. A build without that call answers SQLITE_NOTFOUND.
        unsafe { set_system_call(vfs, name.as_ptr(), Some(function)) == ffi::SQLITE_OK }
    }
}

/// `iVersion` from which a VFS has `xSetSystemCall` (sqlite3.h).
const VFS_VERSION_OF_SYSTEM_CALLS: c_int = 3;

/// In the place of ioctl(2). SQLite gives it a third argument where there is one, which the System V ABIs of x86-64 and of
/// AArch64 let a function not look at.
unsafe extern "C" fn refuse_ioctl(_file: c_int, _request: c_ulong) -> c_int {
    -1
}

/// In the place of SQLite's own function that opens the directory of a file.
unsafe extern "C" fn refuse_directory(_file: *const c_char, _directory: *mut c_int) -> c_int {
    ffi::SQLITE_CANTOPEN
}

/// Why a file cannot be used as a SQLite library.
#[derive(Debug, Error)]
pub enum LibraryError {
    /// dlopen refused it.
    #[error("{}", reason(.0))]
    Refused(#[source] libloading::Error),
    /// It lacks a function of SQLite's.
    #[error("it has no function {0}: it is no SQLite 3.5 or newer")]
    NoFunction(String),
}

/// What dlopen said; libloading keeps it one level down.
fn reason(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

/// The function `name`, of the type of `_same`: the bundled SQLite's function of that name. SQLite has promised
/// since 3.0.0 not to change a signature, which makes that type the right one for every version.
fn find<Function: Copy>(library: &Library, name: &str, _same: Function) -> Result<Function, LibraryError> {
    // SAFETY: see above; every caller passes the function that bears this very name.
    let symbol = unsafe { library.get::<Function>(name) };
    symbol.map(|found| *found).map_err(|_| LibraryError::NoFunction(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_calls_of_the_bundled_sqlite_are_refused_once_they_shall_be() {
        let api = Api::bundled();
        let mut descriptor = -1;
        api.refuse_ioctls();
        // SAFETY: as in `replace_system_call`.
        let vfs = unsafe { (api.vfs_find)(ptr::null()) };
        // SAFETY: as there; the bundled SQLite's VFS has version 3.
        let get = unsafe { (*vfs).xGetSystemCall }.unwrap();
        // SAFETY: the VFS is SQLite's, the name ends with a zero.
        let found = |name: &CStr| unsafe { get(vfs, name.as_ptr()) }.unwrap();
        // Not by its address: a function may have one in each codegen unit.
        // SAFETY: the function that was put there, or SQLite's own of that type.
        let ioctl: unsafe extern "C" fn(c_int, c_ulong) -> c_int =
            unsafe { std::mem::transmute(found(c"ioctl")) };
        // SAFETY: it looks at nothing.
        assert_eq!(unsafe { ioctl(0, 0) }, -1);
        let before = found(c"openDirectory") as usize;
        assert!(api.refuse_directories());
        assert_ne!(found(c"openDirectory") as usize, before);
        // SAFETY: as above.
        let open: unsafe extern "C" fn(*const c_char, *mut c_int) -> c_int =
            unsafe { std::mem::transmute(found(c"openDirectory")) };
        // SAFETY: it looks at nothing.
        assert_eq!(unsafe { open(c"/".as_ptr(), &raw mut descriptor) }, ffi::SQLITE_CANTOPEN);
        assert!(!api.replace_system_call(c"no such call", refuse_directory as *const ()));
        // SAFETY: it looks at nothing.
        assert_eq!(unsafe { refuse_ioctl(0, 0) }, -1);
    }

    #[test]
    fn a_file_that_is_no_sqlite_is_refused_with_the_reason() {
        assert!(
            Api::from_file("/nonexistent/libsqlite3.so").unwrap_err().to_string().contains("/nonexistent")
        );
        let message = Api::from_file("libc.so.6").unwrap_err().to_string();
        assert!(message.contains("sqlite3_open_v2"), "{message}");
    }
}
