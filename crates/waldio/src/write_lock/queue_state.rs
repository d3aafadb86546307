//! The queue for the write lock: who stands in it, whom the lock is kept for, who may pass. Decides; waits for nobody.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::testing::planted::{self, Bug};
use crate::threads::primitives::{Condvar, now};

/// How long a reservation holds: a woken thread needs some 50 us, and a busy machine's scheduler 4 ms and more.
pub const RESERVATION: Duration = Duration::from_millis(10);
/// The pause between two tries for a lock that another process holds, of all processes that wait together.
const TRY_EVERY: Duration = Duration::from_micros(50);
/// The longest pause of one process. It is also the pause where others ring: a holder that should may be killed, stopped, or stock SQLite.
pub const TRY_UNRUNG: Duration = Duration::from_millis(4);
/// After a long wait the pause is this part of the wait.
const TRY_PART: u32 = 32;
/// Whoever sleeps until it is woken looks again after this time: what was kept for another may have lapsed since.
pub const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// A place in the queue of a connection that neither sleeps nor asks is kept this long.
const PLACE_KEPT: Duration = Duration::from_secs(1);
/// The lock changed hands between connections this recently: it is contended.
const CONTENDED: Duration = Duration::from_millis(5);
/// A reservation is passed at most so often while its thread wakes up.
pub const PASSES_MAX: u32 = 8;

/// Whoever comes back for the lock at once again and again may keep it from others for so long: then a hand-over, which takes longer than
/// a commit that waits for no flush, comes once in many commits.
pub const SLICE: Duration = Duration::from_millis(1);
/// So soon after it gave the lock back a connection comes that does nothing but write, and waits for no flush.
const AT_ONCE: Duration = Duration::from_micros(30);
/// So often in a row it has come back at once.
const STREAK: u32 = 4;

/// What `xShmLock` of the write lock should do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Ask the base VFS for the lock.
    Try,
    /// Answer BUSY: another connection has the lock, or has it next.
    Wait,
    /// Answer BUSY_SNAPSHOT: the lock is on its way to another connection, and SQLite would give it back at once.
    Stale,
}

/// One connection's place to be woken at.
#[derive(Debug, Default)]
pub struct Sleeper {
    /// Rung when the lock is kept for it.
    pub woken: Condvar,
}

/// Who waits for the write lock and who may have it. Connections go by their number in this process.
#[derive(Debug, Default)]
pub struct QueueState {
    /// Who has the lock, or is asking the base VFS for it.
    pub holder: Option<usize>,
    /// It got the lock in its sleep, and SQLite has not asked yet.
    early: bool,
    /// Who stands in it, in the order of coming.
    pub places: VecDeque<QueuedConnection>,
    /// Whom the lock is kept for.
    pub reserved: Option<Reserved>,
    /// How often the present reservation was passed.
    passes: u32,
    /// A checkpoint has the lock, or will have it next.
    pub shut: bool,
    /// The base VFS refused the lock when no connection of this process held it.
    foreign: bool,
    /// Who had the lock last, and since when the lock counts as contended.
    last: Option<usize>,
    contended_until: Option<Instant>,
    /// Until when the last may come back for it before others.
    slice_until: Option<Instant>,
    /// How soon connections come back for it.
    habits: BTreeMap<usize, Habit>,
}

/// How soon a connection comes back for the lock.
#[derive(Debug, Default)]
struct Habit {
    /// When it gave the lock back.
    released: Option<Instant>,
    /// It has not asked since.
    away: bool,
    /// How often in a row it asked at once.
    at_once: u32,
    /// It waited for a flush since.
    pauses: bool,
}

impl Habit {
    fn is_back_at_once(&self, now: Instant) -> bool {
        self.released.is_some_and(|released| now.saturating_duration_since(released) < AT_ONCE)
    }
}

/// One connection in the queue.
#[derive(Debug)]
pub struct QueuedConnection {
    /// The number of the connection in this process.
    pub connection: usize,
    /// Where it can be woken.
    pub sleeper: Arc<Sleeper>,
    /// Its busy handler naps: it can be reached.
    pub asleep: bool,
    /// It was woken, and has not looked yet.
    pub woken: bool,
    /// It waits for flushes between its transactions.
    pauses: bool,
    /// It looks by itself when the holder's slice is over.
    pub timed: bool,
    /// It sleeps at this place among other processes.
    pub shared_place: Option<usize>,
    /// Its first BUSY, and when it was last heard of.
    pub came: Instant,
    seen: Instant,
}

impl QueuedConnection {
    /// Has its thread look.
    pub fn wake(&mut self) {
        if !self.woken && !planted::is(Bug::LostWakeUp) {
            self.woken = true;
            self.sleeper.woken.notify_one();
        }
    }
}

/// The lock is kept for one connection.
#[derive(Debug, Clone, Copy)]
pub struct Reserved {
    /// The number of the connection in this process.
    pub connection: usize,
    /// How long.
    pub until: Instant,
    /// Its thread is awake: nobody passes it any more.
    pub awake: bool,
}

/// What a thread in the queue does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// It is next.
    Mine,
    /// It is next where it gets the lock: another process had that when it was last tried for.
    OtherProcess,
    /// It looks again at this time, if nobody wakes it before.
    At(Instant),
    /// It is first, and looks again when the slice of the one who writes is over.
    Slice(Instant),
    /// It sleeps until it is woken, or until `LOOK_AGAIN` is over.
    Woken,
}

/// What became of a try for the lock in the name of a connection that sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tried {
    /// It has the lock.
    Got,
    /// Another process does.
    Busy,
    /// Nothing was tried: SQLite has to ask for it.
    Not,
}

impl QueueState {
    /// Whether the lock is free for this connection, a reservation that it may pass included.
    pub fn may_take(&self, connection: usize, now: Instant) -> bool {
        if self.shut || self.holder.is_some() && !planted::is(Bug::HolderIgnored) {
            return false;
        }
        if self.is_in_slice(connection, now) {
            return self.reserved.is_none_or(|kept| !kept.awake || kept.connection == connection);
        }
        let is_few = self.passes < PASSES_MAX || planted::is(Bug::PassesUnlimited);
        let may_pass = !self.passes_others(connection) || is_few;
        match self.reserved {
            Some(reserved) if now >= reserved.until => may_pass,
            Some(reserved) if reserved.connection == connection => true,
            Some(reserved) => !reserved.awake && is_few,
            None => may_pass,
        }
    }

    /// A connection asks for the lock whose snapshot is old: SQLite would give it back at once. Where another connection of this process
    /// has it, or it is kept for one, that one is not disturbed.
    pub fn ask_in_vain(&mut self, connection: usize, sleeper: &Arc<Sleeper>, now: Instant) -> Turn {
        let is_held = self.holder.is_some_and(|holder| holder != connection) && !self.early;
        let is_reserved = self.reserved.is_some_and(|kept| kept.connection != connection && now < kept.until);
        let is_kept = is_reserved || self.early && self.holder != Some(connection);
        if !is_held && !is_kept {
            return Turn::Try;
        }
        self.wait_in_queue(connection, sleeper, now);
        if is_held { Turn::Wait } else { Turn::Stale }
    }

    /// True while the lock is kept for anybody.
    pub fn is_kept(&self, now: Instant) -> bool {
        self.reserved.is_some_and(|reserved| now < reserved.until)
    }

    /// True where another process had the lock when it was last asked for.
    pub fn is_foreign(&self) -> bool {
        self.foreign
    }

    /// Keeps the lock for a thread that is awake and asks for it next.
    pub fn claim(&mut self, connection: usize, now: Instant) {
        self.count_pass(connection, now);
        // What was kept for it stays kept for as long as it was.
        let kept = self.reserved.filter(|reserved| reserved.connection == connection && now < reserved.until);
        let until = kept.map_or(now + RESERVATION, |reserved| reserved.until);
        self.reserved = Some(Reserved { connection, until, awake: true });
    }

    /// A connection asks for the lock.
    pub fn note_ask(&mut self, connection: usize, now: Instant) {
        let habit = self.habits.entry(connection).or_default();
        if std::mem::take(&mut habit.away) {
            habit.at_once = if habit.is_back_at_once(now) { habit.at_once + 1 } else { 0 };
        }
    }

    /// A connection waits for a flush between its transactions: others need not wait for it.
    pub fn note_pause(&mut self, connection: usize) {
        let habit = self.habits.entry(connection).or_default();
        (habit.at_once, habit.away, habit.pauses) = (0, false, true);
    }

    /// A connection closes: it holds nothing and waits for nothing.
    pub fn forget(&mut self, connection: usize, now: Instant) {
        self.leave(connection);
        self.drop_kept_for(connection);
        if self.holder == Some(connection) {
            self.release(now);
        }
        self.habits.remove(&connection);
    }

    /// True while this connection may come back for the lock before others: it had it last, and does nothing but write. Not while a
    /// connection waits that also waits for flushes: it would get one commit for many of the others.
    fn is_in_slice(&self, connection: usize, now: Instant) -> bool {
        let Some(habit) = self.habits.get(&connection) else { return false };
        self.last == Some(connection)
            && habit.at_once >= STREAK
            && self.places.iter().all(|place| !place.pauses)
            && self.slice_until.is_some_and(|until| now < until)
            && (self.holder == Some(connection) || habit.is_back_at_once(now))
    }

    /// When others look for the lock again, while one that had it last may come back for it.
    pub fn slice_end(&self, now: Instant) -> Option<Instant> {
        let last = self.last.filter(|last| !self.shut && self.is_in_slice(*last, now))?;
        self.holder.is_none_or(|holder| holder == last).then_some(self.slice_until?)
    }

    /// The connection asks the base VFS for the lock: from here on it counts as its holder, not from the grant on, because
    /// a thread may lose the processor between the two.
    pub fn take(&mut self, connection: usize, now: Instant) {
        let claimed = self.reserved.is_some_and(|reserved| reserved.connection == connection);
        if !claimed {
            self.count_pass(connection, now);
        }
        self.reserved = None;
        (self.holder, self.early) = (Some(connection), false);
    }

    /// Nobody has the lock any more.
    pub fn release(&mut self, now: Instant) {
        if let Some(holder) = self.holder.take() {
            let habit = self.habits.entry(holder).or_default();
            (habit.released, habit.away, habit.pauses) = (Some(now), true, false);
        }
        self.early = false;
    }

    /// The lock goes to `connection`: past those who sleep in the queue before it, or it was its turn.
    fn count_pass(&mut self, connection: usize, now: Instant) {
        if !self.passes_others(connection) {
            self.passes = 0;
        } else if !self.is_in_slice(connection, now) {
            self.passes += 1;
        }
    }

    /// True where somebody sleeps in the queue before this connection.
    fn passes_others(&self, connection: usize) -> bool {
        let first = self.places.iter().find(|place| place.asleep || place.connection == connection);
        first.is_some_and(|place| place.connection != connection)
    }

    /// True where this connection waits for another process, and nobody stands before it.
    pub fn waits_for_other_process(&self, connection: usize) -> bool {
        let first = self.places.iter().find(|place| place.asleep);
        let waits = self.foreign && !self.shut && self.holder.is_none();
        waits && first.is_some_and(|place| place.connection == connection)
    }

    /// A thread in the queue looks.
    pub fn next_look(&self, connection: usize, now: Instant) -> Look {
        let first = self.places.iter().find(|place| place.asleep);
        let is_first = first.is_some_and(|place| place.connection == connection);
        if let Some(end) = self.slice_end(now).filter(|_| is_first) {
            return Look::Slice(end);
        }
        if self.shut || self.holder.is_some() {
            return Look::Woken;
        }
        match self.reserved {
            // Whoever asked before the reservation was made may still have got the lock first; then it waits on.
            Some(reserved) if reserved.connection == connection && now < reserved.until => return Look::Mine,
            Some(reserved) if now < reserved.until => return Look::At(reserved.until),
            _ => {}
        }
        if !is_first {
            return Look::Woken;
        }
        // Nobody of this process has it: it is this one's turn.
        if self.foreign { Look::OtherProcess } else { Look::Mine }
    }

    /// A connection that sleeps got the lock: SQLite asks for it next.
    pub fn take_asleep(&mut self, connection: usize, now: Instant) {
        self.take(connection, now);
        (self.early, self.foreign) = (true, false);
    }

    /// The base VFS refused the lock to a connection that asked for it, with or without having taken it.
    pub fn refuse(&mut self, connection: usize, sleeper: &Arc<Sleeper>, now: Instant) {
        if self.holder == Some(connection) {
            self.release(now);
        }
        self.drop_kept_for(connection);
        if self.holder.is_none() && !self.shut {
            // Another process has it, or somebody of this one whom the queue does not know.
            self.foreign = true;
        }
        self.wait_in_queue(connection, sleeper, now);
    }

    /// The base VFS granted the lock to one that gives it back at once, and keeps its place.
    pub fn grant_in_vain(&mut self, connection: usize) {
        self.foreign = false;
        (self.holder, self.early) = (Some(connection), false);
        self.drop_kept_for(connection);
    }

    /// What is kept for a connection is not any more.
    pub fn drop_kept_for(&mut self, connection: usize) {
        self.reserved = self.reserved.filter(|reserved| reserved.connection != connection);
    }

    /// The base VFS granted the lock. Returns the place that the connection had, and whether others want the lock too
    /// or had it a moment ago.
    pub fn grant(&mut self, connection: usize, now: Instant) -> (Option<QueuedConnection>, bool) {
        self.foreign = false;
        (self.holder, self.early) = (Some(connection), false);
        let place = self.leave(connection);
        if !self.places.is_empty() || self.last.is_some_and(|last| last != connection) {
            self.contended_until = Some(now + CONTENDED);
        }
        if self.last != Some(connection) {
            self.slice_until = Some(now + SLICE);
        }
        self.last = Some(connection);
        (place, self.contended_until.is_some_and(|until| now < until))
    }

    /// Whom to hand the lock to: the first who can be reached. Places of those not heard of for long are given up.
    pub fn first_asleep(&mut self, now: Instant) -> Option<&mut QueuedConnection> {
        self.places.retain(|place| place.asleep || now.saturating_duration_since(place.seen) < PLACE_KEPT);
        self.places.iter_mut().find(|place| place.asleep)
    }

    /// Puts a connection in the queue, or notes that it is still there.
    pub fn wait_in_queue(&mut self, connection: usize, sleeper: &Arc<Sleeper>, now: Instant) {
        let pauses = self.habits.get(&connection).is_some_and(|habit| habit.pauses);
        match self.places.iter_mut().find(|place| place.connection == connection) {
            Some(place) => (place.seen, place.pauses) = (now, pauses),
            None => {
                let sleeper = Arc::clone(sleeper);
                let place = QueuedConnection {
                    connection,
                    sleeper,
                    asleep: false,
                    woken: false,
                    pauses,
                    timed: false,
                    shared_place: None,
                    came: now,
                    seen: now,
                };
                if planted::is(Bug::NewestFirst) {
                    self.places.push_front(place);
                } else {
                    self.places.push_back(place);
                }
            }
        }
        self.contended_until = Some(now + CONTENDED);
    }

    /// A connection's busy handler naps at a place among other processes.
    pub fn set_shared_place(&mut self, connection: usize, number: usize) {
        if let Some(place) = self.places.iter_mut().find(|place| place.connection == connection) {
            place.shared_place = Some(number);
        }
    }

    /// When a connection tries again for a lock that another process holds, while so many processes wait. Their tries together cost as
    /// much as those of one process; a long wait costs next to nothing.
    pub fn try_again(&self, connection: usize, processes: u32, now: Instant) -> Instant {
        let came =
            self.places.iter().find(|place| place.connection == connection).map_or(now, |place| place.came);
        let part = now.saturating_duration_since(came) / TRY_PART;
        now + TRY_EVERY.saturating_mul(processes.max(1)).max(part).min(TRY_UNRUNG)
    }

    /// Takes a connection out of the queue.
    pub fn leave(&mut self, connection: usize) -> Option<QueuedConnection> {
        let at = self.places.iter().position(|place| place.connection == connection)?;
        self.places.remove(at)
    }

    /// A connection that sleeps looks by itself when the slice is over.
    pub fn set_timed(&mut self, connection: usize) {
        self.drop_kept_for(connection);
        if let Some(place) = self.places.iter_mut().find(|place| place.connection == connection) {
            place.timed = true;
        }
    }

    /// True where a thread of this process woke the connection since it slept.
    pub fn was_woken(&self, connection: usize) -> bool {
        self.places.iter().any(|place| place.connection == connection && place.woken)
    }

    /// A connection's busy handler naps, or is done.
    pub fn set_asleep(&mut self, connection: usize, asleep: bool) {
        if let Some(place) = self.places.iter_mut().find(|place| place.connection == connection) {
            place.asleep = asleep;
            (place.woken, place.timed) = (false, false);
            place.shared_place = None;
            place.seen = now();
        }
    }
}

#[cfg(test)]
mod tests;
