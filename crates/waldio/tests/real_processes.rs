//! Goal: processes that write one database hand the write lock over to each other, and one that is killed in the middle
//! of that, with the lock or on its way to it, makes nobody wait for long.
//! Method: many processes with one writer each, and this one among them; then few, of which one after the other is killed
//! at a random moment, and each survivor's next COMMIT is waited for. JOJ_SOAK_SECONDS makes it longer.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use real::chance::{Chance, seed};
use real::crew::{Crew, Orders, at_work};
use real::place::Scratch;
use real::promises::{Gone, check, prepare, soak_time};
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
    assert_eq!(db.status("process_line"), "not open");
    let crews: Vec<Crew> = (1..16).map(|number| start(NAME, &database, number, COMMITS)).collect();
    let mut seq = 0;
    while crews.iter().any(|crew| crew.acknowledged() != [COMMITS]) {
        seq += 1;
        db.rows(&format!("INSERT INTO rows VALUES ('here', {seq}, zeroblob(100))"));
    }
    let (line, page) = (db.status("process_line"), db.status_row("process_line")[1].clone());
    let hand_overs = number(&db, "process_hand_overs");
    let mut gone: Vec<Gone> = crews.into_iter().flat_map(Crew::finish).collect();
    gone.push(Gone { name: "here".to_owned(), acknowledged: seq });
    drop(db);
    check(&database, &gone, 0, true);
    if line != "open" {
        return real::place::skipped(&format!("no line across processes here: {line}"));
    }
    assert!(hand_overs > COMMITS / 20, "{hand_overs} hand-overs in {seq} commits beside fifteen others");
    assert!(!Path::new(&page).exists(), "{page} is left");
}

/// How long it takes until each crew has committed something more.
fn wait_of(crews: &[Crew]) -> Duration {
    let began = Instant::now();
    crews.iter().for_each(Crew::goes_on);
    began.elapsed()
}

#[test]
fn killed_processes_make_nobody_wait_for_long() {
    const NAME: &str = "killed_processes_make_nobody_wait_for_long";
    /// Far more than the line may add, and than three processes need for a commit each on any disk.
    const WAIT_MAX: Duration = Duration::from_millis(300);
    if at_work(NAME) {
        return;
    }
    let seed = seed();
    let mut chance = Chance::new(seed);
    let scratch = Scratch::new("processes-killed");
    let database = scratch.join("app.db");
    prepare(&database);
    let end = Instant::now() + soak_time();
    let (mut started, mut waits, mut gone) = (0, Vec::new(), Vec::new());
    let mut crews: Vec<Crew> = Vec::new();
    while Instant::now() < end {
        while crews.len() < 3 {
            started += 1;
            crews.push(start(NAME, &database, started, u64::MAX));
        }
        wait_of(&crews);
        thread::sleep(Duration::from_micros(chance.below(20_000)));
        let victim = usize::try_from(chance.below(3)).unwrap();
        gone.extend(crews.swap_remove(victim).kill());
        waits.push(wait_of(&crews));
    }
    gone.extend(crews.drain(..).flat_map(Crew::kill));
    check(&database, &gone, seed, true);
    check(&database, &gone, seed, false);
    waits.sort();
    // A busy machine keeps a process from the processor for as long now and then.
    let long = waits.iter().filter(|wait| **wait > WAIT_MAX).count();
    assert!(waits.len() > 20, "{} kills: no test", waits.len());
    assert!(long <= waits.len() / 50, "{long} of {} waits were long (seed {seed}): {waits:?}", waits.len());
    eprintln!("{} killed, longest wait {:?}, seed {seed}", gone.len(), waits.last().unwrap());
}
