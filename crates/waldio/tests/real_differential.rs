//! Goal: no statement can tell waldio from stock SQLite.
//! Method: one seeded run of SQL on two connections, on the system's SQLite with its own VFS and with waldio; rows, error
//! codes and messages equal after every statement, the content equal at the end as stock reads it. A failure names its
//! seed; JOJ_SEEDS runs more of them, JOJ_SEED=N that one alone.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::path::{Path, PathBuf};

use real::chance::Chance;
use real::place::Scratch;
use real::sqlite::{Connection, Row, SqlError, system};
use real::statements::{Step, step};

const STEPS: usize = 350;

/// Two connections to one database.
struct Side {
    /// What is opened: a path or a URI.
    name: String,
    vfs: &'static str,
    connections: [Option<Connection>; 2],
}

type Answer = (Vec<Row>, Option<SqlError>);

impl Side {
    fn new(name: String, vfs: &'static str) -> Side {
        let mut side = Side { name, vfs, connections: [None, None] };
        side.reopen(0);
        side.reopen(1);
        side
    }

    fn reopen(&mut self, which: usize) -> Answer {
        self.connections[which] = None;
        let opened = system().open_with(&self.name, Some(self.vfs)).unwrap();
        // Who waits for the other connection of the same thread waits in vain.
        opened.busy_timeout(0);
        self.connections[which] = Some(opened);
        (Vec::new(), None)
    }

    fn take(&mut self, which: usize, step: &Step) -> Answer {
        match step {
            Step::Reopen => self.reopen(which),
            Step::Sql(sql) => self.connections[which].as_ref().unwrap().run(sql),
        }
    }
}

/// Schema and rows as stock SQLite reads them, and whether they are sound.
fn content(path: &Path, seed: u64) -> Vec<Vec<Row>> {
    let reader = system().open_stock(path);
    let mut all =
        vec![reader.rows("PRAGMA integrity_check"), reader.rows("PRAGMA user_version; PRAGMA journal_mode")];
    all.push(reader.rows("SELECT type, name, sql FROM sqlite_schema ORDER BY name"));
    for table in reader.rows("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name") {
        all.push(reader.rows(&format!("SELECT a, b, length(c), hex(c) FROM {} ORDER BY a", table[0])));
    }
    assert_eq!(all[0], [["ok"]], "{} of seed {seed}", path.display());
    all
}

/// Settings that waldio's users may choose, in turn.
const CHOICES: [&str; 5] = [
    "",
    "?waldio_persist=flush",
    "?waldio_persist=fua&waldio_fill=unwritten",
    "?waldio_strict=1",
    "?waldio_log_bytes=65536&waldio_fill=zeroes",
];

fn compare(seed: u64) {
    let scratch = Scratch::new("differential");
    let paths: [PathBuf; 2] = [scratch.join("stock.db"), scratch.join("waldio.db")];
    let mut chance = Chance::new(seed);
    let choice = chance.pick(&CHOICES);
    let mut stock = Side::new(format!("file:{}", paths[0].display()), "unix");
    let mut waldio = Side::new(format!("file:{}{choice}", paths[1].display()), "waldio");
    let page_bytes = 512 << chance.below(8);
    let vacuum = chance.below(3);
    let mut steps: Vec<(usize, Step)> = Vec::new();
    for first in [
        format!("PRAGMA page_size = {page_bytes}; PRAGMA auto_vacuum = {vacuum}; PRAGMA journal_mode = WAL"),
        "CREATE TABLE t0(a INTEGER PRIMARY KEY, b, c); CREATE TABLE t1(a INTEGER PRIMARY KEY, b UNIQUE, c)"
            .to_owned(),
    ] {
        steps.push((0, Step::Sql(first)));
    }
    for number in 0..STEPS {
        if number >= steps.len() {
            let which = usize::from(chance.below(4) == 0);
            steps.push((which, step(&mut chance)));
        }
        let (which, step) = &steps[number];
        let (expected, found) = (stock.take(*which, step), waldio.take(*which, step));
        assert!(
            expected == found,
            "seed {seed}, page {page_bytes}, {choice:?}, statement {number} on connection {which}: {step:?}\n\
             stock:  {expected:?}\nwaldio: {found:?}\nbefore: {:#?}",
            &steps[number.saturating_sub(12)..number]
        );
    }
    drop((stock, waldio));
    let [expected, found] = paths.map(|path| content(&path, seed));
    assert!(expected == found, "seed {seed}: what is left differs\nstock:  {expected:?}\nwaldio: {found:?}");
}

/// Every second of the seeds, from `first`.
fn seeds(first: u64) {
    system().load(None).unwrap();
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    if let Some(seed) = number("JOJ_SEED") {
        return if seed % 2 == first {
            compare(seed)
        };
    }
    for seed in (first..number("JOJ_SEEDS").unwrap_or(20)).step_by(2) {
        compare(seed);
    }
}

// Two tests for two cores.
#[test]
fn even_seeds_give_the_same_as_stock() {
    seeds(0);
}

#[test]
fn odd_seeds_give_the_same_as_stock() {
    seeds(1);
}
