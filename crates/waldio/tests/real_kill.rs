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
use real::place::{Scratch, skipped};
use real::sqlite::system;

/// One incarnation of a writer.
struct Writer {
    name: String,
    running: Running,
}

/// What an incarnation had acknowledged when it was gone.
struct Gone {
    name: String,
    acknowledged: u64,
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

fn soak_time() -> Duration {
    let seconds = std::env::var("JOJ_SOAK_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(seconds.unwrap_or(10))
}

/// Each incarnation has all it acknowledged, and at most the one transaction more that it was in.
fn check(database: &Path, gone: &[Gone], seed: u64, with_waldio: bool) {
    let open = if with_waldio { system().open(database) } else { system().open_stock(database) };
    assert_eq!(open.one("PRAGMA integrity_check"), "ok", "seed {seed}");
    let rows = open.rows("SELECT writer, count(*), max(seq) FROM rows GROUP BY writer ORDER BY writer");
    let found = |name: &str| rows.iter().find(|row| row[0] == name);
    for Gone { name, acknowledged } in gone {
        let (count, newest): (u64, u64) =
            found(name).map_or((0, 0), |row| (row[1].parse().unwrap(), row[2].parse().unwrap()));
        assert_eq!(count, newest, "{name} has gaps (seed {seed})");
        assert!(
            (*acknowledged..=acknowledged + 1).contains(&newest),
            "{name} acknowledged {acknowledged} and has {newest} (seed {seed})"
        );
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
    system().load(None).unwrap();
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
