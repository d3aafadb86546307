//! What the measurements of `joj bench` have in common, and how they are made.
//!
//!   calls counted, row by row | round: the disk's limit, a block's rows, the next block .. | next round | sums
//!
//! Rounds go forward and backward in turn, so that neither a drift nor a neighbour favours a row.

use std::ops::Range;

use joj_analysis::bench::document::Document;
use joj_analysis::bench::run::Run;

use crate::bench::ask::Stop;
use crate::bench::disk_limits::DiskLimits;
use crate::bench::forecast::limit_ns;
use crate::bench::progress::Progress;
use crate::bench::session::Session;
use crate::bench::worker::limit_run::Calibration;

/// One kind of measurement: its rows, by number, and what is done for each.
pub trait Experiment {
    /// All rows, in the order of the table.
    fn blocks(&self) -> Vec<RowBlock>;

    /// What it is about, in two or three words.
    fn subject(&self) -> &'static str;

    /// What a row measures, in a line.
    fn title(&self, row: usize) -> String;

    /// True where a row is measured in this round: not once it failed, or the place refused it.
    fn takes_part(&self, row: usize, round: Round) -> bool;

    /// How long a run takes, roughly, in nanoseconds, where `transactions` are asked for.
    fn run_ns(&self, row: usize, transactions: u64, calibration: Calibration) -> f64;

    /// Makes one run of a row, and keeps what came of it.
    /// # Errors
    /// [`Stop`]; the reason of [`Stop::Failed`] is given to [`Experiment::fail`].
    fn run(&mut self, row: usize, round: Round, session: &Session<'_>) -> Result<(), Stop>;

    /// Marks a row that is not to be used.
    fn fail(&mut self, row: usize, reason: String);

    /// Sums the rows up, into the result.
    fn finish(self: Box<Self>, document: &mut Document);

    /// True where a run of each row before the rounds counts calls for durability.
    fn counts_calls(&self) -> bool {
        false
    }

    /// How long that counting run takes, in nanoseconds.
    fn count_ns(&self, _row: usize, _transactions: u64, _calibration: Calibration) -> f64 {
        0.0
    }

    /// Makes that counting run.
    /// # Errors
    /// As [`Experiment::run`].
    fn count(&mut self, _row: usize, _session: &Session<'_>) -> Result<(), Stop> {
        Ok(())
    }
}

/// Rows that are measured one right after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowBlock {
    /// Their numbers.
    pub rows: Range<usize>,
    /// The disk's limit is measured before them.
    pub wants_limit: bool,
}

impl RowBlock {
    /// One block of so many rows, behind the disk's limit.
    pub fn of_all(rows: usize) -> Vec<RowBlock> {
        vec![RowBlock { rows: 0..rows, wants_limit: true }]
    }

    /// Blocks of neighbours that belong together, of all `rows`; `wants_limit` is asked of each block's first.
    pub fn of<R>(
        rows: &[R],
        together: impl Fn(&R, &R) -> bool,
        wants_limit: impl Fn(&R) -> bool,
    ) -> Vec<RowBlock> {
        let mut from = 0;
        let block = |members: &[R]| {
            let rows = from..from + members.len();
            from = rows.end;
            RowBlock { rows, wants_limit: wants_limit(&members[0]) }
        };
        rows.chunk_by(together).map(block).collect()
    }
}

/// One round.
#[derive(Debug, Clone, Copy)]
pub struct Round {
    /// Its number; the first is 0.
    pub number: u32,
    /// How many there are.
    pub all: u32,
    /// The disk's limit per second, where it was measured just before.
    pub limit_per_s: Option<f64>,
}

impl Round {
    /// Marks a run as one of this round.
    pub fn mark(self, run: Run) -> Run {
        Run { round: self.number, limit_per_s: self.limit_per_s, ..run }
    }
}

/// So many rounds.
pub fn rounds(all: u32) -> impl Iterator<Item = Round> {
    (0..all).map(move |number| Round { number, all, limit_per_s: None })
}

/// Backwards in every second round.
fn in_turn<T>(mut items: Vec<T>, round: Round) -> Vec<T> {
    if round.number % 2 == 1 {
        items.reverse();
    }
    items
}

/// How many rows it has.
pub fn row_count(experiment: &dyn Experiment) -> usize {
    experiment.blocks().iter().map(|block| block.rows.len()).sum()
}

/// Expected seconds of `runs` rounds, where `transactions` are asked for.
pub fn expected_s(
    experiment: &dyn Experiment,
    transactions: u64,
    runs: u32,
    calibration: Calibration,
) -> f64 {
    let mut all_ns = 0.0;
    for block in experiment.blocks() {
        if block.wants_limit {
            all_ns += f64::from(runs) * limit_ns(transactions, calibration);
        }
        for row in block.rows {
            let taken = rounds(runs).filter(|round| experiment.takes_part(row, *round)).count();
            all_ns += taken as f64 * experiment.run_ns(row, transactions, calibration);
            all_ns += experiment.count_ns(row, transactions, calibration);
        }
    }
    all_ns / 1e9
}

/// Measures every row.
/// # Errors
/// [`Stop::Signal`] and [`Stop::Full`]; a row that fails alone is marked instead. The limit that fails is an error, too.
pub fn measure(
    experiment: &mut dyn Experiment,
    session: &Session<'_>,
    limits: &mut DiskLimits,
    progress: &mut Progress,
) -> Result<(), Stop> {
    let blocks = experiment.blocks();
    let (transactions, calibration) = (session.transactions, session.calibration);
    if experiment.counts_calls() {
        progress.round(&format!("{}: counting syncs", experiment.subject()));
        for row in blocks.iter().flat_map(|block| block.rows.clone()) {
            let title = format!("counting syncs: {}", experiment.title(row));
            progress.step_of(&title, experiment.count_ns(row, transactions, calibration));
            let counted = experiment.count(row, session);
            settle(experiment, row, counted)?;
        }
    }
    for round in rounds(session.runs) {
        progress.round(&format!("{}: round {} of {}", experiment.subject(), round.number + 1, round.all));
        for block in in_turn(blocks.clone(), round) {
            let mut limit_per_s = None;
            if block.wants_limit {
                progress.step_of("the disk itself: writes of 4 KiB", limit_ns(transactions, calibration));
                limit_per_s = limits.measure(session, round.number)?;
            }
            let round = Round { limit_per_s, ..round };
            for row in in_turn(block.rows.collect(), round) {
                if !experiment.takes_part(row, round) {
                    continue;
                }
                progress.step_of(&experiment.title(row), experiment.run_ns(row, transactions, calibration));
                let ran = experiment.run(row, round, session);
                settle(experiment, row, ran)?;
            }
        }
    }
    Ok(())
}

/// What failed costs its row, what else stops a measurement stops it.
fn settle(experiment: &mut dyn Experiment, row: usize, end: Result<(), Stop>) -> Result<(), Stop> {
    match end {
        Err(Stop::Failed(reason)) => {
            experiment.fail(row, reason);
            Ok(())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_that_belong_together_are_a_block() {
        let blocks =
            RowBlock::of(&[11, 12, 21, 13], |one, other| one / 10 == other / 10, |first| *first < 13);
        let block = |rows, wants_limit| RowBlock { rows, wants_limit };
        assert_eq!(blocks, [block(0..2, true), block(2..3, false), block(3..4, false)]);
        assert!(RowBlock::of(&[0; 0], |_, _| true, |_| true).is_empty());
    }

    #[test]
    fn odd_rounds_run_backwards() {
        let orders = rounds(3).map(|round| in_turn(vec![1, 2, 3], round));
        assert_eq!(orders.collect::<Vec<_>>(), [[1, 2, 3], [3, 2, 1], [1, 2, 3]]);
    }
}
