//! Runs a program twice, one act at a time: on stock SQLite, and with waldio where the program says so.
//!
//! What must hold:
//! - each answer is stock's, to the letter, up to the first *hardship*: a refused call or a limit that hits stock SQLite as
//!   well, but not at the same moment, because waldio writes other pieces at other times;
//! - a row of `kept` whose COMMIT returned is there: after each kill, at each `check` and at the end, on a copy of the files,
//!   as stock SQLite and waldio read it; so is everything else, as on stock's side, while there was no hardship;
//! - when a hardship is over, who can write on stock's side can write on waldio's.

use std::collections::BTreeSet;

use super::check::Judge;
use super::program::{Act, Actor, Compared, Program};
use super::side::{Reply, Side};
use super::verdict::{Failure, Kind, Stats};
use super::worker::Silence;

mod befall;
mod world;

/// What happened: a broken promise, or stock itself cannot go on, which ends a run and breaks nothing.
#[derive(Debug)]
pub enum Stop {
    /// A finding.
    Broken(Kind, String),
    /// Stock SQLite died or hung.
    StockGone,
}

/// One run.
pub struct Engine<'run> {
    judge: &'run mut Judge,
    program: &'run Program,
    stock: Side<'run>,
    waldio: Side<'run>,
    /// Answers are compared.
    compares: bool,
    /// Rows of `kept` that each connection inserted in its open transaction.
    waiting: Vec<Vec<u64>>,
    /// Rows of `kept` that are committed with waldio, for each database.
    acknowledged: Vec<BTreeSet<u64>>,
    /// The same on stock's side.
    acknowledged_by_stock: Vec<BTreeSet<u64>>,
    /// Connections that have files open which were replaced since.
    past: Vec<bool>,
    remembered: Option<Vec<u8>>,
    /// `GENERATOR_TRACE=1`: every act and answer goes to stderr.
    tells: bool,
    stats: Stats,
}

/// Runs `program`; `test` starts its processes.
pub fn run(test: &'static str, judge: &mut Judge, program: &Program) -> Result<Stats, Failure> {
    let base = judge.base(program.page_bytes, program.reserved_bytes);
    let mut engine = Engine {
        judge,
        program,
        stock: Side::new(test, program, &base, false),
        waldio: Side::new(test, program, &base, true),
        compares: true,
        waiting: vec![Vec::new(); program.cast.len()],
        acknowledged: vec![BTreeSet::new(); program.databases().len()],
        acknowledged_by_stock: vec![BTreeSet::new(); program.databases().len()],
        past: vec![false; program.cast.len()],
        remembered: None,
        tells: std::env::var_os("GENERATOR_TRACE").is_some(),
        stats: Stats::default(),
    };
    for (index, act) in program.acts.iter().enumerate() {
        engine.stats.acts += 1;
        if engine.tells {
            eprintln!("{act}");
        }
        match engine.act(act) {
            Ok(()) => {}
            Err(Stop::StockGone) => return Ok(engine.stats),
            Err(Stop::Broken(kind, text)) => {
                return Err(Failure { kind, act: index, text: format!("{act}\n{text}") });
            }
        }
    }
    match engine.end() {
        Ok(()) | Err(Stop::StockGone) => {}
        Err(Stop::Broken(kind, text)) => return Err(Failure { kind, act: program.acts.len(), text }),
    }
    engine.stats.programs = 1;
    Ok(engine.stats)
}

/// Waldio's silence is a finding.
fn heard<T>(answer: Result<T, Silence>) -> Result<T, Stop> {
    answer.map_err(|silence| match silence {
        Silence::Died => Stop::Broken(Kind::Died, "the process with waldio ended by itself".to_owned()),
        Silence::Hangs => Stop::Broken(Kind::Hangs, "the process with waldio does not answer".to_owned()),
    })
}

fn expected<T>(answer: Result<T, Silence>) -> Result<T, Stop> {
    answer.map_err(|_| Stop::StockGone)
}

/// Of what `PRAGMA wal_checkpoint` answers, whether it was kept out.
fn without_frames(reply: &Reply) -> Reply {
    let busy = reply.rows.split('|').next().unwrap_or_default();
    Reply { rows: busy.to_owned(), ..reply.clone() }
}

impl<'run> Engine<'run> {
    fn act(&mut self, act: &Act) -> Result<(), Stop> {
        match act {
            Act::Sql { who, sql, compared: Compared::Usually } => self.statement(*who, sql),
            Act::Sql { who, sql, compared: Compared::Always } => {
                let usually = std::mem::replace(&mut self.compares, true);
                let outcome = self.statement(*who, sql);
                self.compares = usually;
                outcome
            }
            Act::Sql { who, sql, compared: Compared::Never } => {
                let found = heard(self.waldio.sql(*who, sql))?;
                if self.tells {
                    eprintln!("  waldio: {}", short(&found));
                }
                Ok(())
            }
            Act::Order(Actor::Connection(who), words) => self.order(*who, words),
            Act::Order(Actor::Process(process), words) => self.befall(*process, words),
            Act::Order(Actor::World, words) => self.world(words),
        }
    }

    /// Does the same on both sides and compares.
    fn both(&mut self, action: impl Fn(&mut Side<'run>) -> Result<String, Silence>) -> Result<String, Stop> {
        let expected = expected(action(&mut self.stock))?;
        let found = heard(action(&mut self.waldio))?;
        self.compare(&expected, &found)?;
        Ok(found)
    }

    fn compare<T: PartialEq + std::fmt::Debug>(&self, expected: &T, found: &T) -> Result<(), Stop> {
        if self.tells {
            eprintln!("  stock:  {}\n  waldio: {}", short(expected), short(found));
        }
        if self.compares && expected != found {
            let text = format!("stock:  {}\nwaldio: {}", short(expected), short(found));
            return Err(Stop::Broken(Kind::AnswerDiffers, text));
        }
        Ok(())
    }

    /// True where as many frames need not be left in both logs: at a kill stock has begun the log anew for a transaction whose
    /// frames waldio still keeps in memory, and a last close empties an `embedded` log that PERSIST_WAL keeps.
    fn may_frames_differ(&self) -> bool {
        let is_embedded = |parameters: &String| parameters.contains("embedded");
        self.stats.kills > 0 || self.program.cast.iter().map(|role| &role.parameters).any(is_embedded)
    }

    fn statement(&mut self, who: usize, sql: &str) -> Result<(), Stop> {
        let expected = expected(self.stock.sql(who, sql))?;
        let found = heard(self.waldio.sql(who, sql))?;
        // PERSIST_WAL has no effect on an `embedded` log: stock's stays, and keeps whoever opens it next in WAL mode.
        let keeps_log = self.program.has("control 10 1");
        if keeps_log && self.program.is_embedded() && sql.contains("journal_mode") && expected != found {
            self.compares = false;
        }
        // Frames of a transaction that was rolled back are in stock's log where its cache spilled; waldio keeps the first 256 KiB
        // of a transaction in memory. Where PERSIST_WAL keeps such a log, stock goes on with it in another journal mode.
        let has_no_log = found.rows == "0|-1|-1" && expected.rows.starts_with("0|");
        if keeps_log && sql.contains("wal_checkpoint") && has_no_log && self.program.says("PRAGMA cache_size")
        {
            self.compares &= expected == found;
        }
        if sql.contains("wal_checkpoint") && self.may_frames_differ() {
            self.compare(&without_frames(&expected), &without_frames(&found))?;
        } else {
            self.compare(&expected, &found)?;
        }
        if let Some(id) = kept_id(sql)
            && found.error.is_empty()
        {
            self.waiting[who].push(id);
        }
        self.settle(who, &expected, &found)
    }

    /// A connection without an open transaction says which of its rows it committed.
    fn settle(&mut self, who: usize, expected: &Reply, found: &Reply) -> Result<(), Stop> {
        if found.in_transaction || self.waiting[who].is_empty() {
            return Ok(());
        }
        let ids: Vec<String> = std::mem::take(&mut self.waiting[who]).iter().map(u64::to_string).collect();
        if !found.error.is_empty() {
            // Its COMMIT failed: where it shared a flush its rows are seen until the last close, and go with it.
            return Ok(());
        }
        let sql = format!("SELECT id FROM kept WHERE id IN ({})", ids.join(", "));
        let seen = heard(self.waldio.sql(who, &sql))?;
        let database = self.database_of(who);
        if self.past[who] {
            return Ok(());
        }
        if !expected.in_transaction {
            let other = self::expected(self.stock.sql(who, &sql))?;
            self.compare(&other, &seen)?;
            self.acknowledged_by_stock[database].extend(ids_of(&other));
        }
        let ids = ids_of(&seen);
        self.stats.rows += ids.len() as u64;
        self.acknowledged[database].extend(ids);
        Ok(())
    }

    fn database_of(&self, who: usize) -> usize {
        let name = &self.program.cast[who].database;
        self.program
            .databases()
            .iter()
            .position(|database| database == name)
            .expect("a database of the program")
    }

    /// An order to a connection.
    fn order(&mut self, who: usize, words: &str) -> Result<(), Stop> {
        let words: Vec<&str> = words.split_whitespace().collect();
        match words[..] {
            ["open"] => self.both(|side| side.open(who)).map(|_| ()),
            ["close"] => {
                self.waiting[who].clear();
                self.past[who] = false;
                self.both(|side| side.close(who)).map(|_| ())
            }
            ["backup", name] => self
                .both(|side| {
                    side.sql(who, "SELECT 1")?;
                    let (uri, vfs) = side.address(who, name);
                    side.ask_of(who, "backup", &[&uri, vfs])
                })
                .map(|_| ()),
            ["control", operation, argument] => self
                .both(|side| {
                    side.sql(who, "SELECT 1")?;
                    side.ask_of(who, "control", &[operation, argument])
                })
                .map(|_| ()),
            _ => panic!("not an order to a connection: {words:?}"),
        }
    }

    /// Everything that was acknowledged is there, and the rest is stock's.
    fn check(&mut self) -> Result<(), Stop> {
        for (index, name) in self.program.databases().iter().enumerate() {
            self.stats.checks += 1;
            // Where stock's own side is damaged the program did what SQLite forbids.
            let Ok(reference) = self.judge.content(&self.stock.path(name), "unix") else {
                return Err(Stop::StockGone);
            };
            // SQLite 3.40.1 loses a transaction itself at a kill, when the cache spilled, pages were written again, and
            // ROLLBACK TO took that back: its commit frame has no salts.
            let lost_by_stock: BTreeSet<u64> =
                self.acknowledged_by_stock[index].difference(&reference.kept).copied().collect();
            // Where stock's COMMIT failed that cannot be seen.
            let maybe_lost = |id: &u64| {
                self.program.says("ROLLBACK TO") && !self.acknowledged_by_stock[index].contains(id)
            };
            let readers: &[&str] = if self.program.is_embedded() { &["waldio"] } else { &["unix", "waldio"] };
            for vfs in readers {
                let content = self.judge.content(&self.waldio.path(name), vfs);
                let content = content.map_err(|what| {
                    Stop::Broken(Kind::Damaged, format!("{name} as {vfs} reads it: {what}"))
                })?;
                let gone: Vec<u64> = self.acknowledged[index]
                    .difference(&content.kept)
                    .filter(|id| !lost_by_stock.contains(id) && !maybe_lost(id))
                    .copied()
                    .collect();
                if !gone.is_empty() {
                    let what = format!("{name} as {vfs} reads it lacks rows {gone:?} of kept");
                    return Err(Stop::Broken(Kind::Lost, what));
                }
                if self.compares && lost_by_stock.is_empty() && content != reference {
                    let [by_stock, by_waldio] = apart(&reference, &content);
                    let what = format!("{name} as {vfs} reads it\nstock:  {by_stock}\nwaldio: {by_waldio}");
                    return Err(Stop::Broken(Kind::ContentDiffers, what));
                }
            }
        }
        Ok(())
    }

    /// Hardships end, everybody writes once more, and the files are judged: open, after a kill of everything, closed.
    fn end(&mut self) -> Result<(), Stop> {
        self.relieve()?;
        self.check()?;
        if !self.compares {
            self.probe()?;
        }
        for who in 0..self.program.cast.len() {
            // The answer of a close is none; what it leaves is judged.
            let _ = expected(self.stock.close(who))?;
            heard(self.waldio.close(who))?;
        }
        self.check()
    }
}

/// The row that an `INSERT INTO kept VALUES (N)` inserts.
fn kept_id(sql: &str) -> Option<u64> {
    sql.strip_prefix("INSERT INTO kept VALUES (")?.strip_suffix(')')?.parse().ok()
}

/// The rows of a `SELECT id FROM kept`.
fn ids_of(reply: &Reply) -> Vec<u64> {
    let rows = if reply.error.is_empty() { reply.rows.as_str() } else { "" };
    rows.split(';').filter_map(|id| id.parse().ok()).collect()
}

/// Enough to see what it is.
/// Both from a little in front of where they begin to differ.
fn apart<T: std::fmt::Debug>(one: &T, other: &T) -> [String; 2] {
    let texts = [one, other].map(|what| format!("{what:?}").chars().collect::<Vec<_>>());
    let same = texts[0].iter().zip(&texts[1]).take_while(|(one, other)| one == other).count();
    texts.map(|text| text.into_iter().skip(same.saturating_sub(100)).take(300).collect())
}

fn short<T: std::fmt::Debug>(what: &T) -> String {
    let text = format!("{what:?}");
    if text.len() <= 700 {
        return text;
    }
    text.chars().take(700).chain(" ...".chars()).collect()
}
