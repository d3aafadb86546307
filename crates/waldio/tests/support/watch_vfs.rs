//! A VFS above another one that changes nothing and tells the calling thread's watcher what SQLite asks, before it is
//! done and after: a test can let other connections act at an exact point inside a commit or a checkpoint.
//! A thread without a watcher goes straight through.

use std::cell::RefCell;
use std::ffi::CString;
use std::rc::Rc;

use super::library::bundled;
use super::sqlite_shim;

pub use super::sqlite_shim::Event;

/// Hears what the connections of one thread do.
pub trait Watcher {
    /// One event. It may take as long as it likes, but must not panic: C is above it.
    fn hear(&self, event: Event);
}

thread_local! {
    static WATCHER: RefCell<Option<Rc<dyn Watcher>>> = const { RefCell::new(None) };
}

/// Lets `watcher` hear what this thread's connections do from now on.
pub fn watch(watcher: Option<Rc<dyn Watcher>>) {
    WATCHER.with(|place| *place.borrow_mut() = watcher);
}

/// Tells this thread's watcher.
pub fn tell(event: Event) {
    let watcher = WATCHER.with(|place| place.borrow().clone());
    if let Some(watcher) = watcher {
        watcher.hear(event);
    }
}

/// Registers it as `name` over the registered VFS `base`; it stays for the life of the process.
pub fn register(name: &str, base: &str) {
    let [name, base] = [name, base].map(|name| CString::new(name).expect("no NUL"));
    let name = Box::leak(name.into_boxed_c_str());
    sqlite_shim::register(bundled(), name, Some(&base), false, tell);
}
