//! The part of the queue that other processes are in (`shared_lock_queue`).

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::LockQueue;
use crate::write_lock::queue_state::{PASSES_MAX, QueuedConnection};
use crate::write_lock::shared_lock_queue::{SharedLockQueue, Standing};

/// How the last sleep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slept {
    /// It was in this process, or there was none.
    Here,
    /// Somebody rang.
    Rung,
    /// By itself.
    Unrung,
}

impl LockQueue {
    /// For `waldio_status`: whether other processes are rung for, and where or why not.
    pub fn shared_lock_queue(&self) -> (&'static str, String) {
        let none = || ("none", "the base VFS has no POSIX locks".to_owned());
        self.shared.as_ref().map_or_else(none, SharedLockQueue::describe)
    }

    /// Has the thread look that sleeps at a place.
    pub(super) fn wake(&self, place: &mut QueuedConnection) {
        place.wake();
        if let (Some(shared), Some(number)) = (&self.shared, place.shared_place) {
            shared.rouse(number);
        }
    }

    /// The lock was given back: tells another process. As long as this one has use for it, only now and then: a hand-over
    /// between its threads is cheaper.
    pub(super) fn ring_others(&self) {
        let Some(shared) = self.shared.as_ref().filter(|shared| shared.is_awaited()) else { return };
        if self.waiting.load(Relaxed) > 0 && self.stays.fetch_add(1, Relaxed) + 1 < PASSES_MAX {
            return;
        }
        self.stays.store(0, Relaxed);
        shared.ring();
    }

    /// Sleeps among other processes; returns the place where it was not rung, by another process or this one.
    pub(super) fn wait_shared(place: Standing<'_>, time: Duration) -> (Option<Standing<'_>>, Slept) {
        place.wait(time);
        if place.is_rung() { (None, Slept::Rung) } else { (Some(place), Slept::Unrung) }
    }

    /// Whoever found the lock free and was not told, is told by nobody: the holder is dead, stopped, or stock SQLite.
    pub(super) fn note_rings(&self, slept: Slept) {
        if let Some(shared) = self.shared.as_ref().filter(|_| slept != Slept::Here) {
            shared.note(slept == Slept::Rung);
        }
    }

    /// True where a look may wait for a ring.
    pub(super) fn rings_come(&self) -> bool {
        self.shared.as_ref().is_some_and(SharedLockQueue::rings_come)
    }

    /// How many processes wait; 0 without a page that all share.
    pub(super) fn waiting_processes(&self) -> u32 {
        self.shared.as_ref().map_or(0, SharedLockQueue::count)
    }

    /// Whoever was told and does not come tells the next.
    pub(super) fn ring_on(&self, slept: Slept) {
        if let Some(shared) = self.shared.as_ref().filter(|_| slept == Slept::Rung) {
            shared.ring();
        }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
    use std::thread;
    use std::time::Instant;

    use super::*;
    use crate::write_lock::busy_timeout::Nap;
    use crate::write_lock::queue_state::{Sleeper, Tried, Turn};

    /// A database, which goes when the test ends.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let path = std::env::temp_dir().join(format!("waldio-{name}-{}.db", std::process::id()));
            std::fs::write(&path, "").expect("a temporary file");
            Scratch(path)
        }

        /// The queue of a process that another process was in the way of, and whether others can ring for it.
        fn queue(&self, connection: usize, sleeper: &Arc<Sleeper>) -> Option<LockQueue> {
            let queue = LockQueue::new(Some(&self.0), Arc::default());
            assert_eq!(queue.ask(connection, sleeper, Instant::now()), Turn::Try);
            queue.refused(connection, sleeper, Instant::now());
            let (state, why) = queue.shared_lock_queue();
            if state != "open" {
                eprintln!("skipped: no queue across processes here: {why}");
                return None;
            }
            queue.note_rings(Slept::Rung);
            assert!(queue.rings_come());
            Some(queue)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    /// Whether a process is rung when another gives the lock back; `None` where there is no line.
    fn is_rung(database: &Scratch) -> Option<bool> {
        let (sleeper, free) = (&Arc::default(), AtomicBool::new(false));
        let (holder, waiter) = (database.queue(0, &Arc::default())?, &database.queue(1, sleeper)?);
        assert_eq!(holder.ask(0, &Arc::default(), Instant::now()), Turn::Try);
        holder.granted(0, Instant::now());
        let nap = Nap::until(Instant::now() + Duration::from_secs(10));
        thread::scope(|scope| {
            let take = || if free.load(SeqCst) { Tried::Got } else { Tried::Busy };
            scope.spawn(move || waiter.sleep(1, sleeper, &nap, take));
            while !holder.is_awaited() {
                thread::yield_now();
            }
            thread::sleep(Duration::from_millis(1));
            free.store(true, SeqCst);
            holder.released(0);
        });
        Some(holder.stats.process_hand_overs.load(SeqCst) == 1)
    }

    #[test]
    fn whoever_gives_the_lock_back_rings_for_another_process() {
        let scratch = Scratch::new("rings");
        // A waiter looks by itself now and then, and may be awake just then.
        assert!((0..5).any(|_| is_rung(&scratch) != Some(false)));
    }

    #[test]
    fn whoever_waits_for_a_ring_that_does_not_come_looks_by_itself() {
        let (scratch, sleeper, began) = (Scratch::new("unrung"), Arc::default(), Instant::now());
        let Some(queue) = scratch.queue(1, &sleeper) else { return };
        // The holder is killed.
        let is_free = || began.elapsed() > Duration::from_millis(20);
        let take = || if is_free() { Tried::Got } else { Tried::Busy };
        queue.sleep(1, &sleeper, &Nap::until(began + Duration::from_secs(10)), take);
        assert!(began.elapsed() < Duration::from_secs(1), "after {:?}", began.elapsed());
        let rings_come = queue.shared.as_ref().is_some_and(SharedLockQueue::rings_come);
        assert!(!rings_come, "from here on it looks more often");
    }

    #[test]
    fn who_is_woken_by_its_own_process_learns_nothing_of_the_others() {
        let (scratch, sleeper, began) = (Scratch::new("own"), &Arc::default(), Instant::now());
        let Some(queue) = &scratch.queue(1, sleeper) else { return };
        queue.note_rings(Slept::Unrung);
        let nap = Nap::until(began + Duration::from_secs(10));
        let took = AtomicBool::new(false);
        let take = || if took.load(SeqCst) { Tried::Got } else { Tried::Busy };
        thread::scope(|scope| {
            scope.spawn(move || queue.sleep(1, sleeper, &nap, take));
            while !queue.is_awaited() || queue.shared.as_ref().is_some_and(|shared| !shared.is_awaited()) {
                thread::yield_now();
            }
            // Another one of the process was refused the lock, and has the first look.
            (0..100).for_each(|_| queue.refused(2, &Arc::default(), Instant::now()));
            took.store(true, SeqCst);
        });
        assert!(!queue.rings_come());
    }

    #[test]
    fn without_posix_locks_there_is_no_page() {
        let queue = LockQueue::new(None, Arc::default());
        queue.refused(1, &Arc::default(), Instant::now());
        assert_eq!(queue.shared_lock_queue().0, "none");
        assert!(queue.is_awaited(), "by this process itself");
    }

    #[test]
    fn while_this_process_has_use_for_the_lock_another_is_rung_now_and_then() {
        let scratch = Scratch::new("stays");
        let (Some(holder), Some(waiter)) =
            (scratch.queue(0, &Arc::default()), scratch.queue(1, &Arc::default()))
        else {
            return;
        };
        let shared = waiter.shared.as_ref().unwrap();
        let stays_until_rung = |in_line: usize| {
            let standing = shared.stand().unwrap();
            holder.waiting.store(in_line, SeqCst);
            (0..100)
                .take_while(|_| {
                    holder.ring_others();
                    !standing.is_rung()
                })
                .count()
        };
        let passes = usize::try_from(PASSES_MAX).unwrap();
        assert_eq!([0, 1, 1, 0].map(stays_until_rung), [0, passes - 1, passes - 1, 0]);
    }
}
