//! File I/O without SQLite: `--io`.

use joj_analysis::bench::document::Document;
use joj_analysis::bench::io::job::{IoJob, IoKey};
use joj_analysis::bench::io::row::IoRow;
use joj_analysis::bench::io::way::SyncWay;
use joj_analysis::bench::key::Word;
use joj_analysis::bench::run::distribution;
use thiserror::Error;

use crate::bench::ask::Stop;
use crate::bench::experiment::{Experiment, Round, RowBlock};
use crate::bench::forecast::SETUP_NS;
use crate::bench::session::Session;
use crate::bench::worker::io_run::IoTask;
use crate::bench::worker::limit_run::Calibration;

/// A record that waits for nothing, in nanoseconds.
const CACHED_NS: f64 = 3e3;
/// Bytes that a disk takes in a nanosecond.
const FILL_BYTES_PER_NS: f64 = 0.2;

/// What to measure; empty lists are for everything.
#[derive(Debug, Clone, Default)]
pub struct IoSelection {
    pub jobs: Vec<IoJob>,
    pub ways: Vec<SyncWay>,
    /// Bytes of a record.
    pub record_bytes: Vec<u64>,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// No record of a run begins later.
    pub time_max_ns: u64,
}

/// Selections without a row.
#[derive(Debug, Error)]
pub enum IoSelectionError {
    /// A read that syncs.
    #[error(
        "these options leave no row to measure: reads have only the ways none, direct, polled and mmap, appends have all but polled; leave one option out"
    )]
    NoRow,
    /// A file shorter than a record.
    #[error(
        "a file of {file_bytes} bytes (--file) has no record of {record_bytes} (--record); take a larger --file"
    )]
    NoRecord {
        /// Of the file.
        file_bytes: u64,
        /// Of a record.
        record_bytes: u64,
    },
}

impl IoSelection {
    /// Says what no machine could measure.
    /// # Errors
    /// Where there is no row, or a row without a record.
    pub fn check(&self) -> Result<(), IoSelectionError> {
        let keys = self.keys();
        if let Some(key) = keys.iter().find(|key| key.records() == 0) {
            let (file_bytes, record_bytes) = (key.file_bytes, key.record_bytes);
            return Err(IoSelectionError::NoRecord { file_bytes, record_bytes });
        }
        if keys.is_empty() { Err(IoSelectionError::NoRow) } else { Ok(()) }
    }

    fn keys(&self) -> Vec<IoKey> {
        let mut keys = Vec::new();
        for record_bytes in &self.record_bytes {
            for job in chosen(&self.jobs) {
                let ways = chosen(&self.ways).into_iter().filter(|way| job.takes(*way));
                let key = |way| IoKey { job, way, record_bytes: *record_bytes, file_bytes: self.file_bytes };
                keys.extend(ways.map(key));
            }
        }
        keys
    }
}

/// Those that are named, in the order of tables; all where none is.
fn chosen<W: Word>(named: &[W]) -> Vec<W> {
    W::ALL.iter().copied().filter(|word| named.is_empty() || named.contains(word)).collect()
}

/// Its rows, each with all latencies.
#[derive(Debug)]
pub struct FileIo {
    rows: Vec<(IoRow, Vec<u64>)>,
    time_max_ns: u64,
}

impl FileIo {
    /// What `selection` asks for.
    pub fn new(selection: &IoSelection) -> FileIo {
        let rows = selection.keys().into_iter().map(|key| (IoRow::new(key), Vec::new())).collect();
        FileIo { rows, time_max_ns: selection.time_max_ns }
    }
}

impl Experiment for FileIo {
    fn blocks(&self) -> Vec<RowBlock> {
        let together = |(one, _): &(IoRow, _), (other, _): &(IoRow, _)| one.key.same_group(&other.key);
        RowBlock::of(&self.rows, together, |(row, _)| !row.key.job.is_read())
    }

    fn subject(&self) -> &'static str {
        "file I/O"
    }

    fn title(&self, row: usize) -> String {
        self.rows[row].0.key.to_string()
    }

    fn takes_part(&self, row: usize, _round: Round) -> bool {
        let row = &self.rows[row].0;
        row.failure.is_none() && row.refused.is_none()
    }

    fn run_ns(&self, row: usize, _transactions: u64, calibration: Calibration) -> f64 {
        let key = &self.rows[row].0.key;
        let each_ns = match (key.way.is_durable() || key.way.is_direct(), key.job) {
            (true, IoJob::Append) => calibration.append_ns as f64,
            (true, IoJob::Write | IoJob::RandWrite) => calibration.overwrite_ns as f64,
            (_, IoJob::Read | IoJob::RandRead) => calibration.overwrite_ns as f64 / 2.0,
            (false, _) => CACHED_NS,
        };
        let fill_ns = key.file_bytes as f64 / FILL_BYTES_PER_NS;
        SETUP_NS + fill_ns + (key.records() as f64 * each_ns).min(self.time_max_ns as f64)
    }

    fn run(&mut self, row: usize, round: Round, session: &Session<'_>) -> Result<(), Stop> {
        let (row, latencies_ns) = &mut self.rows[row];
        let answer = session.perform(&IoTask {
            directory: session.directory(),
            key: row.key,
            records_max: u64::MAX,
            time_max_ns: self.time_max_ns,
            sources: session.sources.clone(),
        })?;
        match answer {
            Err(reason) => row.refused = Some(reason),
            Ok(measured) => {
                row.records.runs.push(round.mark(measured.run));
                measured.syncs.iter().for_each(|syncs| row.syncs.add(syncs));
                latencies_ns.extend(measured.latencies_ns);
            }
        }
        Ok(())
    }

    fn fail(&mut self, row: usize, reason: String) {
        self.rows[row].0.failure = Some(reason);
    }

    fn finish(self: Box<Self>, document: &mut Document) {
        let finished = self.rows.into_iter().map(|(mut row, latencies_ns)| {
            (row.latency_quantiles_ns, row.latency) = distribution(latencies_ns);
            row.summarise();
            row
        });
        document.io.extend(finished);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection() -> IoSelection {
        IoSelection { record_bytes: vec![4096], file_bytes: 1 << 20, ..IoSelection::default() }
    }

    #[test]
    fn without_options_each_job_has_each_way_that_it_takes() {
        let keys = selection().keys();
        let jobs = [IoJob::Write, IoJob::RandWrite, IoJob::Append, IoJob::Read, IoJob::RandRead];
        assert!(jobs.iter().all(|job| keys.iter().any(|key| key.job == *job)));
        assert!(SyncWay::ALL.iter().all(|way| keys.iter().any(|key| key.way == *way)));
        let blocks = FileIo::new(&selection()).blocks();
        assert_eq!(
            blocks.iter().map(|block| block.wants_limit).collect::<Vec<_>>(),
            [true, true, true, false, false]
        );
    }

    #[test]
    fn selections_without_a_row_or_a_record_are_said() {
        let reads = IoSelection { jobs: vec![IoJob::Read], ways: vec![SyncWay::Fsync], ..selection() };
        assert!(reads.check().unwrap_err().to_string().contains("none, direct, polled and mmap"));
        let short = IoSelection { file_bytes: 100, ..selection() };
        assert!(short.check().unwrap_err().to_string().contains("larger --file"));
        selection().check().unwrap();
    }
}
