//! Goal: only SQLite's own busy handler waits in the queue. A sleep of the application's lasts as long as it says, and keeps the
//! lock from nobody.
//! Method: connections that are refused the lock, and then do what an application may do; each test in a process of its own.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use real::child::{Running, in_own_process, no_python, python};
use real::place::{Scratch, skipped};
use real::sqlite::{Connection, ffi, system};
use real::sqlite_shim::{self, Event};
use real::writers::{number, open, prepare};

const BUSY_SNAPSHOT: i32 = 517;

/// Has `waiter` known for one that comes back from its naps, where it can be: `holder` has the lock meanwhile.
fn prove(holder: &Connection, waiter: &Connection) {
    holder.rows("BEGIN IMMEDIATE");
    waiter.busy_timeout(3);
    assert_eq!(code(waiter, "BEGIN IMMEDIATE"), Some(ffi::SQLITE_BUSY));
    holder.rows("COMMIT");
    waiter.busy_timeout(0);
}

fn code(db: &Connection, sql: &str) -> Option<i32> {
    db.run(sql).1.map(|error| error.code)
}

/// A connection without a busy handler, beside the one that made the database.
fn without_handler(path: &Path) -> Connection {
    let db = open(system(), path);
    db.busy_timeout(0);
    db.rows("SELECT count(*) FROM t");
    db
}

#[test]
fn an_applications_sleep_lasts_as_long_as_it_asked_for() {
    in_own_process("an_applications_sleep_lasts_as_long_as_it_asked_for", || {
        let scratch = Scratch::new("naps-sleep");
        let path = scratch.join("a.db");
        let mut holder = prepare(system(), &path);
        let waiter = without_handler(&path);
        for proven in [false, true] {
            if proven {
                prove(&holder, &waiter);
            }
            for milliseconds in [2, 200] {
                holder.rows("BEGIN IMMEDIATE");
                assert_eq!(code(&waiter, "BEGIN IMMEDIATE"), Some(ffi::SQLITE_BUSY));
                thread::scope(|scope| {
                    let committing = &mut holder;
                    scope.spawn(move || committing.rows("COMMIT"));
                    let began = Instant::now();
                    system().sleep(milliseconds);
                    let asked = Duration::from_millis(u64::try_from(milliseconds).unwrap());
                    assert!(began.elapsed() >= asked, "woken after {:?} of {asked:?}", began.elapsed());
                });
            }
        }
    });
}

#[test]
fn a_sleep_keeps_the_lock_from_nobody() {
    in_own_process("a_sleep_keeps_the_lock_from_nobody", || {
        let scratch = Scratch::new("naps-kept");
        let path = scratch.join("a.db");
        let holder = prepare(system(), &path);
        let refused = without_handler(&path);
        holder.busy_timeout(0);
        for proven in [false, true] {
            if proven {
                prove(&holder, &refused);
            }
            for milliseconds in [1, 2, 5] {
                holder.rows("BEGIN IMMEDIATE");
                holder.rows("INSERT INTO t VALUES (1, 1, 1)");
                assert_eq!(code(&refused, "INSERT INTO t VALUES (2, 2, 2)"), Some(ffi::SQLITE_BUSY));
                holder.rows("COMMIT");
                system().sleep(milliseconds);
                assert_eq!(
                    code(&holder, "BEGIN IMMEDIATE"),
                    None,
                    "nobody has the lock, nobody comes for it"
                );
                holder.rows("ROLLBACK");
            }
        }
    });
}

#[test]
fn another_connections_nap_keeps_the_lock_from_nobody() {
    in_own_process("another_connections_nap_keeps_the_lock_from_nobody", || {
        let scratch = Scratch::new("naps-other");
        let path = scratch.join("a.db");
        let holder = prepare(system(), &path);
        let refused = without_handler(&path);
        holder.busy_timeout(0);
        let (journal, locked) = (scratch.join("journal.db"), scratch.join("journal.db"));
        let (writer, reader) = (open(system(), &journal), open(system(), &locked));
        writer.rows("CREATE TABLE u(a)");
        reader.rows("SELECT * FROM u");
        reader.busy_timeout(1);
        for proven in [false, true] {
            if proven {
                prove(&holder, &refused);
            }
            holder.rows("BEGIN IMMEDIATE");
            assert_eq!(code(&refused, "INSERT INTO t VALUES (2, 2, 2)"), Some(ffi::SQLITE_BUSY));
            writer.rows("BEGIN EXCLUSIVE");
            holder.rows("COMMIT");
            assert_eq!(code(&reader, "SELECT * FROM u"), Some(ffi::SQLITE_BUSY), "it naps for 1 ms");
            assert_eq!(code(&holder, "BEGIN IMMEDIATE"), None, "nobody has the lock, nobody comes for it");
            holder.rows("ROLLBACK");
            writer.rows("ROLLBACK");
        }
    });
}

#[test]
fn a_busy_handler_is_woken_from_its_second_nap_on() {
    in_own_process("a_busy_handler_is_woken_from_its_second_nap_on", || {
        let scratch = Scratch::new("naps-woken");
        let path = scratch.join("a.db");
        let holder = prepare(system(), &path);
        let mut waiter = without_handler(&path);
        waiter.busy_timeout(60_000);
        // A thread may be late on a busy machine.
        let woken = (0..20).any(|_| {
            holder.rows("BEGIN IMMEDIATE");
            let before = number(&holder, "hand_overs");
            thread::scope(|scope| {
                let waiting = &mut waiter;
                scope.spawn(move || waiting.rows("BEGIN IMMEDIATE; COMMIT"));
                thread::sleep(Duration::from_millis(40));
                holder.rows("COMMIT");
            });
            number(&holder, "hand_overs") > before
        });
        assert!(woken, "nobody was handed the lock");
    });
}

/// A connection that got the write lock in a sleep of its application's, which took that for the busy handler's.
struct Early {
    scratch: Scratch,
    stock: Connection,
    holder: Connection,
    sleeper: Connection,
}

impl Early {
    fn new(name: &str) -> Early {
        let scratch = Scratch::new(name);
        let path = scratch.join("a.db");
        let holder = prepare(system(), &path);
        let sleeper = without_handler(&path);
        let stock = system().open_stock(&path);
        stock.busy_timeout(0);
        let early = Early { scratch, stock, holder, sleeper };
        early.get();
        early
    }

    /// Stock SQLite has the lock, the connection is refused it, and sleeps as its busy handler would; the lock is free by then.
    fn get(&self) {
        prove(&self.holder, &self.sleeper);
        self.stock.rows("BEGIN IMMEDIATE");
        assert_eq!(code(&self.sleeper, "INSERT INTO t VALUES (1, 1, 1)"), Some(ffi::SQLITE_BUSY));
        self.stock.rows("COMMIT");
        system().sleep(1);
    }

    /// Whether stock SQLite may write now.
    fn stock_writes(&self) -> bool {
        let code = code(&self.stock, "INSERT INTO t VALUES (2, 2, 2)");
        assert!(code.is_none() || code == Some(ffi::SQLITE_BUSY), "{code:?}");
        code.is_none()
    }

    fn ends_whole(self) {
        self.sleeper.rows("INSERT INTO t VALUES (3, 3, 3)");
        assert!(self.stock_writes());
        drop((self.sleeper, self.holder));
        assert_eq!(self.stock.one("PRAGMA integrity_check"), "ok");
        drop(self.scratch);
    }
}

#[test]
fn a_lock_that_came_in_a_sleep_and_is_not_wanted_is_given_back() {
    in_own_process("a_lock_that_came_in_a_sleep_and_is_not_wanted_is_given_back", || {
        let early = Early::new("naps-early");
        let began = Instant::now();
        let had_it = !early.stock_writes();
        while !early.stock_writes() {
            assert!(began.elapsed() < Duration::from_secs(10), "nobody else may write");
            thread::sleep(Duration::from_millis(1));
        }
        assert!(
            had_it || began.elapsed() > Duration::from_millis(8),
            "it was not taken: the test shows nothing"
        );
        early.ends_whole();
    });
}

#[test]
fn a_lock_that_came_in_a_sleep_goes_when_the_connection_does_something_else() {
    in_own_process("a_lock_that_came_in_a_sleep_goes_when_the_connection_does_something_else", || {
        type Act<'a> = (&'a str, &'a dyn Fn(&Early));
        let acts: [Act<'_>; 7] = [
            ("a checkpoint", &|early| drop(early.sleeper.rows("PRAGMA wal_checkpoint(PASSIVE)"))),
            ("one that wants the lock", &|early| drop(early.sleeper.rows("PRAGMA wal_checkpoint(TRUNCATE)"))),
            ("another's statement", &|early| drop(early.holder.rows("SELECT count(*) FROM t"))),
            ("a sleep", &|_| system().sleep(1)),
            ("exclusive locking", &|early| {
                early.sleeper.rows("PRAGMA locking_mode=EXCLUSIVE");
                early.sleeper.run("INSERT INTO t VALUES (4, 4, 4)");
                early.sleeper.rows("PRAGMA locking_mode=NORMAL; SELECT count(*) FROM t");
            }),
            ("a commit", &|early| drop(early.sleeper.rows("INSERT INTO t VALUES (4, 4, 4)"))),
            ("a rollback", &|early| drop(early.sleeper.rows("BEGIN IMMEDIATE; ROLLBACK"))),
        ];
        let early = Early::new("naps-acts");
        for (name, act) in acts {
            early.get();
            act(&early);
            assert!(early.stock_writes(), "behind {name}");
            // Where the machine stands still for so long the lock lapses before: once in three is enough.
            let gets_it_again = (0..3).any(|_| {
                early.get();
                !early.stock_writes()
            });
            assert!(gets_it_again, "never again behind {name}");
        }
        early.ends_whole();
        let mut early = Early::new("naps-thread");
        thread::scope(|scope| {
            // The thread that slept does nothing meanwhile.
            let sleeper = &mut early.sleeper;
            scope.spawn(move || sleeper.rows("PRAGMA wal_checkpoint(PASSIVE)"));
        });
        assert!(early.stock_writes(), "behind another thread's checkpoint");
        early.ends_whole();
        let mut early = Early::new("naps-closes");
        early.sleeper = without_handler(&early.scratch.join("a.db"));
        assert!(early.stock_writes(), "behind a close");
        early.ends_whole();
    });
}

#[test]
fn a_lock_that_came_in_a_sleep_is_the_transactions_own_and_does_not_lapse() {
    in_own_process("a_lock_that_came_in_a_sleep_is_the_transactions_own_and_does_not_lapse", || {
        let early = Early::new("naps-own");
        early.sleeper.rows("BEGIN IMMEDIATE; INSERT INTO t VALUES (5, 5, 5)");
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(60) {
            assert!(!early.stock_writes(), "two write at once");
            thread::sleep(Duration::from_millis(1));
        }
        early.sleeper.rows("COMMIT");
        assert!(early.stock_writes());
        early.ends_whole();
    });
}

#[test]
fn without_mutexes_no_lock_comes_in_a_sleep() {
    in_own_process("without_mutexes_no_lock_comes_in_a_sleep", || {
        // The thread that would give it back cannot use the base VFS then.
        real::sqlite_config::take_mutexes_away();
        let early = Early::new("naps-mutexes");
        assert!(early.stock_writes(), "a lock was taken that nobody can give back");
        early.ends_whole();
    });
}

/// What a connection is told that upgrades a stale snapshot while the lock is free, and kept for another one.
fn told_beside_a_reservation() -> Option<i32> {
    /// How often the waiter asked, in vain or not.
    static ASKS: AtomicU32 = AtomicU32::new(0);
    let scratch = Scratch::new("naps-stale");
    let path = scratch.join("a.db");
    let holder = prepare(system(), &path);
    let stale = without_handler(&path);
    stale.rows("BEGIN; SELECT count(*) FROM t");
    holder.rows("INSERT INTO t VALUES (1, 1, 1)");
    ASKS.store(0, SeqCst);
    let (tell, comes) = channel();
    let (go_on, may_ask) = channel();
    thread_local! {
        static WAITS: std::cell::RefCell<Option<Box<dyn Fn()>>> = const { std::cell::RefCell::new(None) };
    }
    sqlite_shim::register(system(), c"asks", None, true, |event| {
        if event == Event::WriteLock {
            WAITS.with_borrow(|waits| waits.as_ref().map(|waits| waits()));
        }
    });
    holder.rows("BEGIN IMMEDIATE");
    thread::scope(|scope| {
        let path = &path;
        scope.spawn(move || {
            let waiter = open(system(), path);
            // Asks, naps for 1 ms, asks, and naps in the queue: the third time it comes for what is kept.
            let third = move || {
                if ASKS.fetch_add(1, SeqCst) == 2 {
                    tell.send(()).unwrap();
                    may_ask.recv().unwrap();
                }
            };
            WAITS.set(Some(Box::new(third)));
            waiter.rows("BEGIN IMMEDIATE; COMMIT");
            WAITS.set(None);
        });
        while ASKS.load(SeqCst) < 2 {
            thread::sleep(Duration::from_micros(100));
        }
        thread::sleep(Duration::from_micros(500));
        holder.rows("COMMIT");
        comes.recv().unwrap();
        let told = code(&stale, "INSERT INTO t VALUES (2, 2, 2)");
        go_on.send(()).unwrap();
        told
    })
}

#[test]
fn a_stale_snapshot_is_told_so_though_the_lock_is_kept_for_another() {
    in_own_process("a_stale_snapshot_is_told_so_though_the_lock_is_kept_for_another", || {
        assert_eq!(told_beside_a_reservation(), Some(BUSY_SNAPSHOT));
    });
}

/// How long those waited that were told BUSY, of two connections with this timeout beside a stock process that commits
/// without a pause.
fn refused_after(path: &Path, timeout: Duration) -> Vec<Duration> {
    const ENOUGH: usize = 5;
    let (name, writer) = (path.to_str().unwrap(), format!("{timeout:?}"));
    let mut stock =
        Running::start(&mut python("worker.py", &["write", name, "stock", &writer, "1000000", "OFF"]));
    assert_eq!(stock.line().as_deref(), Some("ack 1"));
    let waits = Mutex::new(Vec::new());
    let until = Instant::now() + Duration::from_secs(5);
    thread::scope(|scope| {
        for _ in 0..2 {
            let waits = &waits;
            scope.spawn(move || {
                let db = open(system(), path);
                db.busy_timeout(i32::try_from(timeout.as_millis()).unwrap());
                while Instant::now() < until && waits.lock().unwrap().len() < ENOUGH {
                    let began = Instant::now();
                    if code(&db, "INSERT INTO t VALUES(1, 1, 1)") == Some(ffi::SQLITE_BUSY) {
                        waits.lock().unwrap().push(began.elapsed());
                    }
                }
            });
        }
        while Instant::now() < until && waits.lock().unwrap().len() < ENOUGH && stock.line().is_some() {}
        stock.kill();
    });
    waits.into_inner().unwrap()
}

#[test]
fn nobody_is_told_busy_before_the_timeout() {
    in_own_process("nobody_is_told_busy_before_the_timeout", || {
        if let Some(why) = no_python() {
            return skipped(&why);
        }
        let scratch = Scratch::new("naps-timeout");
        let path = scratch.join("a.db");
        drop(prepare(system(), &path));
        for timeout in [30, 100].map(Duration::from_millis) {
            let waits = refused_after(&path, timeout);
            assert!(waits.iter().all(|wait| *wait >= timeout), "told BUSY after {waits:?} of {timeout:?}");
        }
    });
}

/// A process without waldio has the lock until it is killed.
const HOLDER: &str = "
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute('BEGIN IMMEDIATE')
print('holds', flush=True)
time.sleep(60)
";

/// Stock SQLite wakes no waiter, so that one tries again and again. With a fixed pause of 50 us it did so 9,000 times a second.
#[test]
fn a_long_wait_for_another_process_looks_ever_less_often() {
    in_own_process("a_long_wait_for_another_process_looks_ever_less_often", || {
        if let Some(why) = no_python() {
            return skipped(&why);
        }
        let scratch = Scratch::new("naps-long");
        let path = scratch.join("a.db");
        let waiter = prepare(system(), &path);
        waiter.busy_timeout(1000);
        let mut stock = Running::start(Command::new("/usr/bin/python3").args(["-c", HOLDER]).arg(&path));
        assert_eq!(stock.line().as_deref(), Some("holds"));
        let sleeps = || {
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            line.unwrap().trim().parse::<u32>().unwrap()
        };
        let before = sleeps();
        assert_eq!(code(&waiter, "BEGIN IMMEDIATE"), Some(ffi::SQLITE_BUSY));
        let count = sleeps() - before;
        assert!((20..1000).contains(&count), "{count} sleeps in a second");
        stock.kill();
    });
}

/// Transactions over two databases: SQLite counts on in the second where it has waited for the first, and its naps there are longer.
#[test]
fn who_waited_for_one_database_waits_in_the_queue_of_the_next() {
    const COMMITS: usize = 100;
    in_own_process("who_waited_for_one_database_waits_in_the_queue_of_the_next", || {
        let scratch = Scratch::new("naps-attached");
        let paths = ["a.db", "z.db"].map(|name| scratch.join(name));
        let [first, second] = paths.each_ref().map(|path| prepare(system(), path));
        thread::scope(|scope| {
            for writer in 0..2 {
                let [a, z] = &paths;
                scope.spawn(move || {
                    let db = open(system(), a);
                    db.rows(&format!("ATTACH '{}' AS z; PRAGMA z.synchronous=FULL", z.display()));
                    for number in 0..COMMITS {
                        db.rows("BEGIN IMMEDIATE");
                        for name in ["main", "z"] {
                            db.rows(&format!("INSERT INTO {name}.t VALUES ({writer}, {number}, 0)"));
                        }
                        db.rows("COMMIT");
                    }
                });
            }
        });
        let handed_over = |path: &Path| -> usize {
            let of =
                format!("FROM waldio_status WHERE database = '{}' AND name = 'hand_overs'", path.display());
            first.one(&format!("SELECT value {of}")).parse().unwrap()
        };
        let [a, z] = paths.each_ref().map(|path| handed_over(path));
        assert!(z > COMMITS / 4, "{z} of the second database, {a} of the first");
        for db in [&first, &second] {
            assert_eq!(db.one("SELECT count(*) FROM t"), (2 * COMMITS).to_string());
        }
    });
}

/// The second database's holder is none of waldio's, so the base VFS is asked, and refuses: the wait goes on all the same.
#[test]
fn a_wait_that_goes_on_in_the_next_database_is_not_told_busy_before_the_timeout() {
    const TIMEOUT: Duration = Duration::from_millis(50);
    in_own_process("a_wait_that_goes_on_in_the_next_database_is_not_told_busy_before_the_timeout", || {
        let scratch = Scratch::new("naps-next");
        let paths = ["a.db", "z.db"].map(|name| scratch.join(name));
        let [mut holder, _keeps] = paths.each_ref().map(|path| prepare(system(), path));
        let stock = system().open_stock(&paths[1]);
        let waiter = open(system(), &paths[0]);
        waiter.rows(&format!("ATTACH '{}' AS z", paths[1].display()));
        prove(&holder, &waiter);
        waiter.busy_timeout(i32::try_from(TIMEOUT.as_millis()).unwrap());
        stock.rows("BEGIN IMMEDIATE");
        let waits: Vec<Duration> = (0..10)
            .map(|_| {
                holder.rows("BEGIN IMMEDIATE");
                let asks = &Barrier::new(2);
                thread::scope(|scope| {
                    let committing = &mut holder;
                    scope.spawn(move || {
                        asks.wait();
                        // In the middle of the fifth nap, which is the last whole one.
                        thread::sleep(Duration::from_millis(24));
                        committing.rows("COMMIT");
                    });
                    asks.wait();
                    let began = Instant::now();
                    assert_eq!(code(&waiter, "BEGIN IMMEDIATE"), Some(ffi::SQLITE_BUSY));
                    began.elapsed()
                })
            })
            .collect();
        assert!(waits.iter().all(|wait| *wait >= TIMEOUT), "told BUSY after {waits:?} of {TIMEOUT:?}");
    });
}
