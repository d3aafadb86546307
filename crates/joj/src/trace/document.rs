//! What `joj trace --json` writes: the summary, and with `--steps` what each transaction cost.

use joj_analysis::filesystem::class::Class;
use joj_analysis::trace::attribution::request::{Transaction, TransactionKind};
use joj_analysis::trace::steps::{StepsOwner, TransactionSteps};
use joj_analysis::trace::summary::Summary;
use joj_analysis::trace::texts::Texts;
use schemars::JsonSchema;
use serde::Serialize;

/// A trace in numbers (docs/trace_summary_format.md).
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct TraceDocument<'a> {
    /// The summary, whose fields stand beside `transactions`.
    #[serde(flatten)]
    pub summary: &'a Summary,
    /// What each transaction cost; absent without `--steps`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transactions: Option<Vec<TransactionRow>>,
}

/// A commit, a checkpoint, or a sync call outside of both.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct TransactionRow {
    /// `commit`, `checkpoint`, or the call's name.
    pub what: String,
    /// The file that SQLite locked, or that the call was for.
    pub file: String,
    /// Trace clock at its begin.
    pub begun_ns: u64,
    /// From the lock to the unlock, or from the call to its return; `null` where the trace ended before.
    pub duration_ns: Option<u64>,
    pub data_bytes: u64,
    /// Bytes in the filesystem's journal.
    pub journal_bytes: u64,
    /// Of those, for SQLite's own journal; `null` for a call.
    pub journal_of_journal_bytes: Option<u64>,
    /// All other bytes: metadata, nodes, superblocks, and what nobody placed.
    pub other_bytes: u64,
    /// Write requests; `null` for a call.
    pub writes: Option<u64>,
    pub flushes: u64,
    pub syncs: u64,
}

impl TransactionRow {
    /// What a transaction says.
    pub fn of(transaction: &TransactionSteps, texts: &Texts) -> Self {
        match &transaction.owner {
            StepsOwner::Transaction(transaction) => Self::of_transaction(transaction, texts),
            StepsOwner::Sync(sync) => {
                let [data_bytes, journal_bytes, other_bytes] = split(&sync.bytes);
                Self {
                    what: texts.get(sync.call).to_owned(),
                    file: texts.get(sync.name).to_owned(),
                    begun_ns: sync.begun_ns,
                    duration_ns: sync.ended_ns.map(|ended_ns| ended_ns.saturating_sub(sync.begun_ns)),
                    data_bytes,
                    journal_bytes,
                    journal_of_journal_bytes: None,
                    other_bytes,
                    writes: None,
                    flushes: sync.flushes,
                    syncs: 1,
                }
            }
        }
    }

    fn of_transaction(transaction: &Transaction, texts: &Texts) -> Self {
        let [data_bytes, journal_bytes, other_bytes] = split(&transaction.bytes);
        let what = match transaction.kind {
            TransactionKind::Commit => "commit",
            TransactionKind::Checkpoint => "checkpoint",
            TransactionKind::Recovery => "recovery",
        };
        Self {
            what: what.to_owned(),
            file: texts.get(transaction.name).to_owned(),
            begun_ns: transaction.begun_ns,
            duration_ns: transaction.ended_ns.map(|ended_ns| ended_ns.saturating_sub(transaction.begun_ns)),
            data_bytes,
            journal_bytes,
            journal_of_journal_bytes: Some(transaction.journal_of_journal_bytes),
            other_bytes,
            writes: Some(transaction.writes),
            flushes: transaction.flushes,
            syncs: transaction.syncs,
        }
    }
}

/// Data, journal, and the rest.
fn split(bytes: &[u64; Class::ALL.len()]) -> [u64; 3] {
    let of = |class: Class| bytes[usize::from(class.code())];
    let all: u64 = bytes.iter().sum();
    [of(Class::Data), of(Class::Journal), all - of(Class::Data) - of(Class::Journal)]
}
