//! Runs a generated program on a simulated computer and cuts the power wherever it matters.
//!
//! Orders to a connection: `put N` rows, `spill` (all rows, each page once), `rewrite` (all rows, twice), `grow` (new rows), `begin`, `commit`,
//! `rollback`, `savepoint`, `back` (ROLLBACK TO), `sync MODE`, `checkpoint MODE`, `lock MODE`, `hold` (a reader that stays),
//! `read`, `flush` (PRAGMA waldio_flush), `see` (a read with `waldio_durable_reads`), `close`. `*: replace` puts other files in
//! the place of database and log, `*: kill` ends all processes, `*: pause` lets writers be forgotten.
//!
//! What must hold at each cut: what recovers is sound, is a state that was published, and is none older than the newest that
//! a commit under FULL or EXTRA outside of a window has promised, by whichever connection. Where waldio breaks that, the same
//! program runs with stock connections alone, with NORMAL where waldio has a window, and if those break it as well, the program
//! did what SQLite does not promise.
//! Then only cuts count that take everything which no flush promised: there `synchronous=OFF` must not lose what FULL kept.

use std::mem;
use std::path::Path;
use std::thread;
use std::time::Duration;

use blockio::disk::{Disk, DiskFile, OpenOptions};
use blockio::simulated::crash_states::Bounds;
use blockio::simulated::image::Image;

use super::program::{Act, Actor, Program, Role};

use crate::support::explore::{Effort, Explorer, Scene, Stats};
use crate::support::history::{BASE_ROWS, History, Rows, create_sql, put_sql, read_rows, rows_of};
use crate::support::machine::{DATABASE, LOG, Machine, Side};
use crate::support::plan::{number, seed};
use crate::support::sqlite::{Connection, SqlError, with_seed};
use crate::support::workload::{PASSING_TXN, Recording, Synchronous, base_image};

/// The computers that programs run on and recover on.
pub struct Lab {
    machine: Machine,
    processes: Vec<String>,
    judges: [Machine; 2],
    /// Makes databases with room for the `embedded` layout.
    embedded: Machine,
    /// SQLite alone, which may refuse a log in the `embedded` layout.
    outsider: Machine,
}

/// One connection and what it was told.
struct Player<'program> {
    role: &'program Role,
    connection: Option<Connection>,
    synchronous: String,
    /// Opened on files that were replaced since.
    is_past: bool,
}

struct Run<'run> {
    lab: &'run Lab,
    program: &'run Program,
    stock: bool,
    players: Vec<Player<'run>>,
    /// Names of the VFSes of the processes that live.
    processes: Vec<String>,
    history: History,
    txn: i64,
}

/// Numbers that no base image uses.
const FIRST_TXN: i64 = 9000;

impl Lab {
    /// Three processes with waldio, and any number without.
    pub fn new() -> Lab {
        let machine = Machine::new(Side::Flush);
        let processes = (0..3).map(|_| machine.another_process()).collect();
        Lab {
            machine,
            processes,
            judges: [Machine::new(Side::Flush), Machine::new(Side::Stock)],
            embedded: Machine::new(Side::Embedded),
            outsider: Machine::new(Side::Outsider),
        }
    }

    /// Who recovers what a program left.
    fn judges(&self, program: &Program) -> Vec<&Machine> {
        let [waldio, stock] = &self.judges;
        vec![waldio, if is_embedded(program) { &self.outsider } else { stock }]
    }

    fn record(&self, program: &Program, stock: bool) -> Recording {
        let maker = if is_embedded(program) { &self.embedded } else { &self.machine };
        let base = base_image(maker, program.page_bytes);
        let _random = with_seed(7);
        self.machine.boot(&base);
        let start = self.machine.disk.replay();
        let players = program.cast.iter();
        let players = players.map(|role| Player {
            role,
            connection: None,
            synchronous: "FULL".to_owned(),
            is_past: false,
        });
        let mut run = Run {
            lab: self,
            program,
            stock,
            players: players.collect(),
            processes: self.processes.clone(),
            history: History::new(),
            txn: FIRST_TXN,
        };
        for act in &program.acts {
            self.machine.disk.mark(&act.to_string());
            run.act(act);
        }
        self.machine.disk.mark("close");
        let before_close = self.machine.disk.record_count();
        for who in 0..run.players.len() {
            run.close(who);
        }
        let end = self.machine.disk.image();
        let mut records = self.machine.disk.records();
        // Programs close what they want closed: stock's checkpoint at a close may hide what a cut before it would show.
        records.truncate(before_close);
        let Run { history, .. } = run;
        let (failed, wrong, outcomes, published) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Recording { records, start, history, published, outcomes, failed, wrong, end }
    }

    /// What is wrong with it, if something is.
    fn explore(&self, program: &Program, stock: bool, floor_only: bool, stats: &mut Stats) -> Option<String> {
        let recording = self.record(program, stock);
        if recording.records.is_empty() {
            return None;
        }
        let samples = number("CRASH_SAMPLES", 3);
        let bounds =
            Bounds { exhaustive_units_max: 12, combinations_max: samples * 8, samples, seed: seed() };
        let effort = Effort { bounds, second_crash_every: number("CRASH_AGAIN", 4000), system_every: 2000 };
        let mut explorer = Explorer::new(self.judges(program), effort);
        explorer.floor_only = floor_only;
        let title = "the generated one".to_owned();
        let scene = Scene { title, page_bytes: program.page_bytes, synchronous: Synchronous::Full };
        let found = explorer.explore_scene(&scene, &recording).err();
        let seen = explorer.stats;
        stats.workloads += seen.workloads;
        stats.cuts += seen.cuts;
        stats.states += seen.states;
        stats.second_states += seen.second_states;
        stats.system_states += seen.system_states;
        stats.refused += seen.refused;
        found.map(|failure| failure.to_string())
    }

    /// What waldio breaks, whatever stock does.
    pub fn strict_finding(&self, program: &Program, stats: &mut Stats) -> Option<String> {
        self.explore(program, false, false, stats)
    }

    /// What waldio breaks of what stock SQLite holds.
    pub fn finding(&self, program: &Program, stats: &mut Stats) -> Option<String> {
        let found = self.explore(program, false, false, stats)?;
        if self.explore(program, true, false, stats).is_none() {
            return Some(found);
        }
        let floor = self.explore(program, false, true, stats)?;
        self.explore(program, true, true, stats).is_none().then_some(floor)
    }
}

/// Whether its log has the `embedded` layout: each connection asks for it.
fn is_embedded(program: &Program) -> bool {
    program.cast.iter().all(|role| role.waldio && role.parameters.contains("waldio_layout=embedded"))
}

/// Whether its commits may be lost within a bound.
fn has_window(role: &Role) -> bool {
    let asks = |option| role.parameters.contains(option);
    asks("waldio_group=") || asks("waldio_durability=")
}

impl Default for Lab {
    fn default() -> Self {
        Lab::new()
    }
}

impl Run<'_> {
    fn act(&mut self, act: &Act) {
        match act {
            // BUSY and the like: the program goes on, as an application does that is refused.
            Act::Order(Actor::Connection(who), words) => drop(self.order(*who, words)),
            Act::Order(Actor::World, words) if words == "replace" => self.replace(),
            Act::Order(Actor::World, words) if words == "kill" => self.kill(),
            // Behind the time in which a writer counts as one who will want to write again.
            Act::Order(Actor::World, words) if words == "pause" => thread::sleep(Duration::from_millis(8)),
            other => panic!("not an act of a simulated program: {other}"),
        }
    }

    fn open(&mut self, who: usize) -> Result<&Connection, SqlError> {
        if self.players[who].connection.is_none() {
            let role = self.players[who].role;
            let waldio = role.waldio && !self.stock;
            let parameters = if waldio { role.parameters.as_str() } else { "" };
            let vfs =
                if waldio { self.processes[role.process - 1].as_str() } else { self.lab.machine.base() };
            let connection = Connection::open(&format!("file:{DATABASE}?{parameters}"), vfs)?;
            connection.exec("PRAGMA wal_autocheckpoint=0; PRAGMA cache_size=3; SELECT count(*) FROM t;")?;
            let player = &mut self.players[who];
            player.connection = Some(connection);
            player.synchronous = "FULL".to_owned();
            player.is_past = false;
            let mode = self.mode(who, "FULL");
            self.exec(who, &format!("PRAGMA synchronous={mode}"))?;
        }
        Ok(self.players[who].connection.as_ref().expect("just opened"))
    }

    /// What stands in for `mode`: with a window stock's equal is NORMAL, where the next flush makes commits durable, too.
    fn mode<'mode>(&self, who: usize, mode: &'mode str) -> &'mode str {
        let is_full = matches!(mode, "FULL" | "EXTRA");
        if self.stock && is_full && has_window(self.players[who].role) { "NORMAL" } else { mode }
    }

    fn exec(&mut self, who: usize, sql: &str) -> Result<(), SqlError> {
        self.open(who)?.exec(sql)
    }

    fn order(&mut self, who: usize, words: &str) -> Result<(), SqlError> {
        let words: Vec<&str> = words.split_whitespace().collect();
        let outcome = match words[..] {
            ["put", count] => self.change(who, |txn| rows_of(txn, count.parse().expect("a number")), false),
            ["spill"] => self.change(who, |_| (1..=BASE_ROWS).collect(), false),
            ["rewrite"] => self.change(who, |_| (1..=BASE_ROWS + 4).collect(), true),
            ["grow"] => self.change(who, |_| (BASE_ROWS + 5..=BASE_ROWS + 16).collect(), false),
            ["begin"] => self.exec(who, "BEGIN IMMEDIATE"),
            ["commit"] => self.exec(who, "COMMIT"),
            ["rollback"] => self.exec(who, "ROLLBACK"),
            ["savepoint"] => self.exec(who, "SAVEPOINT s"),
            ["back"] => self.exec(who, "ROLLBACK TO s"),
            ["hold"] => self.exec(who, "BEGIN; SELECT count(*) FROM t"),
            ["read"] => self.exec(who, "SELECT count(*), max(txn), max(payload) FROM t"),
            ["lock", mode] => self.exec(who, &format!("PRAGMA locking_mode={mode}; SELECT count(*) FROM t")),
            ["checkpoint", mode] => self.checkpoint(who, mode),
            ["sync", mode] => {
                let set = self.mode(who, mode);
                self.exec(who, &format!("PRAGMA synchronous={set}"))?;
                // SQLite refuses it inside of a transaction.
                if self.open(who)?.is_autocommit() {
                    self.players[who].synchronous = mode.to_owned();
                }
                Ok(())
            }
            ["flush"] => {
                self.exec(who, "PRAGMA waldio_flush")?;
                self.promised_by_waldio(who);
                return Ok(());
            }
            ["see"] => {
                self.exec(who, "SELECT count(*), max(txn), max(payload) FROM t")?;
                self.promised_by_waldio(who);
                return Ok(());
            }
            ["close"] => {
                self.close(who);
                return Ok(());
            }
            _ => panic!("not an order: {words:?}"),
        };
        if outcome.is_ok() {
            self.settle(who);
        }
        outcome
    }

    /// Writes rows, in the transaction that is open or in one of its own.
    fn change(
        &mut self,
        who: usize,
        ids_of: impl FnOnce(i64) -> Vec<i64>,
        twice: bool,
    ) -> Result<(), SqlError> {
        self.txn += 1;
        let (txn, page_bytes) = (self.txn, self.program.page_bytes);
        let ids = ids_of(txn);
        let puts = |txn: i64| ids.iter().map(|id| put_sql(*id, txn, page_bytes)).collect::<String>();
        let mut sql = if twice { puts(txn + PASSING_TXN) } else { String::new() };
        sql.push_str(&puts(txn));
        if !self.open(who)?.is_autocommit() {
            return self.exec(who, &sql);
        }
        let outcome = self.exec(who, &format!("BEGIN IMMEDIATE; {sql} COMMIT"));
        if outcome.is_err() {
            // There is none where BEGIN failed.
            let _ = self.exec(who, "ROLLBACK");
        }
        outcome
    }

    /// A connection without an open transaction sees the newest state; what it promises is promised.
    fn settle(&mut self, who: usize) {
        let player = &self.players[who];
        let Some(connection) = player.connection.as_ref().filter(|connection| connection.is_autocommit())
        else {
            return;
        };
        if player.is_past {
            return;
        }
        // Another connection may keep this one out.
        let Ok(rows) = read_rows(connection, self.program.page_bytes) else { return };
        if rows == *self.history.rows() {
            return;
        }
        let full = matches!(player.synchronous.as_str(), "FULL" | "EXTRA");
        let durable = full && !has_window(player.role);
        self.publish(rows, durable);
    }

    fn publish(&mut self, rows: Rows, durable: bool) {
        self.history.publish_rows(rows);
        if durable {
            self.lab.machine.disk.ack(self.history.newest());
        }
    }

    /// What stock does not do: everything up to now is durable.
    fn promised_by_waldio(&self, who: usize) {
        let Player { role, connection, is_past, .. } = &self.players[who];
        let is_over = connection.as_ref().is_some_and(Connection::is_autocommit);
        if role.waldio && !self.stock && is_over && !is_past {
            self.lab.machine.disk.ack(self.history.newest());
        }
    }

    fn checkpoint(&mut self, who: usize, mode: &str) -> Result<(), SqlError> {
        let rows = self.open(who)?.query(&format!("PRAGMA wal_checkpoint({mode})"))?;
        let [busy, log, done] = [0, 1, 2].map(|column| rows[0][column].int());
        let player = &self.players[who];
        if busy == 0 && log >= 0 && log == done && player.synchronous != "OFF" && !player.is_past {
            // Every frame is in the database, and that was synced; TRUNCATE reports 0 of 0 frames.
            self.lab.machine.disk.ack(self.history.newest());
        }
        Ok(())
    }

    /// All processes die: locks and the wal-index are gone, and what was written is there.
    fn kill(&mut self) {
        for player in &mut self.players {
            mem::forget(player.connection.take());
        }
        self.lab.machine.host.reboot();
        self.processes.iter_mut().for_each(|process| *process = self.lab.machine.another_process());
    }

    fn close(&mut self, who: usize) {
        self.players[who].connection = None;
    }

    /// Other files stand at the path, durable, as a deployment leaves them; who has the old ones open keeps them.
    fn replace(&mut self) {
        let disk = &self.lab.machine.disk;
        let image = disk.image();
        if image.files.contains_key(Path::new(&format!("{DATABASE}-old"))) {
            return;
        }
        for path in [DATABASE, LOG] {
            if image.files.contains_key(Path::new(path)) {
                disk.rename(Path::new(path), Path::new(&format!("{path}-old"))).expect("it is there");
            }
        }
        let other = self.other_base();
        let file = disk
            .open_file(Path::new(DATABASE), OpenOptions { create: true, ..OpenOptions::EXISTING })
            .expect("nothing stands there");
        file.write_at(&other.0, 0).expect("no fault");
        file.sync_data().expect("no fault");
        disk.sync_dir_of(Path::new(DATABASE)).expect("no fault");
        for player in &mut self.players {
            player.is_past = player.connection.is_some();
        }
        self.publish(other.1, true);
    }

    /// A database whose rows are no state of the first one's.
    fn other_base(&self) -> (Vec<u8>, Rows) {
        const TXN: i64 = 77;
        let maker = &self.lab.judges[1];
        maker.boot(&base_of(maker, self.program.page_bytes));
        let connection = maker.open().expect("a sound database");
        for id in 1..=BASE_ROWS {
            connection.exec(&put_sql(id, TXN, self.program.page_bytes)).expect("a sound database");
        }
        connection.close();
        let image = maker.disk.image();
        let bytes = image.files[Path::new(DATABASE)].bytes();
        (bytes, (1..=BASE_ROWS).map(|id| (id, TXN)).collect())
    }
}

fn base_of(machine: &Machine, page_bytes: u32) -> Image {
    machine.boot(&Image::default());
    let connection = machine.open().expect("an empty disk");
    connection.exec(&create_sql(page_bytes)).expect("an empty disk");
    connection.close();
    machine.disk.image()
}
