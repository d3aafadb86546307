//! Whose nap `xSleep` is: SQLite passes no file there, and `sqlite3_sleep` comes the same way.
//!
//! A nap that may end early, for which the lock is kept, must be the busy handler's of a connection that was refused the
//! write lock. Three things together prove that:
//!
//! 1. The refusal is fresh. SQLite's loop around the busy handler (btree.c, `sqlite3BtreeBeginTrans`) does nothing between
//!    the two but give back what the connection has. Any other call on this thread ends the mark.
//! 2. The nap is as long as the handler's next one would be (`busy_timeout`).
//! 3. The connection came back from its last nap: that one was followed by its asking for the lock again, with nothing in
//!    between but what leads there. So the first nap of a connection lasts its whole time.
//!
//! Anything else sleeps in the base VFS, for as long as it asked for.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::connection::Connection;
use crate::ffi::taken_lock::TakenLock;
use crate::threads::origin::Origin;
use crate::threads::primitives::{now, thread};

/// What SQLite does with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// It gives a lock back, or sends a file control.
    Unlocks,
    /// It begins to read: locks, and looks at the wal-index.
    Begins,
    /// It reads a page.
    Reads,
    /// It asks for the write lock.
    Asks,
    /// Anything else.
    Other,
}

/// What this thread's marked connection did last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Refused,
    Napped,
    ReadAfterNap,
}

#[derive(Debug)]
struct Mark {
    connection: Weak<Connection>,
    /// A child of fork has none of its parent's waits.
    origin: Origin,
    last: Last,
}

impl Last {
    /// What it did last once SQLite made this call, of the marked connection or another; `None` where the mark goes.
    fn then(self, is_marked: bool, call: Call) -> Option<Last> {
        match (self, call) {
            _ if !is_marked => None,
            (last, Call::Unlocks) if last != Last::ReadAfterNap => Some(last),
            (Last::Napped, Call::Begins) => Some(Last::Napped),
            (Last::Napped, Call::Reads) | (Last::ReadAfterNap, Call::Begins | Call::Reads) => {
                Some(Last::ReadAfterNap)
            }
            _ => None,
        }
    }
}

thread_local! {
    /// The marked connection's address, 0 for none: what every call looks at.
    static MARKED: Cell<usize> = const { Cell::new(0) };
    static MARK: RefCell<Option<Mark>> = const { RefCell::new(None) };
}

/// Takes the mark away. A thread that is ending has no such memory any more, and no busy handler either.
fn take_mark() -> Option<Mark> {
    let _ = MARKED.try_with(|marked| marked.set(0));
    MARK.try_with(RefCell::take).ok().flatten().filter(|mark| !mark.origin.is_parent())
}

fn put(connection: &Arc<Connection>, last: Last) {
    let mark = Mark { connection: Arc::downgrade(connection), origin: Origin::default(), last };
    let placed = MARK.try_with(|place| *place.borrow_mut() = Some(mark)).is_ok();
    let _ = MARKED.try_with(|marked| marked.set(if placed { Arc::as_ptr(connection).addr() } else { 0 }));
}

/// This thread was refused the write lock of `connection`'s database.
pub(crate) fn refused(connection: &Arc<Connection>) {
    put(connection, Last::Refused);
}

/// SQLite calls a method of `connection`'s files on this thread.
#[inline]
pub(crate) fn heard(connection: &Connection, call: Call) {
    if call == Call::Other {
        // Also where another thread than the marked one uses the connection.
        connection.drop_early_lock();
    }
    let marked = MARKED.try_with(Cell::get).unwrap_or(0);
    if marked != 0 {
        judge(marked == std::ptr::from_ref(connection).addr(), call);
    }
}

/// SQLite calls a method of the VFS on this thread, or a file that is none of a marked connection's.
#[inline]
pub(crate) fn heard_elsewhere() {
    if MARKED.try_with(Cell::get).unwrap_or(0) != 0 {
        judge(false, Call::Other);
    }
}

#[cold]
fn judge(is_marked: bool, call: Call) {
    let Some(mark) = take_mark() else { return };
    let Some(connection) = mark.connection.upgrade() else { return };
    if let Some(last) = mark.last.then(is_marked, call) {
        return put(&connection, last);
    }
    let asks = is_marked && call == Call::Asks;
    if !asks {
        connection.drop_early_lock();
    }
    if mark.last != Last::Refused {
        connection.busy_timeout().came_back(asks);
    }
}

/// SQLite sleeps for shorter times between two tries for a read lock (wal.c, `walTryBeginRead`).
const NAP_MIN: Duration = Duration::from_millis(1);

/// This thread sleeps: true where that was a nap in the queue, and is over. Else the base VFS should. `lock` tries for the write lock in
/// a connection's name; `None`: SQLite has to ask for it.
pub(crate) fn nap(nominal: Duration, lock: Option<impl Fn(&Connection) -> Option<TakenLock>>) -> bool {
    if nominal < NAP_MIN {
        return false;
    }
    let Some(mark) = take_mark() else { return false };
    let Some(connection) = mark.connection.upgrade() else { return false };
    if mark.last != Last::Refused {
        connection.drop_early_lock();
        connection.busy_timeout().came_back(false);
        return false;
    }
    let Some(nap) = connection.busy_nap(nominal) else { return false };
    if nap.comes_back {
        let waiting = Arc::clone(&connection);
        connection.nap(&nap, lock.map(|lock| move || lock(&waiting)));
    } else {
        // The base VFS sleeps from now on; what the naps before were cut short by is slept here, or the timeout would be shorter.
        thread::sleep(nap.from.saturating_duration_since(now()));
    }
    put(&connection, Last::Napped);
    nap.comes_back
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_leads_from_a_nap_to_the_next_ask_keeps_the_mark() {
        use Call::{Asks, Begins, Other, Reads, Unlocks};
        use Last::{Napped, ReadAfterNap, Refused};
        let then = |last: Last| [Unlocks, Begins, Reads, Asks, Other].map(|call| last.then(true, call));
        assert_eq!(then(Refused), [Some(Refused), None, None, None, None]);
        let read = Some(ReadAfterNap);
        assert_eq!(then(Napped), [Some(Napped), Some(Napped), read, None, None]);
        assert_eq!(then(ReadAfterNap), [None, read, read, None, None]);
        for last in [Refused, Napped, ReadAfterNap] {
            assert_eq!(
                [Unlocks, Begins, Reads].map(|call| last.then(false, call)),
                [None; 3],
                "another's call"
            );
        }
    }

    #[test]
    fn a_nap_that_the_base_vfs_sleeps_makes_up_for_those_that_were_cut_short() {
        let connection = Arc::new(crate::connection::tests_connection());
        let began = now();
        for milliseconds in [1, 2, 5, 10] {
            connection.busy_timeout().refused(true);
            assert!(connection.busy_timeout().nap(began, Duration::from_millis(milliseconds)).is_some());
        }
        connection.busy_timeout().refused(true);
        refused(&connection);
        let take = None::<fn(&Connection) -> Option<TakenLock>>;
        assert!(!nap(Duration::from_millis(15), take), "the base VFS should sleep, for 15 ms");
        assert!(began.elapsed() >= Duration::from_millis(18), "after {:?}", began.elapsed());
    }
}
