//! The queue across processes: the first in the queue of each stands at a place of a page that they share, and whoever gives
//! the write lock back rings for the one that came first.
//!
//! Hints alone. Who has the lock only the kernel knows, which frees it when its process dies; every wait here ends by
//! itself. So whatever the page holds, after a kill -9, from an old file or by malice, costs time and nothing else. A
//! place whose process died is freed by the first who rings there: nobody is woken, and the next in the queue is rung for.
//!
//! The page is opened when another process has the lock for the first time, or has the page already. The second matters to a
//! process that always finds the lock free, because those who wait for it are slower: it looks now and then. Whoever has no page
//! rings for nobody, and is waited for by looking again and again.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::thread::futex;

use crate::ffi::kernel::shared_page::{PLACES, Words};
use crate::stats::Stats;

use file::{PageFile, Refused};

mod file;

/// Memory that survives no reboot, and costs no write to any disk.
const FOLDER: &str = "/dev/shm";

/// At every so many grants a process without a page looks whether others have one: two stat(2).
const LOOK_EVERY: u32 = 64;

/// The page in which the queues of all processes meet.
#[derive(Debug)]
pub struct SharedLockQueue {
    folder: PathBuf,
    database: PathBuf,
    file: OnceLock<Result<PageFile, String>>,
    /// When the first in the queue came; 0: nobody waits.
    ticket: AtomicU32,
    /// The last wait ended by a ring.
    rings_come: AtomicBool,
    /// How often this process got the lock.
    grants: AtomicU32,
    stats: Arc<Stats>,
}

impl SharedLockQueue {
    /// For the database at this path. Opens nothing.
    pub fn new(database: &Path, stats: Arc<Stats>) -> SharedLockQueue {
        SharedLockQueue::inside(Path::new(FOLDER), database, stats)
    }

    fn inside(folder: &Path, database: &Path, stats: Arc<Stats>) -> SharedLockQueue {
        SharedLockQueue {
            folder: folder.to_owned(),
            database: database.to_owned(),
            file: OnceLock::new(),
            ticket: AtomicU32::new(0),
            rings_come: AtomicBool::new(false),
            grants: AtomicU32::new(0),
            stats,
        }
    }

    /// Another process has the lock: from here on this one rings, and can be rung for.
    pub fn open(&self) {
        if self.file.get().is_some() {
            return;
        }
        // Two threads may come here at once; what the second opened goes.
        let _ = match PageFile::open(&self.folder, &self.database) {
            Ok(file) => self.file.set(Ok(file)),
            Err(Refused::ForGood(why)) => self.file.set(Err(why)),
            Err(Refused::Later) => Ok(()),
        };
    }

    fn words(&self) -> Option<&Words> {
        Some(self.file.get()?.as_ref().ok()?.page.words())
    }

    /// True where a process waits, or one was killed that did.
    pub fn is_awaited(&self) -> bool {
        self.words().is_some_and(|words| words.waiting.load(Relaxed) != 0)
    }

    /// How many processes wait, or were killed that did; 0 without a page.
    pub fn count(&self) -> u32 {
        self.words().map_or(0, |words| words.waiting.load(Relaxed).count_ones())
    }

    /// Takes a place; `None` where there is none. Who looks at the lock afterwards and finds it taken is rung for when it is
    /// given back.
    pub fn stand(&self) -> Option<Standing<'_>> {
        let words = self.words()?;
        if self.ticket.load(Relaxed) == 0 {
            let ticket = words.next_ticket.fetch_add(1, Relaxed).wrapping_add(1);
            // Not 0; two with the same ticket do no harm.
            self.ticket.store(ticket.max(1), Relaxed);
        }
        for _ in 0..PLACES {
            let number = words.waiting.load(SeqCst).trailing_ones() as usize;
            if number >= PLACES {
                return None;
            }
            let standing = self.stand_at(words, number);
            if standing.is_some() {
                return standing;
            }
        }
        None
    }

    /// The place of that number, below `PLACES`, where nobody was faster.
    fn stand_at<'a>(&self, words: &'a Words, number: usize) -> Option<Standing<'a>> {
        let place = &words.places[number];
        let wake_word = place.wake_word.load(SeqCst);
        place.ticket.store(self.ticket.load(Relaxed), Relaxed);
        let taken = words.waiting.fetch_or(1 << number, SeqCst) & 1 << number;
        (taken == 0).then(|| Standing { words, number, wake_word })
    }

    /// A connection of this process has the lock: who is first now came later.
    pub fn settle(&self) {
        self.ticket.store(0, Relaxed);
        let looks = || self.grants.fetch_add(1, Relaxed).is_multiple_of(LOOK_EVERY);
        if self.file.get().is_none() && looks() && PageFile::is_there(&self.folder, &self.database) {
            self.open();
        }
    }

    /// How the last wait ended.
    pub fn note(&self, rung: bool) {
        self.rings_come.store(rung, Relaxed);
    }

    /// True while those who have the lock ring when they give it back.
    pub fn rings_come(&self) -> bool {
        self.rings_come.load(Relaxed)
    }

    /// The lock was given back: wakes the process that has waited longest.
    pub fn ring(&self) {
        let Some(words) = self.words() else { return };
        for _ in 0..PLACES {
            let Some(first) = first(words) else { return };
            if ring_at(words, first) {
                Stats::add(&self.stats.process_hand_overs, 1);
                return;
            }
        }
    }

    /// Wakes this process's own thread that waits at a place.
    pub fn rouse(&self, number: usize) {
        if let Some(words) = self.words() {
            ring_at(words, number);
        }
    }

    /// For `waldio_status`: whether, and where or why not.
    pub fn describe(&self) -> (&'static str, String) {
        match self.file.get() {
            Some(Ok(file)) => ("open", file.path.display().to_string()),
            Some(Err(why)) => ("refused", why.clone()),
            None => ("not open", "no other process had the write lock when this one wanted it".to_owned()),
        }
    }
}

/// The place whose process has waited longest.
fn first(words: &Words) -> Option<usize> {
    let waiting = words.waiting.load(SeqCst);
    let next = words.next_ticket.load(Relaxed);
    let age = |number: &usize| next.wrapping_sub(words.places[*number].ticket.load(Relaxed));
    (0..PLACES).filter(|number| waiting & 1 << number != 0).max_by_key(age)
}

/// Frees a place and wakes who sleeps there; false where nobody did: dead, or awake already.
fn ring_at(words: &Words, number: usize) -> bool {
    let Some(place) = words.places.get(number) else { return false };
    words.waiting.fetch_and(!(1 << number), SeqCst);
    place.wake_word.fetch_add(1, SeqCst);
    futex::wake(&place.wake_word, futex::Flags::empty(), 1).is_ok_and(|woken| woken > 0)
}

/// A place that was taken; given back when dropped.
pub struct Standing<'a> {
    words: &'a Words,
    /// The number of the place in the page, from 0.
    pub number: usize,
    wake_word: u32,
}

impl Standing<'_> {
    /// Sleeps until it is rung, or for so long; may return earlier.
    pub fn wait(&self, time: Duration) {
        let Ok(time) = futex::Timespec::try_from(time) else { return };
        let wake_word = &self.words.places[self.number].wake_word;
        // An error is an interruption, the end of the time, or a ring before.
        let _ = futex::wait(wake_word, futex::Flags::empty(), self.wake_word, Some(&time));
    }

    /// True once it was rung: the place is free again.
    pub fn is_rung(&self) -> bool {
        self.words.places[self.number].wake_word.load(SeqCst) != self.wake_word
    }
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        if !self.is_rung() {
            self.words.waiting.fetch_and(!(1 << self.number), SeqCst);
        }
    }
}

impl fmt::Debug for Standing<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Standing")
            .field("number", &self.number)
            .field("wake_word", &self.wake_word)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;
    use std::thread;
    use std::time::Instant;

    /// Nobody sleeps so long who is rung.
    const LONG: Duration = Duration::from_secs(10);

    /// A folder with a database, which goes when the test ends.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let path = std::env::temp_dir().join(format!("waldio-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(path.join("app.db"), "").unwrap();
            Scratch(path)
        }

        /// As another process would have it.
        fn queue(&self) -> SharedLockQueue {
            let queue = SharedLockQueue::inside(&self.0, &self.0.join("app.db"), Arc::default());
            queue.open();
            assert_eq!(queue.describe().0, "open", "{}", queue.describe().1);
            queue
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn hand_overs(queue: &SharedLockQueue) -> u64 {
        AtomicU64::load(&queue.stats.process_hand_overs, SeqCst)
    }

    /// Waits until the thread of this process with that number sleeps.
    fn until_asleep(thread: u32) {
        let state = || std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
        while !state().rsplit_once(") ").unwrap().1.starts_with('S') {
            thread::yield_now();
        }
    }

    /// Lets `waiter` sleep at a place, does `act` when it does, and returns how long that took and whether it was rung.
    fn sleeps_until(waiter: &SharedLockQueue, act: impl FnOnce()) -> (Duration, bool) {
        let (tell, told) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            let sleeper = scope.spawn(move || {
                let standing = waiter.stand().unwrap();
                tell.send(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()).unwrap();
                let began = Instant::now();
                standing.wait(LONG);
                (began.elapsed(), standing.is_rung())
            });
            until_asleep(told.recv().unwrap());
            act();
            sleeper.join().unwrap()
        })
    }

    #[test]
    fn a_ring_wakes_who_waits_in_another_mapping() {
        let scratch = Scratch::new("ring");
        let (holder, waiter) = (scratch.queue(), scratch.queue());
        assert!(!holder.is_awaited());
        let (slept, rung) = sleeps_until(&waiter, || {
            assert!(holder.is_awaited());
            holder.ring();
        });
        assert!(rung && slept < LONG / 2 && !holder.is_awaited());
        assert_eq!((hand_overs(&holder), hand_overs(&waiter)), (1, 0));
    }

    #[test]
    fn who_came_first_is_rung_first_and_keeps_its_turn_until_it_has_the_lock() {
        let scratch = Scratch::new("turns");
        let queues = [(); 3].map(|()| scratch.queue());
        let [one, two] = [0, 1].map(|number| queues[number].stand().unwrap());
        let rung_next = || first(queues[2].words().unwrap());
        assert_eq!(rung_next(), Some(one.number));
        drop(one);
        // Another was faster: it stands again.
        let one = queues[0].stand().unwrap();
        assert_eq!(rung_next(), Some(one.number));
        drop(one);
        queues[0].settle();
        let one = queues[0].stand().unwrap();
        assert_eq!(rung_next(), Some(two.number), "the other one had its turn");
        drop(two);
        assert_eq!(rung_next(), Some(one.number));
    }

    #[test]
    fn who_always_finds_the_lock_free_finds_the_page_of_those_who_wait() {
        let scratch = Scratch::new("free");
        let queue = SharedLockQueue::inside(&scratch.0, &scratch.0.join("app.db"), Arc::default());
        (0..2 * LOOK_EVERY).for_each(|_| queue.settle());
        assert_eq!(queue.describe().0, "not open", "nobody else has one");
        let _waiter = scratch.queue();
        (0..LOOK_EVERY).for_each(|_| queue.settle());
        assert_eq!(queue.describe().0, "open");
    }

    #[test]
    fn a_place_that_another_took_just_before_is_not_shared() {
        let scratch = Scratch::new("race");
        let queue = scratch.queue();
        let words = queue.words().unwrap();
        for number in [0, 1, PLACES - 1] {
            let standing = queue.stand_at(words, number);
            assert!(standing.is_some() && queue.stand_at(words, number).is_none(), "place {number}");
            drop(standing);
            assert!(queue.stand_at(words, number).is_some(), "place {number} is free again");
        }
        assert!(!queue.is_awaited());
    }

    #[test]
    fn the_place_of_a_killed_process_costs_one_futile_ring() {
        let scratch = Scratch::new("killed");
        let [killed, waiter, holder] = [(); 3].map(|()| scratch.queue());
        std::mem::forget(killed.stand().unwrap());
        assert!(holder.is_awaited());
        let (slept, rung) = sleeps_until(&waiter, || holder.ring());
        assert!(rung && slept < LONG / 2, "the ring was the dead one's");
        assert_eq!(hand_overs(&holder), 1);
        assert!(!holder.is_awaited(), "the place is free again");
    }

    #[test]
    fn a_wait_without_a_ring_ends_and_leaves_the_place_free() {
        let scratch = Scratch::new("unrung");
        let queue = scratch.queue();
        let standing = queue.stand().unwrap();
        standing.wait(Duration::from_millis(5));
        assert!(!standing.is_rung());
        drop(standing);
        assert!(!queue.is_awaited());
    }

    #[test]
    fn a_page_full_of_anything_is_survived() {
        let scratch = Scratch::new("anything");
        let queue = scratch.queue();
        let words = queue.words().unwrap();
        for (number, place) in words.places.iter().enumerate() {
            place.ticket.store(u32::try_from(number).unwrap().wrapping_mul(u32::MAX / 3), SeqCst);
            place.wake_word.store(u32::MAX, SeqCst);
        }
        words.next_ticket.store(u32::MAX, SeqCst);
        words.waiting.store(u64::MAX, SeqCst);
        assert!(queue.stand().is_none(), "there is no place: it looks again and again");
        queue.rouse(PLACES + 1);
        queue.ring();
        assert!(!queue.is_awaited() && hand_overs(&queue) == 0);
        let standing = queue.stand().unwrap();
        queue.ring();
        assert!(standing.is_rung());
    }

    #[test]
    fn without_a_page_nobody_waits_and_nobody_is_told() {
        let queue = SharedLockQueue::inside(Path::new("/nowhere"), Path::new("/dev/null"), Arc::default());
        assert_eq!(queue.describe().0, "not open");
        assert!(!queue.is_awaited() && queue.stand().is_none());
        queue.open();
        queue.ring();
        let (state, why) = queue.describe();
        assert!(state == "refused" && why.contains("/nowhere"), "{state}: {why}");
    }
}
