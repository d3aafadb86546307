//! The function table for a SQLite that this code is linked into: such builds pass none (`SQLITE_CORE`, or
//! `SQLITE_OMIT_LOAD_EXTENSION` as on Android).

use std::ffi::c_void;
use std::sync::OnceLock;

use super::api::slot;
use super::types::sqlite3_api_routines;

macro_rules! linked {
    ($($slot:ident = $symbol:ident),* $(,)?) => {
        unsafe extern "C" {
            $(fn $symbol();)*
        }

        fn fill(slots: &mut [*const c_void; 252]) {
            $(slots[slot::$slot] = $symbol as *const c_void;)*
        }
    };
}

linked! {
    AUTO_EXTENSION = sqlite3_auto_extension,
    CLOSE = sqlite3_close,
    CONTEXT_DB_HANDLE = sqlite3_context_db_handle,
    CREATE_FUNCTION_V2 = sqlite3_create_function_v2,
    CREATE_MODULE_V2 = sqlite3_create_module_v2,
    DB_FILENAME = sqlite3_db_filename,
    DECLARE_VTAB = sqlite3_declare_vtab,
    ERRMSG = sqlite3_errmsg,
    EXEC = sqlite3_exec,
    FILE_CONTROL = sqlite3_file_control,
    FILENAME_DATABASE = sqlite3_filename_database,
    FREE = sqlite3_free,
    GET_AUTOCOMMIT = sqlite3_get_autocommit,
    LIBVERSION_NUMBER = sqlite3_libversion_number,
    LOG = sqlite3_log,
    MPRINTF = sqlite3_mprintf,
    MUTEX_ALLOC = sqlite3_mutex_alloc,
    MUTEX_ENTER = sqlite3_mutex_enter,
    MUTEX_FREE = sqlite3_mutex_free,
    MUTEX_LEAVE = sqlite3_mutex_leave,
    OPEN_V2 = sqlite3_open_v2,
    RESULT_DOUBLE = sqlite3_result_double,
    RESULT_ERROR = sqlite3_result_error,
    RESULT_INT64 = sqlite3_result_int64,
    RESULT_NULL = sqlite3_result_null,
    RESULT_TEXT = sqlite3_result_text,
    THREADSAFE = sqlite3_threadsafe,
    URI_KEY = sqlite3_uri_key,
    URI_PARAMETER = sqlite3_uri_parameter,
    VALUE_TEXT = sqlite3_value_text,
    VFS_FIND = sqlite3_vfs_find,
    VFS_REGISTER = sqlite3_vfs_register,
}

struct Shared(sqlite3_api_routines);

// SAFETY: filled once with function pointers and nulls, then only read.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// The table.
pub(crate) fn routines() -> *const sqlite3_api_routines {
    static TABLE: OnceLock<Shared> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let mut slots = [std::ptr::null(); 252];
        fill(&mut slots);
        Shared(sqlite3_api_routines { slots })
    });
    &raw const table.0
}
