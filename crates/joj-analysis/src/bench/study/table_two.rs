//! Table 2 of the WALDIO paper through SQLite as it is today: journal modes, and waldio in each durability.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bench::key::{JournalMode, RowKey, Word, words};
use crate::bench::measurement::Measurement;
use crate::bench::pairs::versus;
use crate::bench::run::{Run, StatusLine};
use crate::bench::study::durability::Durability;
use crate::statistics::Estimate;

/// The window of the rows with Group Synch, as `waldio_group` takes it: the paper's four pages and 2 ms.
pub const GROUP_WINDOW: &str = "16KiB,2ms";

words! {
    /// How waldio lays the log out.
    pub enum Layout: "layout" {
        /// SQLite's own.
        Stock = "stock",
        /// Headers inside the pages (`waldio_layout=embedded`).
        Embedded = "embedded",
    }
}

/// What one row measures.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct TableTwoKey {
    /// Workload, journal mode, synchronous setting, state of the log, build.
    pub row: RowKey,
    /// `fs`, `pd` or `ns`; stock modes have no `pd`.
    pub durability: Durability,
    /// True with Group Synch: `waldio_group=16KiB,2ms`.
    pub group: bool,
    /// How the log is laid out.
    pub layout: Layout,
}

impl TableTwoKey {
    /// The options that waldio is given, without `waldio_` before their names; none for stock modes.
    pub fn waldio_options(&self) -> Vec<(String, String)> {
        if self.row.mode != JournalMode::Waldio {
            return Vec::new();
        }
        let persist = match self.durability {
            Durability::Fs => Some(("persist", "flush")),
            Durability::Pd => Some(("persist", "fua")),
            Durability::Ns => None,
        };
        let group = self.group.then_some(("group", GROUP_WINDOW));
        let layout = (self.layout == Layout::Embedded).then_some(("layout", "embedded"));
        let options = [persist, group, layout].into_iter().flatten();
        options.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// `WAL fresh, NS` or `waldio steady, FS + group`, without workload and build.
    pub fn title(&self) -> String {
        let mut title = self.row.mode_title();
        if self.row.mode.has_log() {
            title.push_str(&format!(", {}", self.durability.short()));
        }
        if self.group {
            title.push_str(" + group");
        }
        if self.layout == Layout::Embedded {
            title.push_str(", embedded");
        }
        title
    }

    /// True where both belong into one table.
    pub fn same_group(&self, other: &TableTwoKey) -> bool {
        self.row.workload == other.row.workload
    }

    /// True for the row that `self` is a multiple of: stock WAL, Full Sync, otherwise alike.
    fn is_stock_of(&self, other: &TableTwoKey) -> bool {
        let stock = RowKey { synchronous: self.row.synchronous, ..other.row.stock_wal() };
        self.row == stock && self.durability == Durability::Fs
    }
}

impl fmt::Display for TableTwoKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}, {}, {}", self.row.workload.word(), self.title(), self.row.library)
    }
}

/// Everything measured under one key.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct TableTwoRow {
    /// What was measured.
    pub key: TableTwoKey,
    /// The transactions, without a checkpoint.
    pub transactions: Measurement,
    /// One fdatasync of the log behind them: what was left in the page cache. No runs for modes without a log.
    pub log_flush: Measurement,
    /// The checkpoint behind that. No runs for modes without a log.
    pub checkpoint: Measurement,
    /// Transactions per second as a multiple of stock WAL's with `synchronous=FULL`, paired by round.
    pub versus_stock_wal: Option<Estimate>,
    /// What waldio said after the last run; empty for stock modes.
    pub waldio_status: Vec<StatusLine>,
    /// Why the row is not to be used; `null` where every run was sound.
    pub failure: Option<String>,
}

impl TableTwoRow {
    /// A row without runs.
    pub fn new(key: TableTwoKey) -> TableTwoRow {
        TableTwoRow {
            key,
            transactions: Measurement::default(),
            log_flush: Measurement::default(),
            checkpoint: Measurement::default(),
            versus_stock_wal: None,
            waldio_status: Vec::new(),
            failure: None,
        }
    }

    /// The median over the rounds of what `value` gives for each of `steps`, together, per transaction.
    fn per_transaction(&self, steps: &[&Measurement], value: fn(&Run) -> Option<u64>) -> Option<f64> {
        let mut amounts = Vec::new();
        for (index, run) in self.transactions.runs.iter().enumerate() {
            let mut amount = 0;
            for step in steps {
                amount += value(step.runs.get(index)?)?;
            }
            amounts.push(run.per_transaction(amount));
        }
        Estimate::of(&amounts).map(|found| found.median)
    }

    fn all_steps(&self) -> Vec<&Measurement> {
        let steps = [&self.transactions, &self.log_flush, &self.checkpoint];
        steps.into_iter().filter(|step| !step.runs.is_empty()).collect()
    }

    /// Bytes per transaction that the device wrote until the log was durable; `None` for modes without a log, whose
    /// writes nobody tells apart.
    pub fn log_bytes(&self) -> Option<f64> {
        let has_log = !self.log_flush.runs.is_empty();
        let steps = [&self.transactions, &self.log_flush];
        has_log.then(|| self.per_transaction(&steps, device_bytes)).flatten()
    }

    /// Bytes per transaction that the device wrote for the checkpoint; `None` for modes without a log.
    pub fn database_bytes(&self) -> Option<f64> {
        let has_log = !self.checkpoint.runs.is_empty();
        has_log.then(|| self.per_transaction(&[&self.checkpoint], device_bytes)).flatten()
    }

    /// Bytes per transaction that the device wrote, checkpoint included.
    pub fn all_bytes(&self) -> Option<f64> {
        self.per_transaction(&self.all_steps(), device_bytes)
    }

    /// Commits of the file system's journal per transaction, those of the checkpoint included.
    pub fn journal_commits(&self) -> Option<f64> {
        self.per_transaction(&self.all_steps(), |run| run.journal_commits)
    }
}

fn device_bytes(run: &Run) -> Option<u64> {
    run.device.map(|device| device.written_bytes)
}

/// Sums up each row.
pub fn summarise(rows: &mut [TableTwoRow]) {
    let sound = rows.iter().filter(|row| row.failure.is_none());
    let all: Vec<(TableTwoKey, Vec<Run>)> =
        sound.map(|row| (row.key.clone(), row.transactions.runs.clone())).collect();
    for row in rows {
        for step in [&mut row.transactions, &mut row.log_flush, &mut row.checkpoint] {
            step.summarise();
        }
        let stock = all.iter().find(|(key, _)| key.is_stock_of(&row.key));
        row.versus_stock_wal =
            stock.and_then(|(_, stock)| versus(&row.transactions.runs, stock, Run::transactions_per_s));
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bench::key::{LogState, Synchronous};
    use crate::bench::measurement::tests::measurement;
    use crate::bench::row::tests::key as row_key;

    pub(crate) fn row(mode: JournalMode, durability: Durability, speeds: &[u64]) -> TableTwoRow {
        let log = if mode.has_log() { LogState::Fresh } else { LogState::None };
        let mut row = row_key(mode, log);
        if durability == Durability::Ns {
            row.synchronous = Synchronous::Normal;
        }
        let key = TableTwoKey { row, durability, group: false, layout: Layout::Stock };
        let after = if mode.has_log() { measurement(speeds) } else { Measurement::default() };
        TableTwoRow {
            transactions: measurement(speeds),
            log_flush: after.clone(),
            checkpoint: after,
            ..TableTwoRow::new(key)
        }
    }

    #[test]
    fn every_mode_is_a_multiple_of_stock_wal_with_full_sync() {
        let mut rows = [
            row(JournalMode::Wal, Durability::Ns, &[900, 900, 900]),
            row(JournalMode::Wal, Durability::Fs, &[100, 200, 300]),
            row(JournalMode::Delete, Durability::Fs, &[50, 100, 150]),
            row(JournalMode::Waldio, Durability::Ns, &[200, 400, 600]),
        ];
        summarise(&mut rows);
        let ratios: Vec<f64> = rows[1..].iter().map(|row| row.versus_stock_wal.unwrap().median).collect();
        assert!(ratios.iter().zip([1.0, 0.5, 2.0]).all(|(found, expected)| (found - expected).abs() < 1e-6));
    }

    #[test]
    fn bytes_of_a_log_and_of_its_checkpoint_are_told_apart() {
        let with_log = row(JournalMode::Waldio, Durability::Fs, &[100]);
        let one = with_log.database_bytes().unwrap();
        let times = |bytes: Option<f64>| (bytes.unwrap() / one).round();
        assert_eq!((times(with_log.log_bytes()), times(with_log.all_bytes())), (2.0, 3.0));
        let without = row(JournalMode::Delete, Durability::Fs, &[100]);
        assert_eq!((without.log_bytes(), without.database_bytes()), (None, None));
        assert_eq!(times(without.all_bytes()), 1.0);
    }

    #[test]
    fn waldio_is_given_what_the_row_is_about() {
        let mut key = row(JournalMode::Waldio, Durability::Pd, &[1]).key;
        let option = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(key.waldio_options(), [option("persist", "fua")]);
        (key.group, key.layout, key.durability) = (true, Layout::Embedded, Durability::Fs);
        let all = [option("persist", "flush"), option("group", GROUP_WINDOW), option("layout", "embedded")];
        assert_eq!(key.waldio_options(), all);
        assert_eq!(key.title(), "waldio fresh, FS + group, embedded");
        key.row.mode = JournalMode::Wal;
        assert_eq!(key.waldio_options(), []);
    }
}
