//! The barrier, as connections and the shim above them use it: writers beside checkpoints that close it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use blockio::simulated::disk::SimDisk;
use waldio::ffi::codes::WAL_WRITE_LOCK;
use waldio::log::frame::{Salts, Version};
use waldio::options::Options;
use waldio::testing::model::{now, thread};
use waldio::testing::planted::Bug;
use waldio::{CLOSED_MAX, Connection, Database, Granted, Helpers, Nap, Outcome, SlowReader, TakenLock, Turn};

use crate::explore::Clock::{Fickle, Hasty, Patient};
use crate::explore::{assert_took_at_most, finds, holds, holds_under_all};

/// Between two tries for a lock, and how long a checkpoint tries (`sqlite/vfs/checkpoint_locks.rs`).
const TRY_EVERY: Duration = Duration::from_micros(20);
const TRY_MAX: Duration = Duration::from_millis(10);

const STAYED: Outcome =
    Outcome::Stayed(SlowReader { number: 4, snapshot: Version { salts: Salts([0; 8]), frames: 0 } });

/// The base VFS's locks. Nobody is interrupted while it is looked at.
#[derive(Debug, Default)]
struct Base {
    writer: bool,
    readers: usize,
}

struct House {
    database: Arc<Database>,
    base: Mutex<Base>,
}

impl House {
    fn new() -> House {
        let (path, disk) = (PathBuf::from("/app.db"), Arc::new(SimDisk::new()));
        let helpers = Helpers::inline();
        let database = Database::new(path, None, "unix".to_owned(), disk, helpers, Options::default());
        House { database: Arc::new(database), base: Mutex::default() }
    }

    fn base(&self) -> MutexGuard<'_, Base> {
        self.base.try_lock().expect("nobody is interrupted here")
    }

    fn connect(&self) -> Arc<Connection> {
        Arc::new(Connection::new(Arc::clone(&self.database), Options::default()))
    }

    /// A read lock, as SQLite asks for it: again, where the log may have changed.
    fn lock_shared(&self, connection: &Connection) {
        while connection.pass_barrier() {}
        step();
        self.base().readers += 1;
        connection.read_lock_granted(4).expect("nobody waits for what is durable");
    }

    fn unlock_shared(&self, connection: &Connection) {
        step();
        connection.before_read_unlock();
        self.base().readers -= 1;
    }

    /// The write lock, as `vfs/main_methods.rs` takes it; false: BUSY.
    fn lock(&self, connection: &Connection) -> bool {
        if connection.ask_to_write() == Turn::Wait {
            return false;
        }
        step();
        if std::mem::replace(&mut self.base().writer, true) {
            connection.write_refused();
            return false;
        }
        assert_eq!(connection.exclusive_lock_granted(WAL_WRITE_LOCK), Granted::KeepToWrite);
        true
    }

    fn unlock(&self, connection: &Connection) {
        connection.before_unlock(WAL_WRITE_LOCK);
        step();
        self.base().writer = false;
        connection.write_released();
    }

    /// One transaction that starts the log anew: SQLite reads it in the middle.
    fn write(&self, connection: &Arc<Connection>) {
        self.lock_shared(connection);
        while !self.lock(connection) {
            self.unlock_shared(connection);
            connection.nap(&Nap::until(now() + Duration::from_secs(60)), None::<fn() -> Option<TakenLock>>);
            self.lock_shared(connection);
        }
        assert!(!connection.pass_barrier(), "the writer was held at the barrier");
        self.unlock(connection);
        self.unlock_shared(connection);
    }

    /// A checkpoint behind the barrier, as `sqlite/vfs/checkpoint_locks.rs` runs it.
    fn checkpoint(&self, connection: &Connection) {
        if !self.database.barrier.close(now(), |_| true) {
            return;
        }
        self.database.queue.shut();
        let taken = self.tries(|base| !std::mem::replace(&mut base.writer, true));
        if taken {
            connection.flush_shared();
            let out = self.tries(|base| base.readers == 0);
            step();
            self.base().writer = false;
            connection.open_barrier(if out { Outcome::Succeeded } else { STAYED });
        } else {
            connection.open_barrier(Outcome::InVain);
        }
    }

    fn tries(&self, act: impl Fn(&mut Base) -> bool) -> bool {
        let until = now() + TRY_MAX;
        while !act(&mut self.base()) {
            if now() >= until {
                return false;
            }
            thread::sleep(TRY_EVERY);
        }
        true
    }
}

/// Where others run.
fn step() {
    shuttle::thread::sleep(Duration::ZERO);
}

fn writers_beside_checkpoints() {
    let house = House::new();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let connection = house.connect();
                for _ in 0..2 {
                    house.write(&connection);
                }
                connection.leave();
            });
        }
        let connection = house.connect();
        for _ in 0..2 {
            house.checkpoint(&connection);
        }
        connection.leave();
    });
    assert!(!house.database.barrier.is_closed(), "it stays closed");
    assert!(!house.database.queue.is_awaited(), "somebody stands in line who left");
}

fn writers_beside_quick_checkpoints() {
    writers_beside_checkpoints();
    // Far from any time-out: a few tries for each lock.
    assert_took_at_most(10 * TRY_EVERY);
}

fn readers_beside_checkpoints(readers: usize, times: usize) {
    let house = House::new();
    thread::scope(|scope| {
        for _ in 0..readers {
            scope.spawn(|| {
                let connection = house.connect();
                for _ in 0..times {
                    house.lock_shared(&connection);
                    house.unlock_shared(&connection);
                }
            });
        }
        let connection = house.connect();
        for _ in 0..times {
            house.checkpoint(&connection);
        }
    });
    assert_took_at_most(10 * TRY_EVERY);
}

fn one_reader_beside_a_checkpoint() {
    readers_beside_checkpoints(1, 1);
}

fn readers_beside_quick_checkpoints() {
    readers_beside_checkpoints(2, 2);
}

/// A checkpoint's thread stands still with the barrier closed.
fn a_reader_beside_a_checkpoint_that_never_ends() {
    let house = House::new();
    assert!(house.database.barrier.close(now(), |_| true));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| house.lock_shared(&house.connect()));
        }
    });
    assert_took_at_most(CLOSED_MAX);
}

#[test]
fn a_reader_passes_under_every_schedule() {
    holds_under_all(one_reader_beside_a_checkpoint);
}

#[test]
fn the_barrier_opens_for_everybody_and_holds_no_writer() {
    holds(&[Patient], readers_beside_quick_checkpoints);
    holds(&[Patient], writers_beside_quick_checkpoints);
    holds(&[Hasty, Fickle], writers_beside_checkpoints);
}

#[test]
fn readers_go_on_beside_a_checkpoint_that_never_ends() {
    holds(&[Patient], a_reader_beside_a_checkpoint_that_never_ends);
}

#[test]
fn planted_bugs_are_found() {
    finds(Bug::LostWakeUp, "somebody waited", &[Patient], readers_beside_quick_checkpoints);
    finds(Bug::WriterHeldAtBarrier, "held at the barrier", &[Patient], writers_beside_checkpoints);
    finds(
        Bug::ReservationNeverLapses,
        "somebody waited",
        &[Patient],
        a_reader_beside_a_checkpoint_that_never_ends,
    );
}
