//! A fleet that nobody captured: traces of many devices, as attribution gives them, with what a report of them must say.
//!
//! Each device has two traces, one of each version. Version 2.0 writes more and its flushes take longer, by one planted factor.
//! Some devices are slower than all others of their model. All of it comes from a seed.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::filesystem::class::Class;
use crate::trace::attribution::attribute::Outcome;
use crate::trace::attribution::request::{
    BlockRun, Request, Sync, SyncId, Transaction, TransactionId, TransactionKind,
};
use crate::trace::event::{DeviceNumber, Event, EventKind, FileKey, Operation};
use crate::trace::file_type::FileType;
use crate::trace::texts::{Text, Texts};

/// Device models, and how long their flushes take, microseconds.
const MODELS: [(&str, u64); 5] =
    [("phone-a", 900), ("phone-b", 2_500), ("car-a", 6_000), ("car-b", 1_600), ("server-a", 300)];
/// Versions of the application.
const VERSIONS: [&str; 2] = ["1.0", "2.0"];
/// Of so many devices one is slow, and by how much.
const OUTLIER_EVERY: u64 = 97;
const OUTLIER_FACTOR: f64 = 8.0;
const DISK: DeviceNumber = DeviceNumber(254 << 20);
/// `st_dev` of the files.
pub const FILES: DeviceNumber = DeviceNumber((254 << 20) + 1);
/// The process and the thread of all of them.
const PROCESS: u32 = 1_000;
const BLOCK_BYTES: u64 = 4096;
/// A trace is of one day.
const DAY_NS: u64 = 86_400_000_000_000;

/// A program and how it uses SQLite.
struct Program {
    name: &'static str,
    is_log: bool,
    /// What ends a rollback journal: deleted, or cut.
    deletes: bool,
    /// Sync calls of the journal or log.
    journal_syncs: u64,
    /// Sync calls of the database.
    database_syncs: u64,
    call: &'static str,
    /// Blocks that the filesystem's journal writes for SQLite's.
    journal_blocks: u64,
}

const PROGRAMS: [Program; 4] = [
    program("mail", true, false, [1, 0], "fdatasync", 1),
    program("chat", false, true, [2, 1], "fsync", 4),
    program("browser", true, false, [0, 0], "fdatasync", 0),
    program("maps", false, false, [1, 1], "fdatasync", 2),
];

const fn program(
    name: &'static str,
    is_log: bool,
    deletes: bool,
    syncs: [u64; 2],
    call: &'static str,
    journal_blocks: u64,
) -> Program {
    let [journal_syncs, database_syncs] = syncs;
    Program { name, is_log, deletes, journal_syncs, database_syncs, call, journal_blocks }
}

/// What is to be made.
#[derive(Debug, Clone, Copy)]
pub struct FleetPlan {
    /// Another number makes another fleet.
    pub seed: u64,
    /// Commits of each trace.
    pub commits: u64,
    /// By how much version 2.0 writes more, and its flushes take longer.
    pub regression: f64,
}

/// A trace of a fleet: whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetTrace {
    /// Its number, from 0.
    pub number: u64,
    pub device: &'static str,
    pub device_id: String,
    pub version: &'static str,
    /// True for a device that is slower than the others of its model.
    pub is_outlier: bool,
}

/// What a report must say of some traces: sums, exact.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FleetSums {
    pub traces: u64,
    pub commits: u64,
    pub written_bytes: u64,
    pub journal_of_journal_bytes: u64,
    pub flushes: u64,
    /// The sum of what the flushes took.
    pub flush_ns: u64,
    /// The sum of what the commits took.
    pub duration_ns: u64,
    /// Commits by journal mode and sync mode.
    pub modes: BTreeMap<String, u64>,
    /// Commits by application.
    pub applications: BTreeMap<String, u64>,
    /// Commits with an fsync.
    pub fsync_commits: u64,
}

impl FleetSums {
    /// Adds those of other traces.
    pub fn add(&mut self, other: &Self) {
        self.traces += other.traces;
        self.commits += other.commits;
        self.written_bytes += other.written_bytes;
        self.journal_of_journal_bytes += other.journal_of_journal_bytes;
        self.flushes += other.flushes;
        self.flush_ns += other.flush_ns;
        self.duration_ns += other.duration_ns;
        self.fsync_commits += other.fsync_commits;
        for (sums, more) in [(&mut self.modes, &other.modes), (&mut self.applications, &other.applications)] {
            for (key, count) in more {
                *sums.entry(key.clone()).or_default() += count;
            }
        }
    }
}

impl FleetTrace {
    /// The trace with this number.
    pub fn numbered(number: u64) -> Self {
        let unit = number / 2;
        let model = usize::try_from(unit % MODELS.len() as u64).unwrap_or(0);
        Self {
            number,
            device: MODELS[model].0,
            device_id: format!("unit-{unit:06}"),
            version: VERSIONS[usize::from(number % 2 == 1)],
            is_outlier: unit % OUTLIER_EVERY == 13,
        }
    }

    /// 16 hexadecimal digits: another one for each trace of each fleet.
    pub fn id(&self, plan: &FleetPlan) -> String {
        format!("{:016x}", mixed(plan.seed.wrapping_mul(0x1_0000_0000).wrapping_add(self.number)))
    }

    /// Hands on everything that happens in it, and says what a report must say of it.
    /// # Errors
    /// Those of the sink.
    pub fn play<E>(
        &self,
        plan: &FleetPlan,
        sink: &mut dyn FnMut(&Outcome<'_>, &Texts) -> Result<(), E>,
    ) -> Result<(FleetSums, Texts), E> {
        let mut texts = Texts::default();
        let programs = PROGRAMS.each_ref().map(|program| Names::keep(program, &mut texts));
        let mut player = Player::of(self, plan, &programs);
        for number in 0..plan.commits {
            let begun_ns = DAY_NS / plan.commits.max(1) * number + 1;
            player.commit(number, begun_ns, &mut |outcome| sink(outcome, &texts))?;
        }
        let sums = FleetSums { traces: 1, commits: plan.commits, ..player.sums };
        Ok((sums, texts))
    }
}

/// The names of a program's files.
struct Names {
    command: Text,
    call: Text,
    /// What SQLite locks.
    locked: Text,
    journal: Text,
    database: Text,
}

impl Names {
    fn keep(program: &Program, texts: &mut Texts) -> Self {
        let path = |ending| format!("/data/{0}/{0}.db{ending}", program.name);
        let (locked, journal) = if program.is_log { ("-shm", "-wal") } else { ("", "-journal") };
        Self {
            command: texts.keep(program.name),
            call: texts.keep(program.call),
            locked: texts.keep(&path(locked)),
            journal: texts.keep(&path(journal)),
            database: texts.keep(&path("")),
        }
    }
}

struct Player<'a> {
    names: &'a [Names; PROGRAMS.len()],
    random: u64,
    /// Nanoseconds of a flush, on average.
    flush_ns: f64,
    /// By how much everything that is written is more.
    factor: f64,
    syncs: u64,
    sums: FleetSums,
}

impl<'a> Player<'a> {
    fn of(trace: &FleetTrace, plan: &FleetPlan, names: &'a [Names; PROGRAMS.len()]) -> Self {
        let unit = trace.number / 2;
        let model = usize::try_from(unit % MODELS.len() as u64).unwrap_or(0);
        // The same for both versions: devices differ, and a comparison by pairs does not see it.
        let of_unit = 0.8 + 0.4 * share(mixed(plan.seed ^ mixed(unit)));
        let slow = if trace.is_outlier { OUTLIER_FACTOR } else { 1.0 };
        let factor = if trace.version == VERSIONS[1] { plan.regression } else { 1.0 };
        Self {
            names,
            random: mixed(plan.seed.wrapping_add(mixed(trace.number + 1))),
            flush_ns: MODELS[model].1 as f64 * 1e3 * of_unit * slow * factor,
            factor,
            syncs: 0,
            sums: FleetSums::default(),
        }
    }

    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.random)
    }

    /// So many blocks, times the factor: by chance one more or less, so that the mean is right.
    fn blocks(&mut self, blocks: u64) -> u64 {
        let wanted = blocks as f64 * self.factor;
        let whole = whole(wanted);
        whole + u64::from(share(self.random()) < wanted - whole as f64)
    }

    fn flush_time(&mut self) -> u64 {
        let tail = if self.random().is_multiple_of(100) { 10.0 } else { 1.0 };
        whole(self.flush_ns * (0.7 + 0.6 * share(self.random())) * tail)
    }

    fn commit<E>(&mut self, number: u64, begun_ns: u64, sink: &mut PlaySink<'_, E>) -> Result<(), E> {
        let which = usize::try_from(self.random() % PROGRAMS.len() as u64).unwrap_or(0);
        let id = TransactionId(number);
        let pages = 1 + self.random() % 4;
        let commit = Commit { id, program: &PROGRAMS[which], names: &self.names[which], which: which as u64 };
        let is_log = commit.program.is_log;
        let data = self.blocks(if is_log { pages } else { 2 * pages + 1 }) * BLOCK_BYTES;
        let journal = self.blocks(commit.program.journal_blocks) * BLOCK_BYTES;
        let written_ns = commit.write([data, journal], begun_ns + 20_000, sink)?;
        let ended_ns = self.sync(&commit, written_ns, sink)?;
        if !is_log {
            let kind = if commit.program.deletes { EventKind::Unlinked } else { EventKind::Truncated };
            let name = commit.names.journal;
            let note = Event { kind, file: commit.file(1), name, time_ns: ended_ns, ..Event::default() };
            sink(&Outcome::Note(&note, Some(id)))?;
        }
        let transaction = commit.transaction([data, journal], begun_ns, ended_ns);
        sink(&Outcome::Transaction(&transaction))?;
        self.count(commit.program, &transaction, ended_ns - written_ns);
        Ok(())
    }

    /// The sync calls of a commit, one flush in each. Returns when the last is over.
    fn sync<E>(&mut self, commit: &Commit<'_>, begun_ns: u64, sink: &mut PlaySink<'_, E>) -> Result<u64, E> {
        let mut time_ns = begun_ns;
        let of_database = (commit.file(2), commit.names.database, FileType::SqliteDatabase);
        let of_journal = (commit.file(1), commit.names.journal, commit.journal_type());
        let calls =
            [(commit.program.journal_syncs, of_journal), (commit.program.database_syncs, of_database)];
        for (file, _) in calls.into_iter().flat_map(|(calls, file)| (0..calls).map(move |call| (file, call)))
        {
            let flush_ns = self.flush_time();
            let run = commit.run(Class::Unattributed, 0, time_ns);
            sink(&Outcome::Request(&request(Operation::Flush, run, time_ns + flush_ns)))?;
            sink(&Outcome::Sync(&commit.call(SyncId(self.syncs), file, time_ns, flush_ns)))?;
            self.syncs += 1;
            time_ns += flush_ns;
        }
        Ok(time_ns)
    }

    fn count(&mut self, program: &Program, commit: &Transaction, flush_ns: u64) {
        let sums = &mut self.sums;
        sums.written_bytes += commit.bytes.iter().sum::<u64>();
        sums.journal_of_journal_bytes += commit.journal_of_journal_bytes;
        sums.flushes += commit.flushes;
        sums.flush_ns += flush_ns;
        sums.duration_ns += commit.ended_ns.map_or(0, |ended_ns| ended_ns - commit.begun_ns);
        sums.fsync_commits += u64::from(program.call == "fsync");
        let journal_mode = match program {
            Program { is_log: true, .. } => "wal",
            Program { deletes: true, .. } => "delete",
            _ => "truncate",
        };
        let sync_mode = match (program.is_log, program.journal_syncs) {
            (_, 0) => "none",
            (false, 1) => "normal",
            _ => "full",
        };
        *sums.modes.entry(format!("{journal_mode} {sync_mode}")).or_default() += 1;
        *sums.applications.entry(program.name.to_owned()).or_default() += 1;
    }
}

/// What receives everything that happens in a commit.
type PlaySink<'a, E> = dyn FnMut(&Outcome<'_>) -> Result<(), E> + 'a;

/// A commit that is being made.
struct Commit<'a> {
    id: TransactionId,
    program: &'static Program,
    names: &'a Names,
    which: u64,
}

impl Commit<'_> {
    fn file(&self, number: u64) -> FileKey {
        FileKey { device: FILES, inode: 100 + self.which * 4 + number, generation: 1 }
    }

    fn journal_type(&self) -> FileType {
        if self.program.is_log { FileType::WriteAheadLog } else { FileType::RollbackJournal }
    }

    fn run(&self, class: Class, bytes: u64, queued_ns: u64) -> BlockRun {
        BlockRun {
            queued_ns,
            sector: queued_ns / 1_000 % (1 << 24) / 8 * 8,
            bytes,
            class,
            journal_of_journal: class == Class::Journal,
            transaction: Some(self.id),
            process: PROCESS,
            for_process: PROCESS,
            command: self.names.command,
            ..BlockRun::default()
        }
    }

    /// The writes: SQLite's journal or log, and what the filesystem's journal writes for it. Returns when they are done.
    fn write<E>(
        &self,
        [data, journal]: [u64; 2],
        begun_ns: u64,
        sink: &mut PlaySink<'_, E>,
    ) -> Result<u64, E> {
        let mut time_ns = begun_ns;
        let of_file = BlockRun {
            file: self.file(1),
            name: self.names.journal,
            file_type: self.journal_type(),
            ..self.run(Class::Data, data, time_ns)
        };
        let of_journal = self.run(Class::Journal, journal, time_ns + 100_000);
        for run in [of_file, of_journal].into_iter().filter(|run| run.bytes > 0) {
            sink(&Outcome::Request(&request(Operation::Write, run, time_ns + 90_000)))?;
            time_ns += 100_000;
        }
        Ok(time_ns)
    }

    fn call(
        &self,
        id: SyncId,
        (file, name, file_type): (FileKey, Text, FileType),
        begun_ns: u64,
        flush_ns: u64,
    ) -> Sync {
        Sync {
            id,
            call: self.names.call,
            file,
            name,
            file_type,
            thread: PROCESS,
            process: PROCESS,
            command: self.names.command,
            begun_ns,
            ended_ns: Some(begun_ns + flush_ns),
            result: 0,
            bytes: [0; Class::ALL.len()],
            control_bytes: 0,
            flush_ns,
            requests: 1,
            writes: 0,
            flushes: 1,
            last_completed_ns: begun_ns + flush_ns,
            transaction: Some(self.id),
        }
    }

    fn transaction(&self, [data, journal]: [u64; 2], begun_ns: u64, ended_ns: u64) -> Transaction {
        let mut bytes = [0; Class::ALL.len()];
        bytes[usize::from(Class::Data.code())] = data;
        bytes[usize::from(Class::Journal.code())] = journal;
        let syncs = self.program.journal_syncs + self.program.database_syncs;
        Transaction {
            id: self.id,
            kind: TransactionKind::Commit,
            file: self.file(0),
            name: self.names.locked,
            thread: PROCESS,
            process: PROCESS,
            command: self.names.command,
            begun_ns,
            ended_ns: Some(ended_ns),
            until_close: false,
            syncs,
            bytes,
            journal_of_journal_bytes: journal,
            writes: 1 + u64::from(journal > 0),
            flushes: syncs,
        }
    }
}

fn request(operation: Operation, run: BlockRun, completed_ns: u64) -> Request {
    Request {
        issued_ns: run.queued_ns,
        completed_ns: Some(completed_ns),
        disk: DISK,
        sector: run.sector,
        bytes: run.bytes,
        operation,
        command: run.command,
        runs: vec![run],
        ..Request::default()
    }
}

/// SplitMix64's last step: neighbouring numbers give numbers without a likeness.
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// From 0 to 1.
fn share(number: u64) -> f64 {
    (number >> 11) as f64 / (1_u64 << 53) as f64
}

/// A number without its fraction; none of ours is negative or large.
fn whole(number: f64) -> u64 {
    std::time::Duration::from_secs_f64(number.max(0.0)).as_secs()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn sums(number: u64, plan: &FleetPlan) -> FleetSums {
        let mut nothing = |_: &Outcome<'_>, _: &Texts| Ok::<(), Infallible>(());
        FleetTrace::numbered(number).play(plan, &mut nothing).unwrap_or_else(|never| match never {}).0
    }

    #[test]
    fn the_second_version_writes_as_much_more_as_was_planted() {
        let plan = FleetPlan { seed: 3, commits: 20_000, regression: 1.25 };
        let [one, two] = [0, 1].map(|number| sums(number, &plan));
        let ratio = two.written_bytes as f64 / one.written_bytes as f64;
        assert!((ratio - 1.25).abs() < 0.02, "{ratio}");
        assert_eq!((one.commits, sums(0, &plan)), (20_000, one.clone()), "the same at each call");
        let same = FleetPlan { regression: 1.0, ..plan };
        assert_eq!(sums(0, &same), one);
    }

    #[test]
    fn ids_differ() {
        let plan = FleetPlan { seed: 3, commits: 1, regression: 1.0 };
        let mut ids: Vec<String> = (0..5_000).map(|number| FleetTrace::numbered(number).id(&plan)).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 5_000);
    }
}
