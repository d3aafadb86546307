//! SQLite's mutexes: whether it has any, and the one for what two threads must not do at once.

use std::ffi::{c_int, c_void};

use super::api::{Api, routine, slot};

type Alloc = unsafe extern "C" fn(c_int) -> *mut c_void;
type OnMutex = unsafe extern "C" fn(*mut c_void);

impl Api {
    /// True where SQLite has mutexes: it was not built without, and `SQLITE_CONFIG_SINGLETHREAD` did not take them away. Without, each
    /// mutex is the same (mutex_noop.c).
    pub fn has_mutexes(self) -> bool {
        const SQLITE_MUTEX_FAST: c_int = 0;
        let is_safe = routine!(self, slot::THREADSAFE, unsafe extern "C" fn() -> c_int);
        // SAFETY: takes nothing, changes nothing.
        if is_safe.is_none_or(|call| unsafe { call() } == 0) {
            return false;
        }
        let Some(alloc) = routine!(self, slot::MUTEX_ALLOC, Alloc) else { return false };
        // SAFETY: SQLite is initialised.
        let mutexes = [(); 2].map(|()| unsafe { alloc(SQLITE_MUTEX_FAST) });
        if let Some(free) = routine!(self, slot::MUTEX_FREE, OnMutex) {
            // SAFETY: allocated just now, and not locked; null is allowed.
            mutexes.iter().for_each(|mutex| unsafe { free(*mutex) });
        }
        mutexes.iter().all(|mutex| !mutex.is_null()) && mutexes[0] != mutexes[1]
    }

    /// Does `work` while no other thread of the process does such work with this library, whichever copy of waldio calls.
    /// Without SQLite's mutexes the program promised that no other thread is there. The mutex is one of those that
    /// SQLite keeps for VFSes (`SQLITE_MUTEX_STATIC_VFS3`), and allows what SQLite's functions take inside it.
    pub fn alone<T>(self, work: impl FnOnce() -> T) -> T {
        struct Held(Option<OnMutex>, *mut c_void);
        impl Drop for Held {
            fn drop(&mut self) {
                // SAFETY: entered by this thread; null is allowed.
                self.0.iter().for_each(|leave| unsafe { leave(self.1) });
            }
        }
        const SQLITE_MUTEX_STATIC_VFS3: c_int = 13;
        let alloc = routine!(self, slot::MUTEX_ALLOC, Alloc);
        // SAFETY: SQLite is initialised; a static mutex is there for its life.
        let mutex = alloc.map_or(std::ptr::null_mut(), |alloc| unsafe { alloc(SQLITE_MUTEX_STATIC_VFS3) });
        // SAFETY: as above; null is allowed.
        routine!(self, slot::MUTEX_ENTER, OnMutex).iter().for_each(|enter| unsafe { enter(mutex) });
        let _held = Held(routine!(self, slot::MUTEX_LEAVE, OnMutex), mutex);
        work()
    }
}
