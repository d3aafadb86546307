//! What a cell's transaction cost: the figures that metrics and reasons are made of.

use crate::lab::cell::Cell;
use crate::lab::result::CellMeasurement;

/// Bytes and requests of one transaction, as the trace has them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Traced {
    /// KiB of files' data.
    pub data_kib: f64,
    /// KiB in the filesystem's journal.
    pub journal_kib: f64,
    /// Of those, for SQLite's own journal.
    pub joj_kib: f64,
    /// KiB of nodes, metadata, superblocks, and what nobody placed.
    pub other_kib: f64,
    /// Write requests; absent where nobody counts them.
    pub writes: Option<f64>,
    pub flushes: f64,
    pub syncs: f64,
}

impl Traced {
    /// KiB of all classes together.
    pub fn kib(&self) -> f64 {
        self.data_kib + self.journal_kib + self.other_kib
    }
}

/// What the device's counters say of one transaction, a mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counted {
    pub kib: f64,
    /// Write requests; absent where nobody counts them.
    pub writes: Option<f64>,
    /// Flushes; absent where nobody counts them.
    pub flushes: Option<f64>,
}

/// All of it, for one transaction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellFacts {
    /// Time, in microseconds, above 0.
    pub elapsed_us: f64,
    /// Of a replay: from its first call to the end of its last, in microseconds.
    pub replayed_us: Option<f64>,
    /// Bytes of its write or read, where it is not SQLite's.
    pub record_bytes: f64,
    /// Processor time of the process, in microseconds.
    pub cpu_us: f64,
    /// What the cell's trace counted; `None` where it was not traced.
    pub traced: Option<Traced>,
    /// From the device's counters.
    pub device: Option<Counted>,
}

impl CellFacts {
    /// The figures of a cell that was measured.
    pub fn of(cell: &Cell, measurement: &CellMeasurement) -> CellFacts {
        let run = &measurement.run;
        let kib = |bytes: u64| bytes as f64 / 1024.0;
        let device = run.device.map(|device| Counted {
            kib: run.per_transaction(device.written_bytes) / 1024.0,
            writes: Some(run.per_transaction(device.write_requests)),
            flushes: device.flushes.map(|flushes| run.per_transaction(flushes)),
        });
        // A trace counts the writes of commits only: there is a 0 where SQLite does not run.
        let is_commit = cell.task.workload().is_some();
        let traced = measurement.costs.map(|costs| Traced {
            data_kib: kib(costs.data_bytes),
            journal_kib: kib(costs.journal_bytes),
            joj_kib: kib(costs.journal_of_journal_bytes),
            other_kib: kib(costs.other_bytes),
            writes: is_commit.then_some(costs.writes as f64),
            flushes: costs.flushes as f64,
            syncs: costs.syncs as f64,
        });
        CellFacts {
            elapsed_us: run.per_transaction(run.elapsed_ns.max(1)) / 1e3,
            replayed_us: measurement.replay.as_ref().map(|replay| replay.elapsed_ns as f64 / 1e3),
            record_bytes: cell.task.record_bytes() as f64,
            cpu_us: run.per_transaction(run.cpu_user_us + run.cpu_system_us),
            traced,
            device,
        }
    }

    /// What a transaction wrote: from the trace, else, or where the trace has no writes, from the counters.
    pub fn written(&self) -> Option<Counted> {
        let of_trace =
            |costs: Traced| Counted { kib: costs.kib(), writes: costs.writes, flushes: Some(costs.flushes) };
        let whole = self.traced.filter(|costs| costs.writes.is_some() || self.device.is_none());
        whole.map(of_trace).or(self.device)
    }
}

#[cfg(test)]
pub(in crate::lab) mod sample {
    //! Made-up cells; no figure of them was measured.

    use crate::bench::key::{JournalMode, LogState, Schema, Synchronous};
    use crate::bench::run::{DeviceDelta, Latency, Run};
    use crate::filesystem::Filesystem;
    use crate::lab::cell::{Cell, CellOrder, Feature, Recorder, Store, SyncCall, Task};
    use crate::lab::result::{
        CellMeasurement, CellOutcome, CellResult, Costs, LabMachine, LabResult, RESULT_FORMAT, RESULT_VERSION,
    };

    /// An INSERT in this mode on ext4.
    pub fn cell(mode: JournalMode) -> Cell {
        Cell {
            filesystem: Filesystem::Ext4,
            feature: Feature::None,
            device: "ram".to_owned(),
            journal_device: None,
            task: Task::Insert,
            store: Store::Sqlite,
            mode,
            synchronous: Synchronous::Full,
            sync_call: SyncCall::Fdatasync,
            schema: Schema::Waldio,
            log: if mode.has_log() { LogState::Fresh } else { LogState::None },
            batch_atomic: false,
            directory_sync: true,
            waldio_options: Vec::new(),
            threads: 1,
            file_mib: 10,
            transactions: 100,
            recording: None,
            range_mib: None,
            compat: false,
            order: CellOrder::Timed,
            recorder: Recorder::None,
        }
    }

    /// 500 transactions a second; 8 + 20 + 4 KiB in 3 writes and 2 flushes, 40 KiB by the counters.
    pub fn measurement() -> CellMeasurement {
        let device = DeviceDelta { written_bytes: 100 * 40_960, write_requests: 400, flushes: Some(200) };
        CellMeasurement {
            run: Run {
                round: 0,
                transactions: 100,
                elapsed_ns: 200_000_000,
                latency: Latency::default(),
                cpu_user_us: 10_000,
                cpu_system_us: 30_000,
                switches_voluntary: 0,
                switches_involuntary: 0,
                wchar_bytes: None,
                storage_bytes: None,
                device: Some(device),
                journal_commits: None,
                others_cores: None,
                tick_share: 0.0,
                limit_per_s: None,
                failure: None,
            },
            quantiles_ns: Vec::new(),
            waldio_status: Vec::new(),
            traced_run: None,
            costs: Some(Costs {
                transactions: 100,
                data_bytes: 8 << 10,
                journal_bytes: 20 << 10,
                journal_of_journal_bytes: 16 << 10,
                other_bytes: 4 << 10,
                writes: 3,
                flushes: 2,
                syncs: 1,
            }),
            trace: None,
            trace_failure: None,
            replay: None,
        }
    }

    pub fn facts() -> super::CellFacts {
        super::CellFacts::of(&cell(JournalMode::Wal), &measurement())
    }

    /// [`measurement`] at another speed.
    pub fn at(mode: JournalMode, transactions_per_s: u64) -> CellResult {
        let mut measurement = measurement();
        measurement.run.elapsed_ns = 100 * 1_000_000_000 / transactions_per_s;
        CellResult { cell: cell(mode), outcome: CellOutcome::Measured(Box::new(measurement)) }
    }

    /// A result of these cells.
    pub fn result(cells: Vec<CellResult>) -> LabResult {
        LabResult {
            format: RESULT_FORMAT.to_owned(),
            version: RESULT_VERSION,
            title: "made up".to_owned(),
            machine: LabMachine::default(),
            cells,
        }
    }
}
