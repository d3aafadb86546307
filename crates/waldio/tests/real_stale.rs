//! Goal: a connection that gets the write lock with a snapshot that others have overtaken, which is of no use to it, tries
//! again at once, and its busy timeout stays what it was.
//! Method: a shim above waldio lets another connection commit whenever the one asks for the lock.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use real::child::in_own_process;
use real::place::Scratch;
use real::sqlite::{Connection, system};
use real::sqlite_shim::{self, Event};
use real::writers::prepare;

/// What the other connection does when the lock is asked for.
struct Rival {
    db: Connection,
    /// So many times it commits, and after those it may keep the lock.
    commits: u32,
    keeps: bool,
    /// How long it was at it.
    took: Duration,
}

impl Rival {
    fn act(&mut self) {
        let began = Instant::now();
        if self.commits > 0 {
            self.commits -= 1;
            self.db.rows("INSERT INTO t VALUES (2, 2, 2)");
        } else if std::mem::take(&mut self.keeps) {
            self.db.rows("BEGIN IMMEDIATE");
        }
        self.took += began.elapsed();
    }
}

/// A connection that is overtaken, and its rival, on a new database.
fn rivals(scratch: &Scratch) -> (Connection, Arc<Mutex<Rival>>) {
    let path = scratch.join("a.db");
    let db = prepare(system(), &path);
    let rival = Arc::new(Mutex::new(Rival { db, commits: 0, keeps: false, took: Duration::ZERO }));
    let acting = Arc::clone(&rival);
    sqlite_shim::register(system(), c"overtaken", Some(c"waldio"), false, move |event| {
        if event == Event::WriteLock {
            // On a thread of its own: what this thread does between two naps tells waldio whose naps they are.
            std::thread::scope(|scope| scope.spawn(|| acting.lock().unwrap().act()).join()).unwrap();
        }
    });
    let uri = format!("file:{}?vfs=overtaken", path.display());
    let overtaken = system().open_with(&uri, None).unwrap();
    overtaken.rows("SELECT count(*) FROM t");
    (overtaken, rival)
}

#[test]
fn who_was_overtaken_naps_no_longer_than_the_lock_is_held() {
    in_own_process("who_was_overtaken_naps_no_longer_than_the_lock_is_held", || {
        let scratch = Scratch::new("overtaken");
        let (overtaken, rival) = rivals(&scratch);
        // SQLite's handler naps 1, 2, 5, 10, 15, 20, 25 and 25 ms: 103 in all, if nobody cuts them short.
        let napped = (0..5).map(|_| {
            *rival.lock().unwrap() = {
                let db = system().open(&scratch.join("a.db"));
                Rival { db, commits: 8, keeps: false, took: Duration::ZERO }
            };
            let began = Instant::now();
            overtaken.rows("INSERT INTO t VALUES (1, 1, 1)");
            let rival = rival.lock().unwrap();
            assert_eq!(rival.commits, 0, "it was overtaken eight times");
            began.elapsed() - rival.took
        });
        let shortest = napped.min().unwrap();
        assert!(shortest < Duration::from_millis(60), "{shortest:?} of naps for a lock that was free");
    });
}

#[test]
fn who_was_overtaken_still_waits_as_long_as_it_asked_for() {
    in_own_process("who_was_overtaken_still_waits_as_long_as_it_asked_for", || {
        let scratch = Scratch::new("overtaken-timeout");
        let (overtaken, rival) = rivals(&scratch);
        overtaken.busy_timeout(300);
        {
            let mut rival = rival.lock().unwrap();
            (rival.commits, rival.keeps) = (6, true);
        }
        let began = Instant::now();
        let error = overtaken.run("INSERT INTO t VALUES (1, 1, 1)").1.expect("the lock is held");
        assert_eq!(error.primary(), 5, "{error}");
        // The naps of the first six tries, 53 ms, ended at once, and are made up for.
        assert!(began.elapsed() >= Duration::from_millis(300), "BUSY after {:?}", began.elapsed());
    });
}
