//! Programs from a seed.
//!
//! Each program leans towards a few kinds of acts, chosen anew (swarm testing): what all programs do a little of, none does
//! enough of to fill a log, wrap it and kill its writer. Some acts come as phrases, with others in between.

use super::program::{Act, Actor, Compared, Program, Role};
use crate::real::chance::Chance;
use crate::real::ordeal::is_root;

mod phrases;
mod words;

/// What a program may lean towards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// INSERT, UPDATE, DELETE, some too large for the cache, some that fail.
    Change,
    /// BEGIN, COMMIT, ROLLBACK, savepoints.
    Transaction,
    /// A row of `kept`.
    Keep,
    /// SELECT.
    Read,
    /// Checkpoints.
    Checkpoint,
    /// Pragmas that change how a log lives.
    Setting,
    /// journal_mode.
    JournalMode,
    /// locking_mode.
    Exclusive,
    /// VACUUM, page_size, VACUUM INTO, backup, ATTACH.
    Copy,
    /// Tables and indexes.
    Schema,
    /// Close and open.
    Reopen,
    /// kill -9.
    Kill,
    /// fork, sleep, closed descriptors.
    Process,
    /// Calls that the kernel refuses and SQLite goes on without.
    Refuse,
    /// Calls that fail, limits.
    Hardship,
    /// Sequences that are known to be delicate.
    Phrase,
}

const COMMON: [Kind; 6] =
    [Kind::Change, Kind::Transaction, Kind::Keep, Kind::Read, Kind::Checkpoint, Kind::Setting];
const RARE: [Kind; 10] = [
    Kind::JournalMode,
    Kind::Exclusive,
    Kind::Copy,
    Kind::Schema,
    Kind::Reopen,
    Kind::Kill,
    Kind::Process,
    Kind::Refuse,
    Kind::Hardship,
    Kind::Phrase,
];

/// Parameters of waldio's connections: the same for all of one database in a program, as their log is one.
const PARAMETERS: [&str; 10] = [
    "",
    "waldio_durability=bounded",
    "waldio_persist=flush",
    "waldio_persist=fua",
    "waldio_persist=fua&waldio_log_bytes=65536",
    "waldio_persist=flush&waldio_log_bytes=65536&waldio_fill=zeroes",
    "waldio_group=16KiB,2ms",
    "waldio_durable_reads=on&waldio_log_bytes=65536",
    "waldio_strict=1",
    "waldio_layout=embedded&waldio_log_bytes=65536",
];

/// A program in the making.
pub struct Maker {
    chance: Chance,
    program: Program,
    kinds: Vec<Kind>,
    next_id: u64,
    next_file: u64,
}

/// The program of this seed.
pub fn make(seed: u64) -> Program {
    let mut chance = Chance::new(seed);
    let program = cast(&mut chance);
    let mut kinds = Vec::new();
    for kind in COMMON {
        kinds.extend(std::iter::repeat_n(kind, 1 + index(&mut chance, 4)));
    }
    for _ in 0..3 + chance.below(3) {
        let kind = *chance.pick(&RARE);
        // Most programs are free of hardships: behind one answers are not compared any more.
        if kind != Kind::Hardship || chance.below(3) == 0 {
            kinds.extend(std::iter::repeat_n(kind, 1 + index(&mut chance, 3)));
        }
    }
    let mut maker = Maker { chance, program, kinds, next_id: 1, next_file: 1 };
    let length = 25 + index(&mut maker.chance, 60);
    for who in 0..maker.program.cast.len() {
        if maker.chance.below(3) > 0 {
            let pages = 2 + maker.chance.below(4);
            maker.sql(who, format!("PRAGMA cache_size = {pages}"));
        }
    }
    while maker.program.acts.len() < length {
        maker.act();
    }
    if maker.chance.below(4) == 0 && !maker.program.is_embedded() {
        // The embedded layout has files of its own beside the database.
        for who in 0..maker.program.cast.len() {
            maker.order(Actor::Connection(who), "close".to_owned());
        }
        maker.order(Actor::World, "files".to_owned());
    }
    maker.program
}

fn index(chance: &mut Chance, end: u64) -> usize {
    usize::try_from(chance.below(end)).expect("small")
}

/// Two to four connections of one to three processes on one or two databases.
fn cast(chance: &mut Chance) -> Program {
    let page_bytes = *chance.pick(&[512, 1024, 1024, 1024, 4096, 4096]);
    let nobody = is_root() && chance.below(5) == 0;
    let parameters = [0, 1].map(|_| *chance.pick(&PARAMETERS));
    let embedded = parameters.iter().any(|parameters| parameters.contains("embedded"));
    let (count, processes) = (2 + chance.below(3), 1 + chance.below(3));
    let two = chance.below(4) == 0;
    let mut program = Program { page_bytes, nobody, ..Program::default() };
    if embedded {
        (program.page_bytes, program.reserved_bytes) = (4096, 24);
    }
    for number in 0..count {
        let process = usize::try_from(1 + (number + chance.below(2)) % processes).expect("small");
        let second = two && number > 0 && chance.below(2) == 0;
        // Whoever does not know the embedded layout is refused: tested by programs with names.
        let waldio = number == 0 || embedded || chance.below(3) > 0;
        let database = if second { "other.db" } else { "app.db" }.to_owned();
        let parameters = if waldio { parameters[usize::from(second)] } else { "" }.to_owned();
        program.cast.push(Role { process, waldio, database, parameters });
    }
    program
}

impl Maker {
    fn pick(&mut self, from: &[&str]) -> String {
        (*self.chance.pick(from)).to_owned()
    }

    fn who(&mut self) -> usize {
        // One of them does most.
        let count = self.program.cast.len() as u64;
        if self.chance.below(3) == 0 { 0 } else { index(&mut self.chance, count) }
    }

    fn sql(&mut self, who: usize, sql: String) {
        self.program.acts.push(Act::Sql { who, sql, compared: Compared::Usually });
    }

    fn order(&mut self, actor: Actor, words: String) {
        self.program.acts.push(Act::Order(actor, words));
    }

    fn act(&mut self) {
        let who = self.who();
        let kinds = self.kinds.clone();
        let kind = *self.chance.pick(&kinds);
        self.act_of(kind, who);
    }

    fn act_of(&mut self, kind: Kind, who: usize) {
        let process = self.program.cast[who].process;
        match kind {
            Kind::Change => {
                let sql = self.change();
                self.sql(who, sql);
            }
            Kind::Transaction => {
                let sql = self.transaction();
                self.sql(who, sql);
            }
            Kind::Keep => self.keep(who),
            Kind::Read => {
                let sql = self.read();
                self.sql(who, sql);
            }
            Kind::Checkpoint => {
                let sql = self.checkpoint();
                self.sql(who, sql);
            }
            Kind::Setting => {
                let sql = self.setting();
                self.sql(who, sql);
            }
            Kind::JournalMode => {
                let mode = self.pick(&["DELETE", "TRUNCATE", "PERSIST", "WAL", "WAL", "WAL"]);
                self.sql(who, format!("PRAGMA journal_mode = {mode}"));
            }
            Kind::Exclusive => {
                let mode = self.pick(&["EXCLUSIVE", "NORMAL", "NORMAL"]);
                self.sql(who, format!("PRAGMA locking_mode = {mode}"));
            }
            Kind::Copy => self.copy(who),
            Kind::Schema => {
                let sql = self.schema();
                self.sql(who, sql);
            }
            Kind::Reopen => {
                // SQLITE_FCNTL_PERSIST_WAL keeps the log at the last close.
                let words = self.pick(&["close", "close", "close", "open", "open", "control 10 1"]);
                self.order(Actor::Connection(who), words);
            }
            Kind::Kill => self.order(Actor::Process(process), "kill".to_owned()),
            Kind::Process => {
                let words = self.pick(&["fork", "sleep 1", "sleep 3", "standard", "complain", "complain"]);
                self.order(Actor::Process(process), words);
            }
            Kind::Refuse if self.program.nobody && self.chance.below(2) == 0 => {
                // A folder that can be written to and not be opened.
                let bits = self.pick(&["333", "333", "755"]);
                self.order(Actor::World, format!("mode {bits}"));
            }
            Kind::Refuse => {
                let call =
                    self.pick(&["cachestat", "cachestat", "flock", "fallocate", "renameat2", "pwritev2"]);
                let error = self.pick(&["EPERM", "EPERM", "ENOSYS"]);
                let count = self.pick(&["all", "1", "3"]);
                self.order(Actor::Process(process), format!("fail {call} {error} {count}"));
            }
            Kind::Hardship => self.hardship(process),
            Kind::Phrase => self.phrase(who),
        }
    }

    fn keep(&mut self, who: usize) {
        let id = self.next_id;
        self.next_id += 1;
        self.sql(who, format!("INSERT INTO kept VALUES ({id})"));
    }
}
