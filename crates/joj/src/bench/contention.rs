//! A measurement of contended commits: rows in turn, forward in one round, backward in the next.

use joj_analysis::bench::contended::{ContendedKey, ContendedRow, summarise};
use joj_analysis::bench::document::Limit;
use joj_analysis::bench::run::{Latency, SyncCount, quantiles};

use crate::bench::ask::Stop;
use crate::bench::plans::contended::Contention;
use crate::bench::progress::Progress;
use crate::bench::session::{Collected, Session};
use crate::bench::worker::contended::run::{Contended, ContendedTask, RunLength};

/// Rows with all latencies, and the disk's limits, until they are summed up.
#[derive(Debug)]
pub struct ContendedSession<'a> {
    session: &'a Session<'a>,
    contention: &'a Contention,
    rows: Vec<(ContendedRow, Vec<u64>)>,
    limits: Collected,
}

impl<'a> ContendedSession<'a> {
    /// To measure `contention` with what `session` has.
    pub fn new(session: &'a Session<'a>, contention: &'a Contention) -> ContendedSession<'a> {
        let limits = Collected::new(std::iter::empty());
        ContendedSession { session, contention, rows: Vec::new(), limits }
    }

    /// Steps of [`Progress`] for `groups`.
    pub fn steps(contention: &Contention, groups: &[Vec<ContendedKey>], runs: u32) -> usize {
        let rows: usize = groups.iter().map(Vec::len).sum();
        let rounds = usize::try_from(runs).unwrap_or(1);
        let (counting, limits) =
            if contention.flush_delay_ns == 0 { (rows, rounds * groups.len()) } else { (0, 0) };
        counting + limits + rounds * rows
    }

    /// Measures everything.
    /// # Errors
    /// [`Stop::Signal`] and [`Stop::Full`]; a row that fails alone is marked instead.
    pub fn measure(
        mut self,
        groups: &[Vec<ContendedKey>],
        progress: &mut Progress,
    ) -> Result<(Vec<ContendedRow>, Vec<Limit>), Stop> {
        let mut blocks: Vec<Vec<usize>> = Vec::new();
        for group in groups {
            let from = self.rows.len();
            self.rows.extend(group.iter().map(|key| (ContendedRow::new(key.clone()), Vec::new())));
            blocks.push((from..self.rows.len()).collect());
        }
        if let Some(clock_ns) = self.contention.counting_run_ns() {
            for index in 0..self.rows.len() {
                progress.step(&format!("counting syncs: {}", self.rows[index].0.key));
                self.count_syncs(index, clock_ns)?;
            }
        }
        for round in 0..self.session.runs {
            progress.round(round, self.session.runs);
            let mut order = blocks.clone();
            if round % 2 == 1 {
                order.reverse();
                order.iter_mut().for_each(|block| block.reverse());
            }
            for block in order {
                if self.contention.flush_delay_ns == 0 {
                    progress.step("the disk's limit");
                    self.session.measure_limits(round, &mut self.limits)?;
                }
                for index in block {
                    progress.step(&self.rows[index].0.key.to_string());
                    self.measure_row(index, round)?;
                }
            }
        }
        Ok(self.finish())
    }

    fn count_syncs(&mut self, index: usize, clock_ns: u64) -> Result<(), Stop> {
        let row = &mut self.rows[index].0;
        match run(self.session, &row.key, clock_ns, true) {
            Ok(contended) => {
                row.syncs = contended.run.syncs;
                row.failure = contended.run.run.failure;
            }
            Err(Stop::Failed(reason)) => row.failure = Some(reason),
            Err(stop) => return Err(stop),
        }
        Ok(())
    }

    fn measure_row(&mut self, index: usize, round: u32) -> Result<(), Stop> {
        let (row, latencies_ns) = &mut self.rows[index];
        if row.failure.is_some() {
            return Ok(());
        }
        match run(self.session, &row.key, self.contention.run_ns, false) {
            Ok(mut contended) => {
                contended.run.run.round = round;
                row.failure.clone_from(&contended.run.run.failure);
                if let Some(syncs) = &contended.run.syncs {
                    row.syncs.get_or_insert_with(SyncCount::default).add(syncs);
                }
                row.runs.push(contended.run);
                row.waldio_status = contended.waldio_status;
                latencies_ns.extend(contended.latencies_ns);
            }
            Err(Stop::Failed(reason)) => row.failure = Some(reason),
            Err(stop) => return Err(stop),
        }
        Ok(())
    }

    fn finish(self) -> (Vec<ContendedRow>, Vec<Limit>) {
        let mut rows = Vec::new();
        let mut latencies = Vec::new();
        for (mut row, mut latencies_ns) in self.rows {
            latencies_ns.sort_unstable();
            row.latency_quantiles_ns = quantiles(&latencies_ns);
            latencies.push(Latency::of(&latencies_ns));
            rows.push(row);
        }
        summarise(&mut rows, &latencies);
        (rows, if self.contention.flush_delay_ns == 0 { self.limits.finish().1 } else { Vec::new() })
    }
}

fn run(session: &Session<'_>, key: &ContendedKey, run_ns: u64, count_syncs: bool) -> Result<Contended, Stop> {
    session.perform(&ContendedTask {
        libraries: session.libraries(&key.library, key.mode),
        directory: session.directory(),
        key: key.clone(),
        length: RunLength::Time(run_ns),
        sources: session.sources.clone(),
        count_syncs,
        waldio_options: Vec::new(),
    })
}
