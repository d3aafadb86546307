//! A measurement from the first round to the last: limits and rows in turn, forward in one round, backward in the
//! next, so that neither a drift nor a neighbour favours a mode.

use joj_analysis::bench::document::{Limit, LimitKind, LimitRun};
use joj_analysis::bench::environment::{SqliteBuild, WaldioFacts};
use joj_analysis::bench::key::{JournalMode, RowKey};
use joj_analysis::bench::row::{Row, summarise};
use joj_analysis::bench::run::{Latency, Run, SyncCount, quantiles};
use joj_analysis::statistics::Estimate;

use crate::bench::ask::{Asker, Stop};
use crate::bench::plans::forecast::{SYNC_COUNT_TRANSACTIONS, limit_operations};
use crate::bench::plans::rows::{Group, Selection};
use crate::bench::progress::Progress;
use crate::bench::worker::database_run::RowTask;
use crate::bench::worker::libraries::Libraries;
use crate::bench::worker::limit_run::LimitTask;
use crate::bench::worker::task::{Measured, Task};
use crate::bench::worker::workload::transaction_count;
use crate::machine::files::counters::Sources;
use crate::machine::files::limit_file::WRITE_BYTES;
use crate::machine::files::work_dir::WorkDir;

const LIMIT_KINDS: [LimitKind; 3] =
    [LimitKind::DirectDurableWrite, LimitKind::WriteFdatasync, LimitKind::LoneFlush];

/// What a measurement needs.
#[derive(Debug)]
pub struct Session<'a> {
    /// Where the files go.
    pub work_dir: &'a WorkDir,
    /// Who does it.
    pub asker: Asker<'a>,
    /// SQLite builds by name.
    pub builds: &'a [SqliteBuild],
    /// The extension.
    pub waldio: Option<&'a WaldioFacts>,
    /// Counters to read.
    pub sources: Sources,
    /// Transactions per run that were asked for.
    pub transactions: u64,
    /// Rounds.
    pub runs: u32,
    /// Which modes take part in which round.
    pub selection: &'a Selection,
}

/// Rows and limits with all latencies, until they are summed up.
#[derive(Debug)]
pub struct Collected {
    rows: Vec<(Row, Vec<u64>)>,
    limits: Vec<(Limit, Vec<u64>)>,
    /// The faster limit that was measured last, per second.
    current_limit: Option<f64>,
}

impl Session<'_> {
    /// Measures everything.
    /// # Errors
    /// [`Stop::Signal`] and [`Stop::Full`]; a row that fails alone is marked instead.
    pub fn measure(&self, groups: &[Group], progress: &mut Progress) -> Result<Collected, Stop> {
        let keys = || groups.iter().flat_map(|group| &group.keys);
        let mut collected = Collected::new(keys().cloned());
        for (index, key) in keys().enumerate() {
            progress.step(&format!("counting syncs: {key}"));
            self.count_syncs(key, &mut collected.rows[index].0)?;
        }
        let blocks = blocks(groups);
        for round in 0..self.runs {
            progress.round(round, self.runs);
            let mut order: Vec<&Vec<usize>> = blocks.iter().collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for block in order {
                self.measure_block(block, round, &mut collected, progress)?;
            }
        }
        Ok(collected)
    }

    /// The disk's limit, then the rows of `block`.
    fn measure_block(
        &self,
        block: &[usize],
        round: u32,
        collected: &mut Collected,
        progress: &mut Progress,
    ) -> Result<(), Stop> {
        let of_flushes = |index: &usize| collected.rows[*index].0.key.workload.is_bound_by_flushes();
        if block.iter().any(of_flushes) {
            progress.step("the disk's limit");
            self.measure_limits(round, collected)?;
        } else {
            collected.current_limit = None;
        }
        let mut order = block.to_vec();
        if round % 2 == 1 {
            order.reverse();
        }
        for index in order {
            let limit = collected.current_limit;
            let (row, latencies_ns) = &mut collected.rows[index];
            if row.failure.is_some() || !self.selection.takes_part(row.key.mode, round, self.runs) {
                progress.step("a row that sits out");
                continue;
            }
            progress.step(&row.key.to_string());
            match self.run_row(&row.key, transaction_count(&row.key, self.transactions), false) {
                Ok(measured) => {
                    let mut run = Run { round, limit_per_s: limit, ..measured.run };
                    row.failure = run.failure.take().inspect(|reason| run.failure = Some(reason.clone()));
                    row.runs.push(run);
                    row.waldio_status = measured.waldio_status;
                    latencies_ns.extend(measured.latencies_ns);
                }
                Err(Stop::Failed(reason)) => row.failure = Some(reason),
                Err(stop) => return Err(stop),
            }
        }
        Ok(())
    }

    fn run_row(&self, key: &RowKey, transactions: u64, count_syncs: bool) -> Result<Measured, Stop> {
        self.perform(&RowTask {
            libraries: self.libraries(&key.library, key.mode),
            directory: self.directory(),
            key: key.clone(),
            transactions,
            sources: self.sources.clone(),
            count_syncs,
            waldio_options: Vec::new(),
            checkpoint_apart: false,
        })
    }

    fn count_syncs(&self, key: &RowKey, row: &mut Row) -> Result<(), Stop> {
        let transactions = transaction_count(key, self.transactions).min(SYNC_COUNT_TRANSACTIONS);
        match self.run_row(key, transactions, true) {
            Ok(measured) => {
                row.syncs = measured.syncs;
                row.failure = measured.run.failure;
            }
            Err(Stop::Failed(reason)) => row.failure = Some(reason),
            Err(stop) => return Err(stop),
        }
        Ok(())
    }

    /// The disk without SQLite, into `collected`.
    /// # Errors
    /// [`Stop`]
    pub fn measure_limits(&self, round: u32, collected: &mut Collected) -> Result<(), Stop> {
        let task = LimitTask {
            directory: self.directory(),
            kinds: LIMIT_KINDS.to_vec(),
            operations: limit_operations(self.transactions),
            sources: self.sources.clone(),
        };
        let answers = self.perform(&task)?;
        collected.current_limit = None;
        for (kind, result) in answers {
            collected.add_limit(kind, round, result);
        }
        Ok(())
    }

    /// What to load for rows of `mode` with the build `library`.
    pub fn libraries(&self, library: &str, mode: JournalMode) -> Libraries {
        let sqlite = self.builds.iter().find(|build| build.name == library);
        let extension = self.waldio.filter(|_| mode == JournalMode::Waldio).map(|waldio| waldio.file.clone());
        Libraries { sqlite: sqlite.and_then(|build| build.file.clone()), extension, ..Libraries::default() }
    }

    /// Where the files go.
    pub fn directory(&self) -> String {
        self.work_dir.path().to_string_lossy().into_owned()
    }

    /// Has a worker do a task, and removes what it left whatever came of it.
    /// # Errors
    /// Those of the worker; or what it left stays, and the next run would find it.
    pub fn perform<T: Task>(&self, task: &T) -> Result<T::Answer, Stop> {
        let answer = self.asker.ask(task);
        let place = self.work_dir.path().display();
        self.work_dir.clear().map_err(|error| Stop::Failed(format!("cannot empty {place}: {error}")))?;
        answer
    }
}

/// Indices of rows that are measured together after one measurement of the limit: those of a group and a build.
fn blocks(groups: &[Group]) -> Vec<Vec<usize>> {
    let mut blocks: Vec<Vec<usize>> = Vec::new();
    let mut index = 0;
    for group in groups {
        let mut library = None;
        for key in &group.keys {
            if library != Some(&key.library) {
                blocks.push(Vec::new());
                library = Some(&key.library);
            }
            if let Some(block) = blocks.last_mut() {
                block.push(index);
            }
            index += 1;
        }
    }
    blocks
}

impl Collected {
    /// Rows of these keys, and the limits, all empty.
    pub fn new(keys: impl Iterator<Item = RowKey>) -> Collected {
        let row = |key| Row {
            key,
            runs: Vec::new(),
            latency_quantiles_ns: Vec::new(),
            syncs: None,
            waldio_status: Vec::new(),
            failure: None,
            summary: None,
        };
        let limit = |kind| Limit {
            kind,
            refused: None,
            runs: Vec::new(),
            latency_quantiles_ns: Vec::new(),
            operations_per_s: None,
            latency: Latency::default(),
        };
        Collected {
            rows: keys.map(|key| (row(key), Vec::new())).collect(),
            limits: LIMIT_KINDS.into_iter().map(|kind| (limit(kind), Vec::new())).collect(),
            current_limit: None,
        }
    }

    fn add_limit(&mut self, kind: LimitKind, round: u32, result: Result<Measured, String>) {
        let Some((limit, latencies_ns)) = self.limits.iter_mut().find(|(limit, _)| limit.kind == kind) else {
            return;
        };
        match result {
            Err(reason) => limit.refused = Some(reason),
            Ok(measured) => {
                let run = &measured.run;
                let operations = run.transactions;
                let own_bytes = if kind.stores_data() { operations * WRITE_BYTES as u64 } else { 0 };
                limit.runs.push(LimitRun {
                    round,
                    operations,
                    elapsed_ns: run.elapsed_ns,
                    latency: run.latency,
                    own_bytes,
                    device: run.device,
                    others_cores: run.others_cores,
                    tick_share: run.tick_share,
                });
                latencies_ns.extend(measured.latencies_ns);
                if kind.stores_data() {
                    let speed = run.transactions_per_s();
                    self.current_limit = Some(self.current_limit.map_or(speed, |best: f64| best.max(speed)));
                }
            }
        }
    }

    /// Sums up: the rows, and the limits, with their medians and distributions.
    pub fn finish(self) -> (Vec<Row>, Vec<Limit>) {
        let mut rows = Vec::new();
        let mut latencies = Vec::new();
        for (mut row, mut latencies_ns) in self.rows {
            latencies_ns.sort_unstable();
            row.latency_quantiles_ns = quantiles(&latencies_ns);
            latencies.push(Latency::of(&latencies_ns));
            rows.push(row);
        }
        summarise(&mut rows, &latencies);
        let limits = self.limits.into_iter().map(|(mut limit, mut latencies_ns)| {
            latencies_ns.sort_unstable();
            limit.latency_quantiles_ns = quantiles(&latencies_ns);
            limit.latency = Latency::of(&latencies_ns);
            let speeds: Vec<f64> = limit.runs.iter().map(LimitRun::operations_per_s).collect();
            limit.operations_per_s = Estimate::of(&speeds);
            limit
        });
        (rows, limits.collect())
    }
}

/// The sync call of each build, from the calls that stock rows made: (build, its calls).
pub fn name_sync_calls(builds: &mut [SqliteBuild], stock: &[(&str, &SyncCount)]) {
    for build in builds {
        let counts: Vec<&SyncCount> =
            stock.iter().filter(|(library, _)| *library == build.name).map(|(_, count)| *count).collect();
        let mut sum = SyncCount::default();
        for count in &counts {
            sum.add(count);
        }
        if counts.is_empty() {
            build.sync_call_evidence =
                "not counted: no stock row, or the kernel refuses seccomp's notices".to_owned();
            continue;
        }
        build.sync_call = sum.call_name().to_owned();
        build.sync_call_evidence = format!(
            "counted with seccomp: {} fsync, {} fdatasync in {} transactions of its stock rows",
            sum.fsync, sum.fdatasync, sum.transactions
        );
    }
}
