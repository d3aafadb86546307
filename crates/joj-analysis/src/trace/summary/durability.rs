//! What it costs to make something durable: sync calls as persistence paths, and SQLite's commits.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::filesystem::class::Class;
use crate::trace::attribution::request::{Sync, Transaction, TransactionKind};
use crate::trace::file_type::FileType;
use crate::trace::histogram::{Distribution, Histogram};
use crate::trace::texts::Texts;

/// Steps of the CDF of the journal block ratio.
pub const RATIO_STEPS: usize = 20;

/// Sync calls of one kind on files of one type.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Default)]
pub struct SyncCalls {
    /// `fsync`, `fdatasync`, ..
    pub call: String,
    /// What the files are for.
    pub file_type: String,
    pub calls: u64,
    /// Calls that returned an error.
    pub failed: u64,
    /// How many whose end was not seen: they are in no duration, and what was written for them is not all here.
    pub ends_not_told: u64,
    /// Requests because of them, flushes included.
    pub requests: u64,
    /// Flushes among the requests.
    pub flushes: u64,
    /// Bytes written because of them, by class.
    pub bytes: BTreeMap<String, u64>,
    /// Nanoseconds from begin to end.
    pub duration_ns: Distribution,
    /// Nanoseconds from begin to the completion of the last request.
    pub last_request_ns: Distribution,
    /// Share of the calls' time in which the device flushed for them.
    pub flush_share: f64,
}

/// The persistence paths: sync calls that wrote something (paper 004).
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Default)]
pub struct Persistence {
    /// Sync calls that wrote something.
    pub paths: u64,
    /// Journal blocks of all blocks: R = journal / (data + journal), mean over the paths.
    pub journal_ratio_mean: f64,
    /// Share of paths with R at most 0, 0.05, .., 1.
    pub journal_ratio_cdf: Vec<f64>,
    /// Control blocks (descriptor, commit, revoke) of all blocks written by the paths; `null` where the capture does not see what
    /// is in a block, and so tells only the commit block from others.
    pub control_share: Option<f64>,
    /// Share of the paths' time in which the device flushed for them.
    pub flush_share: f64,
}

/// The sums over all commits, or over all checkpoints.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Default)]
pub struct TransactionTotals {
    /// Commits, or checkpoints.
    pub total: u64,
    /// How many of them had a sync call or a write of their own.
    pub with_requests: u64,
    /// How many of them lasted until their connection closed, which is all that is seen of the commits in exclusive locking mode.
    pub until_close: u64,
    /// Sync calls in all.
    pub syncs: u64,
    /// Bytes written by class, in all.
    pub bytes: BTreeMap<String, u64>,
    /// Written by the filesystem's journal for SQLite's, in all.
    pub journal_of_journal_bytes: u64,
    /// Write requests in all.
    pub writes: u64,
    pub flushes: u64,
    /// How many bytes each of them wrote.
    pub bytes_each: Distribution,
    /// Nanoseconds from its lock to its unlock.
    pub duration_ns: Distribution,
}

impl TransactionTotals {
    /// Bytes of a class for each, on average; 0 where there is none.
    pub fn mean_bytes(&self, class: Class) -> f64 {
        self.mean(self.bytes.get(class.text()).copied().unwrap_or(0))
    }

    /// A sum divided by how many there are.
    pub fn mean(&self, sum: u64) -> f64 {
        if self.total == 0 { 0.0 } else { sum as f64 / self.total as f64 }
    }

    /// All written bytes.
    pub fn total_bytes(&self) -> u64 {
        self.bytes.values().sum()
    }
}

#[derive(Debug, Default)]
struct CallGroup {
    out: SyncCalls,
    bytes: [u64; Class::ALL.len()],
    duration: Histogram,
    last_request: Histogram,
    flush_ns: u64,
    total_ns: u64,
}

#[derive(Debug, Default)]
struct TransactionGroup {
    out: TransactionTotals,
    bytes: [u64; Class::ALL.len()],
    each: Histogram,
    duration: Histogram,
}

/// Counts sync calls and transactions.
#[derive(Debug, Default)]
pub struct DurabilityCounter {
    calls: BTreeMap<(String, FileType), CallGroup>,
    commits: TransactionGroup,
    checkpoints: TransactionGroup,
    outside: u64,
    paths: u64,
    ratio_sum: f64,
    ratios: [u64; RATIO_STEPS + 1],
    control_bytes: u64,
    path_bytes: u64,
    flush_ns: u64,
    path_ns: u64,
    sees_contents: bool,
}

impl DurabilityCounter {
    /// `sees_contents`: the capture looks into blocks of a journal.
    pub fn new(sees_contents: bool) -> Self {
        Self { sees_contents, ..Self::default() }
    }

    /// A sync call returned.
    pub fn sync(&mut self, sync: &Sync, texts: &Texts) {
        let key = (texts.get(sync.call).to_owned(), sync.file_type);
        let group = self.calls.entry(key).or_default();
        let duration_ns = sync.ended_ns.map(|ended_ns| ended_ns.saturating_sub(sync.begun_ns));
        group.out.calls += 1;
        self.outside += u64::from(sync.transaction.is_none() && sync.file_type.is_sqlite());
        group.out.failed += u64::from(sync.result < 0);
        group.out.requests += sync.requests;
        group.out.flushes += sync.flushes;
        group.flush_ns += sync.flush_ns;
        add(&mut group.bytes, &sync.bytes);
        group.out.ends_not_told += u64::from(duration_ns.is_none());
        if let Some(duration_ns) = duration_ns {
            group.duration.add(duration_ns);
            group.total_ns += duration_ns;
        }
        if sync.last_completed_ns > 0 {
            group.last_request.add(sync.last_completed_ns.saturating_sub(sync.begun_ns));
        }
        self.path(sync, duration_ns.unwrap_or(0));
    }

    fn path(&mut self, sync: &Sync, duration_ns: u64) {
        let all: u64 = sync.bytes.iter().sum();
        if all == 0 {
            return;
        }
        let journal = sync.bytes[usize::from(Class::Journal.code())];
        let data = sync.bytes[usize::from(Class::Data.code())];
        let ratio = if journal + data == 0 { 0.0 } else { journal as f64 / (journal + data) as f64 };
        self.paths += 1;
        self.ratio_sum += ratio;
        let step = (0..RATIO_STEPS).find(|&step| ratio <= step as f64 / RATIO_STEPS as f64 + 1e-9);
        self.ratios[step.unwrap_or(RATIO_STEPS)] += 1;
        self.control_bytes += sync.control_bytes;
        self.path_bytes += all;
        self.flush_ns += sync.flush_ns.min(duration_ns);
        self.path_ns += duration_ns;
    }

    /// A commit, checkpoint or recovery is over. A recovery is in no row; its sync calls are in neither of the others.
    pub fn transaction(&mut self, transaction: &Transaction) {
        let group = match transaction.kind {
            TransactionKind::Commit => &mut self.commits,
            TransactionKind::Checkpoint => &mut self.checkpoints,
            TransactionKind::Recovery => {
                self.outside += transaction.syncs;
                return;
            }
        };
        group.out.total += 1;
        group.out.with_requests += u64::from(transaction.syncs + transaction.writes > 0);
        group.out.until_close += u64::from(transaction.until_close);
        group.out.syncs += transaction.syncs;
        group.out.journal_of_journal_bytes += transaction.journal_of_journal_bytes;
        group.out.writes += transaction.writes;
        group.out.flushes += transaction.flushes;
        add(&mut group.bytes, &transaction.bytes);
        group.each.add(transaction.bytes.iter().sum());
        if let Some(ended_ns) = transaction.ended_ns {
            group.duration.add(ended_ns.saturating_sub(transaction.begun_ns));
        }
    }

    /// Sync calls of databases, their logs and their journals that belong to no commit and no checkpoint.
    pub fn sqlite_syncs_outside(&self) -> u64 {
        self.outside
    }

    /// (sync calls, persistence paths, commits, checkpoints)
    pub fn finish(self) -> (Vec<SyncCalls>, Persistence, TransactionTotals, TransactionTotals) {
        let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        let mut below = 0;
        let cdf = self.ratios.iter().map(|count| {
            below += count;
            share(below, self.paths)
        });
        let persistence = Persistence {
            paths: self.paths,
            journal_ratio_mean: if self.paths == 0 { 0.0 } else { self.ratio_sum / self.paths as f64 },
            journal_ratio_cdf: cdf.collect(),
            control_share: self.sees_contents.then(|| share(self.control_bytes, self.path_bytes)),
            flush_share: share(self.flush_ns, self.path_ns),
        };
        let call = |((call, file_type), group): ((String, FileType), CallGroup)| SyncCalls {
            call,
            file_type: file_type.text().to_owned(),
            bytes: by_class(&group.bytes),
            duration_ns: group.duration.distribution(),
            last_request_ns: group.last_request.distribution(),
            flush_share: share(group.flush_ns.min(group.total_ns), group.total_ns),
            ..group.out
        };
        let calls = self.calls.into_iter().map(call).collect();
        (calls, persistence, finished(self.commits), finished(self.checkpoints))
    }
}

fn finished(group: TransactionGroup) -> TransactionTotals {
    TransactionTotals {
        bytes: by_class(&group.bytes),
        bytes_each: group.each.distribution(),
        duration_ns: group.duration.distribution(),
        ..group.out
    }
}

fn add(sums: &mut [u64; Class::ALL.len()], more: &[u64; Class::ALL.len()]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum += more;
    }
}

fn by_class(bytes: &[u64; Class::ALL.len()]) -> BTreeMap<String, u64> {
    let named = Class::ALL.iter().map(|class| (class.text().to_owned(), bytes[usize::from(class.code())]));
    named.filter(|(_, bytes)| *bytes > 0).collect()
}
