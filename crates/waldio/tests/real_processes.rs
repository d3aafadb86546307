//! Goal: processes that write one database hand the write lock over to each other, and one that is killed in the middle
//! of that, with the lock or on its way to it, makes nobody wait for long.
//! Method: many processes with one writer each, and this one among them; then few, of which one after the other is killed
//! at a random moment: each survivor's next COMMIT is waited for, and this process writes until it has woken one of them,
//! which it never does where the dead are woken. JOJ_SOAK_SECONDS makes it longer.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, set_parent_process_death_signal};

use real::chance::{Chance, seed};
use real::child::{Running, again, role};
use real::crew::{Crew, Orders, at_work};
use real::place::Scratch;
use real::promises::{Gone, check, prepare, soak_time};
use real::sqlite::{Connection, system};
use real::writers::number;

fn start(test: &str, database: &Path, number: u64, commits: u64) -> Crew {
    Orders { writers: 1, commits, ..Orders::new(database, &number.to_string()) }.start(test)
}

#[test]
fn sixteen_processes_hand_the_lock_over_to_each_other() {
    const NAME: &str = "sixteen_processes_hand_the_lock_over_to_each_other";
    const COMMITS: u64 = 400;
    if at_work(NAME) {
        return;
    }
    let scratch = Scratch::new("processes");
    let database = scratch.join("app.db");
    let db = prepare(&database);
    db.busy_timeout(60_000);
    db.rows("PRAGMA synchronous=FULL");
    assert_eq!(db.status("shared_lock_queue"), "not open");
    let crews: Vec<Crew> = (1..16).map(|number| start(NAME, &database, number, COMMITS)).collect();
    let mut seq = 0;
    while crews.iter().any(|crew| crew.acknowledged() != [COMMITS]) {
        seq += 1;
        db.rows(&format!("INSERT INTO rows VALUES ('here', {seq}, zeroblob(100))"));
    }
    let (line, page) = (db.status("shared_lock_queue"), db.status_row("shared_lock_queue")[1].clone());
    let hand_overs = number(&db, "process_hand_overs");
    let mut gone: Vec<Gone> = crews.into_iter().flat_map(Crew::finish).collect();
    gone.push(Gone { name: "here".to_owned(), acknowledged: seq });
    drop(db);
    check(&database, &gone, 0, true);
    if line != "open" {
        return real::place::skipped(&format!("no line across processes here: {line}"));
    }
    assert!(hand_overs > COMMITS / 20, "{hand_overs} hand-overs in {seq} commits beside fifteen others");
    // A thread that makes the log longer may be the last to let it go, a moment later.
    let closed = Instant::now();
    while Path::new(&page).exists() {
        assert!(closed.elapsed() < Duration::from_secs(10), "{page} is left");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A process with stock SQLite that commits without a pause, until it is killed.
struct Loop {
    running: Running,
    reader: Connection,
}

impl Loop {
    fn start(test: &str, database: &Path) -> Loop {
        let reader = system().open_stock(database);
        reader.rows("CREATE TABLE loop(id INTEGER PRIMARY KEY, content)");
        let running = Running::start(&mut again(test, &[database.to_str().unwrap()]));
        Loop { running, reader }
    }

    /// True in its process, which does not come back while the test runs.
    fn runs(test: &str) -> bool {
        let Some([database]) = role(test).as_deref().and_then(<[String]>::first_chunk::<1>).cloned() else {
            return false;
        };
        set_parent_process_death_signal(Some(Signal::KILL)).unwrap();
        let db = system().open_stock(Path::new(&database));
        db.busy_timeout(60_000);
        db.rows("PRAGMA synchronous=FULL");
        // Between two commits there is little more than SQLite's parser.
        let commits = "INSERT INTO loop(content) VALUES (zeroblob(100));".repeat(100);
        loop {
            db.rows(&commits);
        }
    }

    fn commits(&self) -> u64 {
        self.reader.one("SELECT ifnull(max(id), 0) FROM loop").parse().unwrap()
    }
}

#[test]
fn threads_get_the_lock_beside_a_stock_process_that_commits_in_a_loop() {
    const NAME: &str = "threads_get_the_lock_beside_a_stock_process_that_commits_in_a_loop";
    const COMMITS: u64 = 4000;
    if role(NAME).is_some_and(|arguments| arguments.len() > 1) && at_work(NAME) || Loop::runs(NAME) {
        return;
    }
    let scratch = Scratch::new("processes-stock");
    let database = scratch.join("app.db");
    drop(prepare(&database));
    let mut stock = Loop::start(NAME, &database);
    let ours = Orders { writers: 8, ..Orders::new(&database, "ours") }.start(NAME);
    ours.goes_on();
    let counts = || [ours.acknowledged().iter().sum(), stock.commits()];
    let round = || {
        let before: [u64; 2] = counts();
        let since = |now: [u64; 2]| [0, 1].map(|side| now[side] - before[side]);
        while since(counts()).iter().sum::<u64>() < COMMITS {
            thread::sleep(Duration::from_millis(20));
        }
        since(counts())
    };
    // Before a connection took the lock in its sleep the threads had 2 to 6 % of the commits. A machine whose processors others
    // have gives them less than it could: once in five is enough.
    let rounds: Vec<[u64; 2]> = (0..5).map(|_| round()).collect();
    stock.running.kill();
    check(&database, &ours.kill(), 0, true);
    let is_shared = |[of_ours, of_stock]: &[u64; 2]| *of_ours > COMMITS / 5 && *of_stock > COMMITS / 40;
    assert!(rounds.iter().any(is_shared), "commits of eight threads and of one stock process: {rounds:?}");
}

/// How long it takes until each crew has committed something more, without the time in which a busy machine kept one of
/// them from the processor.
fn wait_of(crews: &[Crew]) -> Duration {
    let kept = || crews.iter().map(Crew::kept_from_the_processor).sum::<Duration>();
    let (kept_before, began) = (kept(), Instant::now());
    crews.iter().for_each(Crew::goes_on);
    let waited = began.elapsed();
    waited.saturating_sub(kept().saturating_sub(kept_before))
}

/// This process among the crews.
struct Here {
    db: Connection,
    seq: u64,
}

impl Here {
    /// Commits until it has woken another process, which must happen.
    #[track_caller]
    fn hands_over(&mut self) {
        /// Far more than it takes where anybody can be rung for, on a machine however busy.
        const COMMITS_MAX: u64 = 1000;
        let (began, before) = (self.seq, number(&self.db, "process_hand_overs"));
        while number(&self.db, "process_hand_overs") == before {
            self.seq += 1;
            assert!(self.seq - began <= COMMITS_MAX, "nobody was woken in {COMMITS_MAX} commits");
            self.db.rows(&format!("INSERT INTO rows VALUES ('here', {}, zeroblob(100))", self.seq));
            if self.db.status("shared_lock_queue") == "refused" {
                return;
            }
        }
    }
}

#[test]
fn killed_processes_make_nobody_wait_for_long() {
    const NAME: &str = "killed_processes_make_nobody_wait_for_long";
    /// Far more than the line may add, and than three processes need for a commit each on any disk.
    const WAIT_MAX: Duration = Duration::from_millis(300);
    const KILLS_MIN: usize = 50;
    if at_work(NAME) {
        return;
    }
    let seed = seed();
    let mut chance = Chance::new(seed);
    let scratch = Scratch::new("processes-killed");
    let database = scratch.join("app.db");
    let mut here = Here { db: prepare(&database), seq: 0 };
    here.db.busy_timeout(60_000);
    here.db.rows("PRAGMA synchronous=FULL");
    let end = Instant::now() + soak_time();
    let (mut started, mut waits, mut gone) = (0, Vec::new(), Vec::new());
    let mut crews: Vec<Crew> = Vec::new();
    while Instant::now() < end || waits.len() < KILLS_MIN {
        while crews.len() < 3 {
            started += 1;
            crews.push(start(NAME, &database, started, u64::MAX));
        }
        wait_of(&crews);
        thread::sleep(Duration::from_micros(chance.below(20_000)));
        let victim = usize::try_from(chance.below(3)).unwrap();
        gone.extend(crews.swap_remove(victim).kill());
        waits.push(wait_of(&crews));
        here.hands_over();
    }
    let line = here.db.status("shared_lock_queue");
    gone.extend(crews.drain(..).flat_map(Crew::kill));
    gone.push(Gone { name: "here".to_owned(), acknowledged: here.seq });
    drop(here);
    check(&database, &gone, seed, true);
    check(&database, &gone, seed, false);
    waits.sort();
    let long = waits.iter().filter(|wait| **wait > WAIT_MAX).count();
    // The disk may be busy, too.
    assert!(long <= waits.len() / 50, "{long} of {} waits were long (seed {seed}): {waits:?}", waits.len());
    eprintln!("{} killed, longest wait {:?}, seed {seed}", waits.len(), waits.last().unwrap());
    if line != "open" {
        real::place::skipped(&format!("no line across processes here: {line}"));
    }
}
