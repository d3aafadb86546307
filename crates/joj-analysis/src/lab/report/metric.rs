//! Which figure of a cell is held against a paper's.

use serde::{Deserialize, Serialize};

use crate::lab::report::facts::CellFacts;

/// A figure of a cell, or of a device without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Transactions per second; of tasks without SQLite, writes with their sync.
    TransactionsPerS,
    /// KiB per second of tasks without SQLite, whose transactions are 4 KiB.
    KibPerS,
    /// KiB of a transaction on the device, from the trace.
    KibTotal,
    /// Of those, files' data.
    KibData,
    /// In the filesystem's journal.
    KibJournal,
    /// Of those, for SQLite's own journal.
    KibJoj,
    /// Nodes, metadata, superblocks, and what nobody placed.
    KibOther,
    /// Blocks of 4 KiB of files' data.
    BlocksData,
    /// Blocks of 4 KiB in the filesystem's journal.
    BlocksJournal,
    /// Write requests of a transaction, from the trace.
    Writes,
    /// Flushes of a transaction, from the trace.
    Flushes,
    /// Sync calls of a transaction, from the trace.
    Syncs,
    /// Megabytes that the device wrote for 1,000 transactions, by its own counters, whatever came rarely included.
    #[serde(rename = "mb_per_1000")]
    MbPer1000,
    /// Megabytes of files' data for 1,000 transactions like the traced one in the middle: what comes rarely is not in it.
    #[serde(rename = "mb_data_per_1000")]
    MbDataPer1000,
    /// Megabytes in the filesystem's journal, likewise.
    #[serde(rename = "mb_journal_per_1000")]
    MbJournalPer1000,
    /// MB/s of what was written or read without SQLite.
    MbPerS,
    /// Seconds of a transaction; of a replay, those that its threads were inside calls.
    Seconds,
    /// Seconds that a replay took, think time included.
    ReplayS,
    /// Megabytes that the device wrote in a transaction, or a replay, by its own counters.
    MbTotal,
    /// MB/s of 128 MiB written in order, of the device alone.
    DeviceSequentialWrite,
    /// MB/s of 128 MiB read in order, of the device alone.
    DeviceSequentialRead,
    /// MB/s of random writes of 4 KiB within the column's range, of the device alone.
    DeviceRandomWrite,
    /// MB/s of random reads of 4 KiB within the column's range, of the device alone.
    DeviceRandomRead,
}

/// Bytes of a task's write where it is not SQLite's.
const WRITE_KIB: f64 = 4.0;
/// Megabytes of a KiB.
const MB_PER_KIB: f64 = 0.001_024;
/// Megabytes of 1,000 transactions of 1 KiB.
const MB_PER_1000: f64 = 1.024;

impl Metric {
    pub fn unit(self) -> &'static str {
        match self {
            Self::TransactionsPerS => "1/s",
            Self::KibPerS => "KiB/s",
            Self::KibTotal | Self::KibData | Self::KibJournal | Self::KibJoj | Self::KibOther => "KiB",
            Self::BlocksData | Self::BlocksJournal => "blocks",
            Self::Writes => "writes",
            Self::Flushes => "flushes",
            Self::Syncs => "syncs",
            Self::Seconds | Self::ReplayS => "s",
            Self::MbTotal | Self::MbPer1000 | Self::MbDataPer1000 | Self::MbJournalPer1000 => "MB",
            Self::MbPerS
            | Self::DeviceSequentialWrite
            | Self::DeviceSequentialRead
            | Self::DeviceRandomWrite
            | Self::DeviceRandomRead => "MB/s",
        }
    }

    /// True where the device model answers alone.
    pub fn is_of_device(self) -> bool {
        matches!(
            self,
            Self::DeviceSequentialWrite
                | Self::DeviceSequentialRead
                | Self::DeviceRandomWrite
                | Self::DeviceRandomRead
        )
    }

    /// True where it is a speed, or a time: time counts, not only what was written.
    pub fn is_speed(self) -> bool {
        matches!(self, Self::TransactionsPerS | Self::KibPerS | Self::MbPerS) || self.is_time()
    }

    /// True where less is faster.
    pub fn is_time(self) -> bool {
        matches!(self, Self::Seconds | Self::ReplayS)
    }

    /// True where only a traced cell has it.
    pub fn is_of_trace(self) -> bool {
        !self.is_speed() && !self.is_of_device() && !matches!(self, Self::MbPer1000 | Self::MbTotal)
    }

    /// Its value in a cell.
    /// # Errors
    /// What the cell lacks.
    pub fn of(self, facts: &CellFacts) -> Result<f64, &'static str> {
        let no_trace = "its cell was not traced";
        let traced = facts.traced.as_ref().ok_or(no_trace);
        match self {
            Self::TransactionsPerS => Ok(1e6 / facts.elapsed_us),
            Self::KibPerS => Ok(WRITE_KIB * 1e6 / facts.elapsed_us),
            Self::Seconds => Ok(facts.elapsed_us / 1e6),
            Self::ReplayS => facts.replayed_us.map(|us| us / 1e6).ok_or("its cell is no replay"),
            Self::MbPerS => Ok(facts.record_bytes / facts.elapsed_us),
            Self::KibTotal => traced.map(|costs| costs.kib()),
            Self::KibData => traced.map(|costs| costs.data_kib),
            Self::KibJournal => traced.map(|costs| costs.journal_kib),
            Self::KibJoj => traced.map(|costs| costs.joj_kib),
            Self::KibOther => traced.map(|costs| costs.other_kib),
            Self::BlocksData => traced.map(|costs| costs.data_kib / WRITE_KIB),
            Self::BlocksJournal => traced.map(|costs| costs.journal_kib / WRITE_KIB),
            Self::Writes => traced.and_then(|costs| {
                let counted = || facts.device.and_then(|device| device.writes);
                costs.writes.or_else(counted).ok_or("nobody counted its cell's writes")
            }),
            Self::Flushes => traced.map(|costs| costs.flushes),
            Self::Syncs => traced.map(|costs| costs.syncs),
            Self::MbDataPer1000 => traced.map(|costs| costs.data_kib * MB_PER_1000),
            Self::MbJournalPer1000 => traced.map(|costs| costs.journal_kib * MB_PER_1000),
            Self::MbPer1000 | Self::MbTotal => facts
                .device
                .map(|device| device.kib * if self == Self::MbTotal { MB_PER_KIB } else { MB_PER_1000 })
                .ok_or("its cell has no counters of the device"),
            Self::DeviceSequentialWrite
            | Self::DeviceSequentialRead
            | Self::DeviceRandomWrite
            | Self::DeviceRandomRead => Err("no cell has it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::key::JournalMode;
    use crate::lab::cell::{Cell, Task};
    use crate::lab::report::facts::sample;
    use crate::lab::result::CellReplay;

    #[test]
    fn figures_come_from_the_clock_the_trace_and_the_counters() {
        let facts = sample::facts();
        let of = |metric: Metric| metric.of(&facts).unwrap();
        assert_eq!(of(Metric::TransactionsPerS), 500.0);
        assert_eq!(of(Metric::KibPerS), 2000.0);
        assert_eq!(of(Metric::Seconds), 0.002);
        assert_eq!(of(Metric::MbPerS), 4096.0 * 500.0 / 1e6);
        let kib = [Metric::KibTotal, Metric::KibData, Metric::KibJournal, Metric::KibJoj, Metric::KibOther];
        assert_eq!(kib.map(of), [32.0, 8.0, 20.0, 16.0, 4.0]);
        assert_eq!([Metric::BlocksData, Metric::BlocksJournal].map(of), [2.0, 5.0]);
        assert_eq!([Metric::Writes, Metric::Flushes, Metric::Syncs].map(of), [3.0, 2.0, 1.0]);
        let mb = [Metric::MbPer1000, Metric::MbDataPer1000, Metric::MbJournalPer1000];
        assert_eq!(mb.map(of), [40.96, 8.192, 20.48]);
        assert!((of(Metric::MbTotal) - 0.04096).abs() < 1e-9, "of one transaction");
    }

    #[test]
    fn a_replay_takes_its_think_time_too() {
        let mut measurement = sample::measurement();
        let cell = sample::cell(JournalMode::Off);
        let of = |measurement: &_| Metric::ReplayS.of(&CellFacts::of(&cell, measurement));
        assert!(of(&measurement).is_err());
        measurement.replay = Some(CellReplay { calls: 1, differing: 0, syncs: 0, elapsed_ns: 2_500_000_000 });
        assert_eq!(of(&measurement), Ok(2.5));
    }

    #[test]
    fn writes_without_sqlite_come_from_the_counters() {
        let mut measurement = sample::measurement();
        let cell = Cell { task: Task::Append, ..sample::cell(JournalMode::Off) };
        let of = |measurement: &_| Metric::Writes.of(&CellFacts::of(&cell, measurement));
        assert_eq!(of(&measurement), Ok(4.0));
        measurement.run.device = None;
        assert!(of(&measurement).unwrap_err().contains("nobody counted"));
    }

    #[test]
    fn what_a_cell_lacks_is_told_and_not_zero() {
        let mut measurement = sample::measurement();
        measurement.costs = None;
        assert!(Metric::Writes.is_of_trace() && !Metric::MbPer1000.is_of_trace());
        measurement.run.device = None;
        let facts = CellFacts::of(&sample::cell(JournalMode::Wal), &measurement);
        assert!(Metric::Syncs.of(&facts).unwrap_err().contains("not traced"));
        assert!(Metric::MbPer1000.of(&facts).unwrap_err().contains("counters"));
        assert!(Metric::DeviceRandomWrite.of(&facts).is_err());
    }
}
