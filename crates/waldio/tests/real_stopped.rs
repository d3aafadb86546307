//! Goal: a process that stands still, whatever it was doing, makes nobody wait longer than his busy timeout says.
//! Method: a crew of writers is stopped at random moments (SIGSTOP), until it was caught with the write lock, without, and
//! inside of a flush; writers of this process go on or hear BUSY in time. Then it goes on, or is killed.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use real::chance::{Chance, seed};
use real::crew::{Crew, Orders, at_work};
use real::place::Scratch;
use real::promises::{check, prepare};
use real::sqlite::system;

const BUSY: i32 = 5;
/// What SQLite itself answers after 10 s where the stopped process was changing the wal-index's header, or had all read
/// locks for the moment in which a log is started anew or found to be unused: nobody can begin to read then.
const PROTOCOL: i32 = 15;
/// So rare that more of them mean something else.
const PROTOCOLS_MAX: u32 = 2;
const TIMEOUT_MS: i32 = 150;
/// A loaded machine is late; a wait for the stopped process is endless.
const LATE_MAX: Duration = Duration::from_secs(10);
/// Of each kind of stop.
const STOPS_MIN: u32 = 3;
const STOPS_MAX: u32 = 200;

/// What the crew was caught with.
#[derive(Debug, Default)]
struct Caught {
    with_the_lock: u32,
    without: u32,
    in_a_flush: u32,
    out_of_reach: u32,
}

impl Caught {
    fn is_enough(&self) -> bool {
        self.with_the_lock.min(self.without).min(self.in_a_flush) >= STOPS_MIN
    }
}

/// Four connections write a row each, at once; whether they did, or none where one of them could not even read. Each
/// COMMIT is durable, or BUSY comes in time.
fn write_beside(database: &Path, round: u32) -> Option<bool> {
    let write = |writer: u32| {
        let db = system().open(database);
        if let Some(error) = db.run("PRAGMA synchronous=FULL").1 {
            assert_eq!(error.primary(), PROTOCOL, "round {round}: {error}");
            return None;
        }
        db.busy_timeout(TIMEOUT_MS);
        let began = Instant::now();
        let error = db.run(&format!("INSERT INTO rows VALUES ('beside {round} {writer}', 1, 1)")).1;
        if error.as_ref().is_some_and(|error| error.primary() == PROTOCOL) {
            return None;
        }
        let (waited, asked) = (began.elapsed(), Duration::from_millis(TIMEOUT_MS.try_into().unwrap()));
        assert!(waited < asked + LATE_MAX, "round {round}: waited {waited:?} instead of {asked:?}");
        if let Some(error) = &error {
            assert_eq!(error.primary(), BUSY, "round {round}: {error}");
            assert!(waited >= asked, "round {round}: BUSY after {waited:?} instead of {asked:?}");
        }
        Some(error.is_none())
    };
    thread::scope(|scope| {
        let writers = [0, 1, 2, 3].map(|writer| scope.spawn(move || write(writer)));
        let wrote = writers.map(|writer| writer.join().unwrap());
        if wrote.contains(&None) {
            return None;
        }
        assert!(wrote.iter().all(|one| *one == wrote[0]), "round {round}: {wrote:?} beside one lock");
        wrote[0]
    })
}

fn start(test: &str, database: &Path, number: u32) -> Crew {
    let crew = Orders::new(database, &format!("crew{number}")).start(test);
    crew.goes_on();
    crew
}

#[test]
fn a_stopped_process_makes_nobody_wait_longer_than_he_asked() {
    const NAME: &str = "a_stopped_process_makes_nobody_wait_longer_than_he_asked";
    if at_work(NAME) {
        return;
    }
    let seed = seed();
    let mut chance = Chance::new(seed);
    let scratch = Scratch::new("stopped");
    let database = scratch.join("app.db");
    let db = prepare(&database);
    let (mut caught, mut round, mut gone) = (Caught::default(), 0, Vec::new());
    let mut crew = start(NAME, &database, round);
    while !caught.is_enough() {
        round += 1;
        assert!(round < STOPS_MAX, "the stops tested too little: {caught:?}");
        thread::sleep(Duration::from_micros(chance.below(20_000)));
        crew.stop();
        caught.in_a_flush += u32::from(crew.is_in_flush().unwrap_or(true));
        let count = match write_beside(&database, round) {
            Some(true) => &mut caught.without,
            Some(false) => &mut caught.with_the_lock,
            None => &mut caught.out_of_reach,
        };
        *count += 1;
        assert!(caught.out_of_reach <= PROTOCOLS_MAX, "{caught:?} (seed {seed})");
        if round.is_multiple_of(3) {
            gone.extend(crew.kill());
            assert_eq!(
                write_beside(&database, 1000 + round),
                Some(true),
                "a dead process keeps the lock (seed {seed})"
            );
            crew = start(NAME, &database, round);
        } else {
            crew.go();
            crew.goes_on();
        }
    }
    gone.extend(crew.kill());
    drop(db);
    check(&database, &gone, seed, true);
    eprintln!("{round} stops, {caught:?}, seed {seed}");
}
