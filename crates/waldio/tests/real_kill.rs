//! Goal: kill -9 at any moment loses no acknowledged transaction and leaves a database that all others go on with.
//! Method: three writers of one database (waldio FULL and NORMAL, buffered and direct, some stock) that also checkpoint; kill one, or all, at
//! random moments; start others. What a killed writer had printed is compared with the rows that are there.
//! JOJ_SOAK_SECONDS makes it longer.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::path::Path;
use std::time::{Duration, Instant};

use real::chance::{Chance, seed};
use real::child::{Running, no_python, python};
use real::crew::{Crew, Orders, at_work};
use real::place::{Scratch, skipped};
use real::promises::{Gone, check, prepare, soak_time};
use real::sqlite::system;

/// One incarnation of a writer.
struct Writer {
    name: String,
    running: Running,
}

impl Writer {
    fn start(database: &Path, number: u32, chance: &mut Chance) -> Writer {
        let sides = [("waldio", "FULL"), ("waldio", "NORMAL"), ("waldio-fua", "FULL"), ("stock", "FULL")];
        let (side, synchronous) = chance.pick(&sides);
        let name = format!("{number}-{side}-{synchronous}");
        let path = database.to_str().unwrap();
        let mut command = python("worker.py", &["write", path, side, &name, "1000000", synchronous]);
        Writer { name, running: Running::start(&mut command) }
    }

    fn kill(mut self) -> Gone {
        self.running.kill();
        let (lines, _) = self.running.finish();
        let acknowledged = lines.iter().filter_map(|line| line.strip_prefix("ack ")?.parse().ok()).max();
        Gone { name: self.name, acknowledged: acknowledged.unwrap_or(0) }
    }
}

#[test]
fn killed_writers_lose_nothing_they_acknowledged() {
    if let Some(why) = no_python() {
        return skipped(&why);
    }
    let seed = seed();
    let mut chance = Chance::new(seed);
    let scratch = Scratch::new("kill");
    let database = scratch.join("app.db");
    let end = Instant::now() + soak_time();
    let (mut number, mut gone, mut wiped) = (0, Vec::new(), 0);
    let mut writers: Vec<Writer> = Vec::new();
    prepare(&database);
    while Instant::now() < end {
        while writers.len() < 3 {
            number += 1;
            writers.push(Writer::start(&database, number, &mut chance));
        }
        std::thread::sleep(Duration::from_millis(100 + chance.below(400)));
        if chance.below(4) == 0 {
            gone.extend(writers.drain(..).map(Writer::kill));
            wiped += 1;
            // The first to open it recovers the log: stock and waldio in turn.
            check(&database, &gone, seed, wiped % 2 == 0);
        } else {
            let victim = usize::try_from(chance.below(3)).unwrap();
            gone.push(writers.swap_remove(victim).kill());
        }
    }
    gone.extend(writers.drain(..).map(Writer::kill));
    check(&database, &gone, seed, true);
    check(&database, &gone, seed, false);
    let acknowledged: u64 = gone.iter().map(|gone| gone.acknowledged).sum();
    assert!(gone.len() > 10 && acknowledged > 200, "{} kills, {acknowledged} rows: no soak", gone.len());
    eprintln!("{} writers killed, {acknowledged} rows acknowledged, seed {seed}", gone.len());
}

/// What crews differ in.
const CREWS: [(&str, &str); 5] = [
    ("waldio_persist=flush", "FULL"),
    ("waldio_persist=auto", "FULL"),
    ("waldio_persist=fua", "FULL"),
    ("waldio_persist=auto", "NORMAL"),
    ("waldio_group=65536,5", "FULL"),
];

fn start(test: &str, database: &Path, number: u64, chance: &mut Chance) -> Crew {
    let (parameters, synchronous) = *chance.pick(&CREWS);
    let name = format!("{number}-{parameters}-{synchronous}");
    Orders { parameters, synchronous, ..Orders::new(database, &name) }.start(test)
}

#[test]
fn killed_crews_lose_nothing_and_make_nobody_wait_for_ever() {
    const NAME: &str = "killed_crews_lose_nothing_and_make_nobody_wait_for_ever";
    if at_work(NAME) {
        return;
    }
    let seed = seed();
    let mut chance = Chance::new(seed);
    let scratch = Scratch::new("crews");
    let database = scratch.join("app.db");
    prepare(&database);
    let end = Instant::now() + soak_time();
    let (mut number, mut kills, mut acknowledged) = (0, 0, 0);
    let (mut crews, mut gone): (Vec<Crew>, Vec<Gone>) = (Vec::new(), Vec::new());
    while Instant::now() < end || !crews.is_empty() {
        while crews.len() < 3 {
            number += 1;
            crews.push(start(NAME, &database, number, &mut chance));
        }
        crews.iter().for_each(Crew::goes_on);
        std::thread::sleep(Duration::from_millis(chance.below(150)));
        let all = chance.below(3) == 0 || Instant::now() >= end;
        let victims = if all { 0..3 } else { 0..1 };
        kills += victims.len();
        gone.extend(crews.drain(victims).flat_map(Crew::kill));
        if all {
            // The first to open it recovers the log: stock and waldio in turn.
            check(&database, &gone, seed, number % 2 == 0);
            acknowledged += gone.drain(..).map(|gone| gone.acknowledged).sum::<u64>();
            // So that a long run does not count the same rows again and again.
            system().open_stock(&database).rows("DELETE FROM rows");
        }
    }
    assert!(kills > 10 && acknowledged > 500, "{kills} kills, {acknowledged} rows: no soak");
    eprintln!("{kills} crews killed, {acknowledged} rows acknowledged, seed {seed}");
}
