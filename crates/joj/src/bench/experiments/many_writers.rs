//! Many writers that commit to one database: numbers of writers, two modes for each, and their runs.

use joj_analysis::bench::document::Document;
use joj_analysis::bench::key::{JournalMode, Schema, Synchronous, Word};
use joj_analysis::bench::many_writers::{ContendedKey, ContendedRow, WriterKind, summarise};
use joj_analysis::bench::run::{SyncCount, distribution};
use thiserror::Error;

use crate::bench::ask::Stop;
use crate::bench::builds::name_sync_calls;
use crate::bench::experiment::{Experiment, Round, RowBlock};
use crate::bench::forecast::SETUP_NS;
use crate::bench::session::Session;
use crate::bench::worker::limit_run::Calibration;
use crate::bench::worker::many_writers::run::{Contended, ContendedTask, RunLength, warm_up_ns};

/// Longest clock of the run that counts calls for durability, in nanoseconds.
const COUNTING_RUN_NS_MAX: u64 = 1_000_000_000;

/// The disk's limit is measured as beside rows of so many transactions.
pub const LIMIT_TRANSACTIONS: u64 = 1_000;

/// What many writers are not measured with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ContentionError {
    /// A journal mode that keeps writers out without a log.
    #[error("many writers are measured with `--modes wal,waldio,bounded`, not with {}; leave it out", .0.word())]
    NoLog(JournalMode),
    /// The schema of mobibench.
    #[error("many writers insert into one table, and mobibench has three; take `--schemas waldio,atc13`")]
    ThreeTables,
}

/// What the command line chose.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contention {
    /// Numbers of writing threads.
    pub threads: Vec<u32>,
    /// Numbers of writing processes.
    pub processes: Vec<u32>,
    /// Schemas; empty for the usual one.
    pub schemas: Vec<Schema>,
    /// Modes; empty for all that the synchronous setting is for.
    pub modes: Vec<JournalMode>,
    /// Synchronous settings; empty for FULL.
    pub synchronous: Vec<Synchronous>,
    /// How long the clock of a run goes, in nanoseconds.
    pub run_ns: u64,
    /// Least time of a flush, in nanoseconds; 0 for the device as it is.
    pub flush_delay_ns: u64,
}

impl Contention {
    /// Says what cannot be measured.
    /// # Errors
    /// What to choose instead.
    pub fn check(&self) -> Result<(), ContentionError> {
        if let Some(mode) = self.modes.iter().find(|mode| !mode.has_log()) {
            return Err(ContentionError::NoLog(*mode));
        }
        if self.schemas.contains(&Schema::Mobibench) {
            return Err(ContentionError::ThreeTables);
        }
        Ok(())
    }

    /// The clock of the extra run that counts calls; none where every run counts them.
    fn counting_run_ns(&self) -> Option<u64> {
        (self.flush_delay_ns == 0).then(|| self.run_ns.min(COUNTING_RUN_NS_MAX))
    }

    /// The rows to measure with SQLite builds of these names, by table; stock and waldio are neighbours.
    pub fn groups(&self, libraries: &[String]) -> Vec<Vec<ContendedKey>> {
        let schemas = if self.schemas.is_empty() { &[Schema::Waldio][..] } else { &self.schemas };
        let mut groups = Vec::new();
        for library in libraries {
            for schema in schemas {
                for (kind, counts) in
                    [(WriterKind::Threads, &self.threads), (WriterKind::Processes, &self.processes)]
                {
                    let chosen = |synchronous: &&Synchronous| {
                        self.synchronous.contains(synchronous)
                            || self.synchronous.is_empty() && **synchronous == Synchronous::Full
                    };
                    for synchronous in Synchronous::ALL.iter().filter(chosen) {
                        groups.push(self.group(kind, counts, *schema, *synchronous, library));
                    }
                }
            }
        }
        groups.retain(|keys| !keys.is_empty());
        groups
    }

    fn group(
        &self,
        kind: WriterKind,
        counts: &[u32],
        schema: Schema,
        synchronous: Synchronous,
        library: &str,
    ) -> Vec<ContendedKey> {
        let mut counts = counts.to_vec();
        counts.sort_unstable();
        counts.dedup();
        let mut keys = Vec::new();
        for writers in counts {
            for mode in [JournalMode::Wal, JournalMode::Waldio, JournalMode::Bounded] {
                // A bound is for programs that run NORMAL.
                let is_usual = mode != JournalMode::Bounded || synchronous == Synchronous::Normal;
                if self.modes.is_empty() && is_usual || self.modes.contains(&mode) {
                    let library = library.to_owned();
                    let flush_delay_ns = self.flush_delay_ns;
                    keys.push(ContendedKey {
                        kind,
                        writers,
                        schema,
                        mode,
                        synchronous,
                        flush_delay_ns,
                        library,
                    });
                }
            }
        }
        keys
    }
}

/// Rows of many writers, each with all latencies.
#[derive(Debug)]
pub struct ManyWriters {
    contention: Contention,
    rows: Vec<(ContendedRow, Vec<u64>)>,
}

impl ManyWriters {
    /// To measure `contention` with SQLite builds of these names.
    pub fn new(contention: Contention, libraries: &[String]) -> ManyWriters {
        let keys = contention.groups(libraries).into_iter().flatten();
        let rows = keys.map(|key| (ContendedRow::new(key), Vec::new())).collect();
        ManyWriters { contention, rows }
    }

    fn ask(&self, row: usize, clock_ns: u64, counts: bool, session: &Session<'_>) -> Result<Contended, Stop> {
        let key = &self.rows[row].0.key;
        session.perform(&ContendedTask {
            libraries: session.libraries(&key.library, key.mode),
            directory: session.directory(),
            key: key.clone(),
            length: RunLength::Time(clock_ns),
            sources: session.sources.clone(),
            count_syncs: counts,
            waldio_options: Vec::new(),
        })
    }

    /// How long a run takes whose clock goes so long.
    fn expected_ns(&self, row: usize, clock_ns: u64, calibration: Calibration) -> f64 {
        // Loading a library and opening a connection, on a machine with fewer cores than writers.
        const PROCESS_NS: f64 = 20e6;
        const THREAD_NS: f64 = 2e6;
        // A sleeping busy handler looks again after 100 ms at most; 64 of them keep each other out for seconds even then.
        const LAST_COMMITS_NS: f64 = 1e8;
        const LAST_COMMIT_OF_EACH_NS: f64 = 3e7;
        let key = &self.rows[row].0.key;
        let each_ns = if key.kind == WriterKind::Processes { PROCESS_NS } else { THREAD_NS };
        let flush_ns = key.flush_delay_ns.max(calibration.append_ns) as f64;
        let around_ns = 2.0 * SETUP_NS + LAST_COMMITS_NS + 16.0 * flush_ns;
        around_ns
            + f64::from(key.writers) * (each_ns + flush_ns + LAST_COMMIT_OF_EACH_NS)
            + (clock_ns + warm_up_ns(clock_ns)) as f64
    }
}

impl Experiment for ManyWriters {
    fn blocks(&self) -> Vec<RowBlock> {
        let together =
            |(one, _): &(ContendedRow, _), (other, _): &(ContendedRow, _)| one.key.same_group(&other.key);
        // On a device made slow, what the disk does says nothing.
        RowBlock::of(&self.rows, together, |(row, _)| row.key.flush_delay_ns == 0)
    }

    fn subject(&self) -> &'static str {
        "many writers"
    }

    fn title(&self, row: usize) -> String {
        self.rows[row].0.key.to_string()
    }

    fn takes_part(&self, row: usize, _round: Round) -> bool {
        self.rows[row].0.failure.is_none()
    }

    fn run_ns(&self, row: usize, _transactions: u64, calibration: Calibration) -> f64 {
        self.expected_ns(row, self.contention.run_ns, calibration)
    }

    fn run(&mut self, row: usize, round: Round, session: &Session<'_>) -> Result<(), Stop> {
        let mut contended = self.ask(row, self.contention.run_ns, false, session)?;
        let (row, latencies_ns) = &mut self.rows[row];
        contended.run.run = round.mark(contended.run.run);
        row.failure.clone_from(&contended.run.run.failure);
        if let Some(syncs) = &contended.run.syncs {
            row.syncs.get_or_insert_with(SyncCount::default).add(syncs);
        }
        row.runs.push(contended.run);
        row.waldio_status = contended.waldio_status;
        latencies_ns.extend(contended.latencies_ns);
        Ok(())
    }

    fn fail(&mut self, row: usize, reason: String) {
        self.rows[row].0.failure = Some(reason);
    }

    fn finish(self: Box<Self>, document: &mut Document) {
        let mut latencies = Vec::new();
        for (mut row, latencies_ns) in self.rows {
            let (quantiles_ns, latency) = distribution(latencies_ns);
            row.latency_quantiles_ns = quantiles_ns;
            latencies.push(latency);
            document.contended.push(row);
        }
        summarise(&mut document.contended, &latencies);
        let counts =
            document.contended.iter().map(|row| (row.key.mode, &*row.key.library, row.syncs.as_ref()));
        name_sync_calls(&mut document.builds, counts);
    }

    fn counts_calls(&self) -> bool {
        self.contention.counting_run_ns().is_some()
    }

    fn count_ns(&self, row: usize, _transactions: u64, calibration: Calibration) -> f64 {
        let clock_ns = self.contention.counting_run_ns();
        clock_ns.map_or(0.0, |clock_ns| self.expected_ns(row, clock_ns, calibration))
    }

    fn count(&mut self, row: usize, session: &Session<'_>) -> Result<(), Stop> {
        let Some(clock_ns) = self.contention.counting_run_ns() else { return Ok(()) };
        let contended = self.ask(row, clock_ns, true, session)?;
        let row = &mut self.rows[row].0;
        row.syncs = contended.run.syncs;
        row.failure = contended.run.run.failure;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_of_writers_is_measured_in_both_modes() {
        let contention =
            Contention { threads: vec![8, 1, 8], processes: vec![4], run_ns: 9, ..Contention::default() };
        let groups = contention.groups(&["system".to_owned()]);
        let shape = |keys: &[ContendedKey]| {
            keys.iter().map(|key| (key.kind, key.writers, key.mode)).collect::<Vec<_>>()
        };
        let threads = [
            (1, JournalMode::Wal),
            (1, JournalMode::Waldio),
            (8, JournalMode::Wal),
            (8, JournalMode::Waldio),
        ];
        assert_eq!(shape(&groups[0]), threads.map(|(writers, mode)| (WriterKind::Threads, writers, mode)));
        assert_eq!(shape(&groups[1]).len(), 2);
        assert!(groups.iter().all(|keys| keys.iter().all(|key| key.same_group(&keys[0]))));
        assert!(contention.check().is_ok());
    }

    #[test]
    fn under_normal_a_bound_stands_beside_them() {
        let contention = Contention {
            threads: vec![4],
            synchronous: vec![Synchronous::Normal, Synchronous::Full],
            ..Contention::default()
        };
        let groups = contention.groups(&["system".to_owned()]);
        let shape: Vec<Vec<&str>> =
            groups.iter().map(|keys| keys.iter().map(|key| key.mode.word()).collect()).collect();
        assert_eq!(shape, [vec!["wal", "waldio"], vec!["wal", "waldio", "bounded"]]);
        assert!(groups[1][0].group_title().ends_with("synchronous=NORMAL"));
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let of = |modes: &[JournalMode], schemas: &[Schema]| Contention {
            modes: modes.to_vec(),
            schemas: schemas.to_vec(),
            ..Contention::default()
        };
        assert!(of(&[JournalMode::Delete], &[]).check().unwrap_err().to_string().contains("delete"));
        assert!(of(&[], &[Schema::Mobibench]).check().unwrap_err().to_string().contains("atc13"));
    }

    #[test]
    fn a_slow_device_counts_in_every_run() {
        let slow = Contention { run_ns: 5_000_000_000, flush_delay_ns: 1, ..Contention::default() };
        assert_eq!(slow.counting_run_ns(), None);
        let fast = Contention { flush_delay_ns: 0, ..slow };
        assert_eq!(fast.counting_run_ns(), Some(COUNTING_RUN_NS_MAX));
    }
}
