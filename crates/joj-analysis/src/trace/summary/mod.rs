//! A trace in numbers: everything the papers ask of one. Here the whole of it; its parts:
//!
//! ```text
//! files        which files the bytes are of
//! processes    who wrote, synced and committed
//! counts       how many requests and bytes, by what they are for
//! durability   what it costs to make something durable: sync calls and SQLite's commits
//! ```

pub mod files;
pub mod processes;
pub mod counts;
pub mod durability;

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;

use self::counts::{Counter, Counts, RequestCount};
use self::durability::{DurabilityCounter, Persistence, SyncCalls, TransactionTotals};
use self::files::{FileCounter, FileVolume};
use self::processes::{OwnShare, ProcessVolume, Processes};
use crate::filesystem::class::Class;
use crate::trace::attribution::attribute::Outcome;
use crate::trace::attribution::request::Request;
use crate::trace::event::{DeviceNumber, Event, EventKind, Operation, RequestFlags};
use crate::trace::header::Header;
use crate::trace::texts::Texts;
use crate::trace::wanted::Wanted;

/// The version of a summary in JSON.
pub const SUMMARY_VERSION: u32 = 1;

/// What was seen of a disk, beside its own counters.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Default)]
pub struct DiskCheck {
    /// The disk's name in the kernel.
    pub disk: String,
    /// Writes seen, and bytes; zeroes that the device makes among them, as the kernel counts.
    pub written: RequestCount,
    /// Reads that the trace has.
    pub read: RequestCount,
    /// Flushes that the trace has.
    pub flushes: u64,
    /// Flushes that were handed over without a write: the kernel counts each among the writes, too.
    pub empty_flushes: u64,
    /// Discards that the trace has.
    pub discards: u64,
    /// Discards by its own counters; `null` where the trace has none.
    pub counted_discards: Option<u64>,
    /// Its own counters: writes; `null` where the trace has none.
    pub counted_writes: Option<u64>,
    /// Bytes written by its own counters.
    pub counted_written_bytes: Option<u64>,
    /// Reads by its own counters.
    pub counted_reads: Option<u64>,
    /// Flushes by its own counters.
    pub counted_flushes: Option<u64>,
}

/// A whole trace in numbers.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Default)]
pub struct Summary {
    /// Version of this description, 1 or more.
    pub version: u32,
    /// Who captured it, and how.
    pub header: Header,
    pub events: u64,
    /// Events that the capture lost; `null` where it does not know.
    pub lost: Option<u64>,
    /// Nanoseconds from the first event to the last.
    pub span_ns: u64,
    pub counts: Counts,
    /// Written bytes that were placed, of all.
    pub attributed_share: f64,
    /// Written bytes for each byte of data in files; `null` where no data was written.
    pub write_amplification: Option<f64>,
    /// Sync calls by kind and type of file.
    pub sync_calls: Vec<SyncCalls>,
    /// Sync calls that wrote something.
    pub persistence: Persistence,
    pub commits: TransactionTotals,
    pub checkpoints: TransactionTotals,
    /// Sync calls of databases, their logs and their journals that belong to no commit and no checkpoint.
    pub sqlite_syncs_outside: u64,
    /// Filesystem journals' commits.
    pub journal_commits: u64,
    /// The files with the most bytes.
    pub files: Vec<FileVolume>,
    /// How many other files there were.
    pub files_not_named: u64,
    /// Disks beside their own counters.
    pub disks: Vec<DiskCheck>,
    /// Whom it was for: those with the most bytes.
    pub processes: Vec<ProcessVolume>,
    /// Of the processes whose calls and commits were asked for; absent where everybody's were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own: Option<OwnShare>,
}

/// Makes a summary of outcomes, in memory that does not grow with them.
#[derive(Debug, Default)]
pub struct Summariser {
    counter: Counter,
    durability: DurabilityCounter,
    processes: Processes,
    files: FileCounter,
    disks: HashMap<DeviceNumber, DiskCheck>,
    events: u64,
    first_ns: Option<u64>,
    last_ns: u64,
    lost: u64,
    loss_known: bool,
    journal_commits: u64,
}

impl Summariser {
    /// For the trace with this head: where it asks for processes, sync calls, commits and checkpoints are theirs alone.
    pub fn of(header: &Header) -> Self {
        Self {
            processes: Processes::with(Wanted::of(header)),
            durability: DurabilityCounter::new(header.source.sees_contents()),
            ..Self::default()
        }
    }

    /// An event went by.
    pub fn event(&mut self, event: &Event) {
        self.events += 1;
        self.first_ns.get_or_insert(event.time_ns);
        self.last_ns = event.time_ns;
        let is_flush = event.operation == Operation::Flush || event.flags.has(RequestFlags::PREFLUSH);
        if event.kind == EventKind::Queue && event.bytes == 0 && is_flush {
            self.disks.entry(event.device).or_default().empty_flushes += 1;
        }
        self.journal_commits += u64::from(event.kind == EventKind::JournalEnd);
        if event.kind == EventKind::Lost {
            self.lost += u64::try_from(event.detail).unwrap_or(0);
            self.loss_known |= event.detail >= 0;
        }
    }

    /// Something is complete.
    pub fn outcome(&mut self, outcome: &Outcome<'_>, texts: &Texts) {
        match outcome {
            Outcome::Request(request) => self.request(request, texts),
            Outcome::Sync(sync) => {
                self.processes.sync(sync);
                if self.wanted().includes(sync.process) {
                    self.durability.sync(sync, texts);
                }
            }
            Outcome::Transaction(transaction) => {
                self.processes.transaction(transaction);
                if self.wanted().includes(transaction.process) {
                    self.durability.transaction(transaction);
                }
            }
            Outcome::Note(event, _) => match event.kind {
                EventKind::Unlinked if event.detail <= 0 => self.files.gone(event.file),
                EventKind::Freed => self.files.gone(event.file),
                _ => {}
            },
        }
    }

    /// Whose sync calls, commits and checkpoints are counted, from here on.
    pub fn wanted(&mut self) -> &mut Wanted {
        self.processes.wanted()
    }

    fn request(&mut self, request: &Request, texts: &Texts) {
        self.counter.add(request);
        if request.under_way {
            return;
        }
        self.processes.request(request);
        let disk = self.disks.entry(request.disk).or_default();
        match request.operation {
            // The kernel counts zeroes that the device makes among the writes.
            Operation::Write | Operation::WriteZeroes => disk.written.add(request.bytes),
            Operation::Read => disk.read.add(request.bytes),
            Operation::Flush => disk.flushes += 1,
            Operation::Discard => disk.discards += 1,
            _ => {}
        }
        let is_write = request.operation == Operation::Write;
        if !is_write && request.operation != Operation::Read {
            return;
        }
        for run in request.runs.iter().filter(|run| run.class == Class::Data) {
            self.files.add(run, is_write, texts);
        }
    }

    /// The summary of everything, under the trace's head.
    pub fn finish(self, header: &Header, texts: &Texts) -> Summary {
        let counts = self.counter.finish();
        let sqlite_syncs_outside = self.durability.sqlite_syncs_outside();
        let (sync_calls, persistence, commits, checkpoints) = self.durability.finish();
        let data = counts
            .classes
            .iter()
            .find(|one| one.label == Class::Data.text())
            .map_or(0, |one| one.written.bytes);
        let (files, files_not_named) = self.files.finish(header);
        let lost = header.ending.as_ref().map(|ending| ending.lost);
        Summary {
            version: SUMMARY_VERSION,
            header: header.clone(),
            events: self.events,
            lost: lost.map(|lost| lost.max(self.lost)).or(self.loss_known.then_some(self.lost)),
            span_ns: self.last_ns.saturating_sub(self.first_ns.unwrap_or(self.last_ns)),
            attributed_share: counts.attributed_share(),
            write_amplification: (data > 0).then(|| counts.writes.bytes as f64 / data as f64),
            counts,
            sync_calls,
            persistence,
            commits,
            checkpoints,
            sqlite_syncs_outside,
            journal_commits: self.journal_commits,
            files,
            files_not_named,
            disks: checked(self.disks, header),
            own: self.processes.own_share(),
            processes: self.processes.finish(texts),
        }
    }
}

/// What was seen beside what the disks count themselves.
fn checked(mut disks: HashMap<DeviceNumber, DiskCheck>, header: &Header) -> Vec<DiskCheck> {
    // What partitions were asked for, their disk is.
    for partition in header.disks.iter().filter(|disk| disk.number != disk.whole) {
        if let Some(part) = disks.remove(&partition.number) {
            disks.entry(partition.whole).or_default().empty_flushes += part.empty_flushes;
        }
    }
    let mut disks: Vec<(DeviceNumber, DiskCheck)> = disks.into_iter().collect();
    disks.sort_by_key(|(number, _)| *number);
    let ending = header.ending.as_ref();
    let with_counters = |(number, check): (DeviceNumber, DiskCheck)| {
        let counters = ending.and_then(|ending| ending.disks.iter().find(|counted| counted.disk == number));
        DiskCheck {
            disk: header.disk(number).map_or_else(|| number.to_string(), |disk| disk.name.clone()),
            counted_discards: counters.map(|counted| counted.discards),
            counted_writes: counters.map(|counted| counted.writes),
            counted_written_bytes: counters.map(|counted| counted.written_bytes),
            counted_reads: counters.map(|counted| counted.reads),
            counted_flushes: counters.map(|counted| counted.flushes),
            ..check
        }
    };
    disks.into_iter().map(with_counters).collect()
}
