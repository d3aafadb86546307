//! The unix VFS calls an fcntl of ours, which fails or stands still where a test says so.

use std::ffi::{c_int, c_short, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use waldio::ffi::kernel::lock_probe::Flock;

use super::sqlite::{ffi, system};

const F_SETLK: c_int = 6;
const F_RDLCK: c_short = 0;
const F_WRLCK: c_short = 1;
const F_UNLCK: c_short = 2;
const ENOLCK: i32 = 37;
/// SQLite's shared locks (os.h).
const SHARED_FIRST: i64 = 0x4000_0000 + 2;

/// So many of the calls that take an exclusive lock on a database back to a shared one fail.
pub static FAILING_DOWNGRADES: AtomicU32 = AtomicU32::new(0);
/// The last lock that was asked for on a database was the exclusive one.
static IS_EXCLUSIVE: AtomicBool = AtomicBool::new(false);
/// So long in milliseconds who gives back all locks of a file stands still before.
pub static SLOW_UNLOCKS_MS: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" {
    #[link_name = "fcntl64"]
    fn lock_call(file: c_int, command: c_int, ...) -> c_int;
    fn __errno_location() -> *mut c_int;
}

/// What the unix VFS calls instead of fcntl(2).
unsafe extern "C" fn hooked(file: c_int, command: c_int, argument: *mut c_void) -> c_int {
    if command == F_SETLK {
        // SAFETY: the argument of this command.
        let Flock { kind, start, len_bytes, .. } = unsafe { &*argument.cast::<Flock>() };
        let fails = |left: u32| left.checked_sub(1);
        if *start == SHARED_FIRST {
            let was_exclusive = IS_EXCLUSIVE.swap(*kind == F_WRLCK, SeqCst);
            let is_downgrade = *kind == F_RDLCK && was_exclusive;
            if is_downgrade && FAILING_DOWNGRADES.fetch_update(SeqCst, SeqCst, fails).is_ok() {
                IS_EXCLUSIVE.store(true, SeqCst);
                // SAFETY: it takes nothing.
                let error = unsafe { __errno_location() };
                // SAFETY: this thread's own.
                unsafe { error.write(ENOLCK) };
                return -1;
            }
        }
        if (*kind, *start, *len_bytes) == (F_UNLCK, 0, 0) {
            IS_EXCLUSIVE.store(false, SeqCst);
            std::thread::sleep(Duration::from_millis(SLOW_UNLOCKS_MS.load(SeqCst).into()));
        }
    }
    // SAFETY: the VFS's own arguments.
    unsafe { lock_call(file, command, argument) }
}

/// From now on the unix VFS of Debian's library calls `hooked`.
pub fn hook() {
    let library = system();
    library.load_linked();
    // SAFETY: a name that ends with zero.
    let unix = unsafe { (library.functions.sqlite3_vfs_find)(c"unix".as_ptr()) };
    // SAFETY: registered, so complete and permanent.
    let set = unsafe { &*unix }.xSetSystemCall.unwrap();
    type Fcntl = unsafe extern "C" fn(c_int, c_int, *mut c_void) -> c_int;
    // SAFETY: SQLite's header declares any function as one without arguments; it is called with fcntl's.
    let call = unsafe { std::mem::transmute::<Fcntl, unsafe extern "C" fn()>(hooked) };
    // SAFETY: as above.
    assert_eq!(unsafe { set(unix, c"fcntl".as_ptr(), Some(call)) }, ffi::SQLITE_OK);
}
