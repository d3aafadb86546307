//! Transactions of one writer: which rows to measure, in which order, and their runs.
//!
//! The default is not every combination: that would take half an hour. Naming a value of a dimension on the
//! command line widens the plan in that dimension to all workloads.

use joj_analysis::bench::document::Document;
use joj_analysis::bench::key::{JournalMode, LogState, RowKey, Schema, Synchronous, Word, Workload};
use joj_analysis::bench::row::{Row, summarise};
use joj_analysis::bench::run::distribution;

use crate::bench::ask::Stop;
use crate::bench::builds::name_sync_calls;
use crate::bench::experiment::{Experiment, Round, RowBlock};
use crate::bench::forecast::run_ns;
use crate::bench::session::Session;
use crate::bench::worker::database_run::RowTask;
use crate::bench::worker::limit_run::Calibration;
use crate::bench::worker::task::Measured;
use crate::bench::worker::workload::transaction_count;

/// Transactions of the extra run that counts calls for durability.
const SYNC_COUNT_TRANSACTIONS: u64 = 50;

/// What the command line chose; an empty list leaves the choice to the default.
#[derive(Debug, Clone, Default)]
pub struct RowSelection {
    /// Workloads.
    pub workloads: Vec<Workload>,
    /// Schemas.
    pub schemas: Vec<Schema>,
    /// Modes.
    pub modes: Vec<JournalMode>,
    /// Synchronous settings.
    pub synchronous: Vec<Synchronous>,
    /// Fresh or steady logs.
    pub logs: Vec<LogState>,
}

/// The rows of one table.
#[derive(Debug, Clone)]
pub struct Group {
    /// Its rows; neighbours are measured one right after the other.
    pub keys: Vec<RowKey>,
}

fn allows<W: PartialEq>(chosen: &[W], value: &W) -> bool {
    chosen.is_empty() || chosen.contains(value)
}

impl RowSelection {
    /// True where waldio's extension is needed.
    pub fn needs_waldio(&self) -> bool {
        JournalMode::ALL.iter().any(|mode| mode.uses_waldio() && allows(&self.modes, mode))
    }

    /// True where a mode takes part in this round. Rollback journals are three to ten times slower than a log and
    /// far from it, so in the default plan every other round will do for them; who names modes gets every round.
    fn takes_part(&self, mode: JournalMode, round: Round) -> bool {
        const ROUNDS_TO_SPARE: u32 = 5;
        let spared = round.all >= ROUNDS_TO_SPARE && !round.number.is_multiple_of(2);
        mode.has_log() || !self.modes.is_empty() || !spared
    }

    fn includes(&self, key: &RowKey) -> bool {
        let is_core_insert = key.workload == Workload::Insert && key.schema == Schema::Waldio;
        let is_full = key.synchronous == Synchronous::Full;
        let schema_is_usual = key.schema == Schema::Waldio
            || (key.workload == Workload::Insert && is_full && key.mode.has_log());
        let synchronous_is_usual = is_full || (is_core_insert && key.mode.has_log());
        // A bound is for programs that run NORMAL.
        let mode_is_usual = match key.mode {
            JournalMode::Bounded => is_core_insert && !is_full,
            mode => mode.has_log() || (is_core_insert && is_full),
        };
        // What the other schemas are for, the papers' numbers, was measured with fresh logs.
        let log_is_usual = key.schema == Schema::Waldio || key.log != LogState::Steady;
        let log_is_allowed =
            !matches!(key.log, LogState::Fresh | LogState::Steady) || allows(&self.logs, &key.log);
        allows(&self.workloads, &key.workload)
            && allows(&self.schemas, &key.schema)
            && allows(&self.modes, &key.mode)
            && allows(&self.synchronous, &key.synchronous)
            && log_is_allowed
            && ((schema_is_usual && log_is_usual) || !self.schemas.is_empty())
            && (synchronous_is_usual || !self.synchronous.is_empty())
            && (mode_is_usual || !self.modes.is_empty())
    }

    /// The rows to measure with SQLite builds of these names, by table.
    pub fn groups(&self, libraries: &[String]) -> Vec<Group> {
        let mut groups = Vec::new();
        for synchronous in Synchronous::ALL {
            for workload in Workload::ALL {
                for schema in Schema::ALL {
                    let keys = self.keys(*workload, *schema, *synchronous, libraries);
                    if !keys.is_empty() {
                        groups.push(Group { keys });
                    }
                }
            }
        }
        groups
    }

    fn keys(
        &self,
        workload: Workload,
        schema: Schema,
        synchronous: Synchronous,
        libraries: &[String],
    ) -> Vec<RowKey> {
        let mut keys = Vec::new();
        for library in libraries {
            for log in LogState::ALL {
                for mode in JournalMode::ALL.iter().filter(|mode| has_state(workload, **mode, *log)) {
                    let library = library.clone();
                    keys.push(RowKey { workload, schema, synchronous, mode: *mode, log: *log, library });
                }
            }
        }
        keys.retain(|key| self.includes(key));
        keys
    }
}

/// True where a mode's log can be in this state when the clock starts.
fn has_state(workload: Workload, mode: JournalMode, log: LogState) -> bool {
    match (mode.has_log(), workload) {
        (false, _) => log == LogState::None,
        (true, Workload::Read) => log == LogState::Full,
        // The last connection's close removes the log, so there is no steady one.
        (true, Workload::Open) => log == LogState::Fresh,
        (true, _) => matches!(log, LogState::Fresh | LogState::Steady),
    }
}

/// Rows of one writer, each with all latencies.
#[derive(Debug)]
pub struct Rows {
    selection: RowSelection,
    rows: Vec<(Row, Vec<u64>)>,
}

impl Rows {
    /// What `selection` leaves of the rows with SQLite builds of these names.
    pub fn new(selection: RowSelection, libraries: &[String]) -> Rows {
        let keys = selection.groups(libraries).into_iter().flat_map(|group| group.keys);
        let rows = keys.map(|key| (Row::new(key), Vec::new())).collect();
        Rows { selection, rows }
    }

    fn ask(&self, row: usize, counted: Option<u64>, session: &Session<'_>) -> Result<Measured, Stop> {
        let key = &self.rows[row].0.key;
        let transactions = transaction_count(key, session.transactions);
        session.perform(&RowTask {
            libraries: session.libraries(&key.library, key.mode),
            directory: session.directory(),
            key: key.clone(),
            transactions: counted.map_or(transactions, |most| transactions.min(most)),
            sources: session.sources.clone(),
            count_syncs: counted.is_some(),
            waldio_options: Vec::new(),
            checkpoint_apart: false,
        })
    }
}

impl Experiment for Rows {
    fn blocks(&self) -> Vec<RowBlock> {
        let together = |(one, _): &(Row, _), (other, _): &(Row, _)| {
            one.key.same_group(&other.key) && one.key.library == other.key.library
        };
        RowBlock::of(&self.rows, together, |(row, _)| row.key.workload.is_bound_by_flushes())
    }

    fn subject(&self) -> &'static str {
        "one writer"
    }

    fn title(&self, row: usize) -> String {
        self.rows[row].0.key.to_string()
    }

    fn takes_part(&self, row: usize, round: Round) -> bool {
        let row = &self.rows[row].0;
        row.failure.is_none() && self.selection.takes_part(row.key.mode, round)
    }

    fn run_ns(&self, row: usize, transactions: u64, calibration: Calibration) -> f64 {
        let key = &self.rows[row].0.key;
        run_ns(key, transaction_count(key, transactions), calibration)
    }

    fn run(&mut self, row: usize, round: Round, session: &Session<'_>) -> Result<(), Stop> {
        let measured = self.ask(row, None, session)?;
        let (row, latencies_ns) = &mut self.rows[row];
        row.failure.clone_from(&measured.run.failure);
        row.runs.push(round.mark(measured.run));
        row.waldio_status = measured.waldio_status;
        latencies_ns.extend(measured.latencies_ns);
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
            document.rows.push(row);
        }
        summarise(&mut document.rows, &latencies);
        let counts = document.rows.iter().map(|row| (row.key.mode, &*row.key.library, row.syncs.as_ref()));
        name_sync_calls(&mut document.builds, counts);
    }

    fn counts_calls(&self) -> bool {
        true
    }

    fn count_ns(&self, row: usize, transactions: u64, calibration: Calibration) -> f64 {
        let key = &self.rows[row].0.key;
        run_ns(key, transaction_count(key, transactions).min(SYNC_COUNT_TRANSACTIONS), calibration)
    }

    fn count(&mut self, row: usize, session: &Session<'_>) -> Result<(), Stop> {
        let measured = self.ask(row, Some(SYNC_COUNT_TRANSACTIONS), session)?;
        let row = &mut self.rows[row].0;
        row.syncs = measured.syncs;
        row.failure = measured.run.failure;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::experiment::rounds;

    fn count(selection: &RowSelection) -> usize {
        let libraries = ["bundled".to_owned()];
        selection.groups(&libraries).iter().map(|group| group.keys.len()).sum()
    }

    #[test]
    fn the_default_has_every_workload_schema_mode_and_setting() {
        let groups = RowSelection::default().groups(&["bundled".to_owned(), "system".to_owned()]);
        let keys: Vec<&RowKey> = groups.iter().flat_map(|group| &group.keys).collect();
        assert!(Workload::ALL.iter().all(|word| keys.iter().any(|key| key.workload == *word)));
        assert!(Schema::ALL.iter().all(|word| keys.iter().any(|key| key.schema == *word)));
        assert!(JournalMode::ALL.iter().all(|word| keys.iter().any(|key| key.mode == *word)));
        assert!(Synchronous::ALL.iter().all(|word| keys.iter().any(|key| key.synchronous == *word)));
        assert!(groups.iter().all(|group| group.keys.iter().all(|key| key.same_group(&group.keys[0]))));
    }

    #[test]
    fn stock_and_waldio_are_neighbours() {
        let groups = RowSelection::default().groups(&["bundled".to_owned()]);
        for keys in groups.iter().map(|group| &group.keys) {
            for (index, key) in keys.iter().enumerate().filter(|(_, key)| key.mode == JournalMode::Waldio) {
                assert_eq!(keys[index - 1], key.stock_wal());
            }
        }
    }

    #[test]
    fn naming_a_mode_widens_the_plan_to_all_workloads() {
        let only = |modes: &[JournalMode]| RowSelection { modes: modes.to_vec(), ..RowSelection::default() };
        assert_eq!(count(&only(&[JournalMode::Delete])), Workload::ALL.len());
        assert!(!only(&[JournalMode::Delete]).needs_waldio());
        let one = RowSelection {
            workloads: vec![Workload::Insert],
            modes: vec![JournalMode::Wal],
            schemas: vec![Schema::Waldio],
            synchronous: vec![Synchronous::Full],
            logs: vec![LogState::Steady],
        };
        assert_eq!(count(&one), 1);
    }

    #[test]
    fn only_the_default_plan_spares_rollback_modes_rounds() {
        let rounds = |selection: &RowSelection, mode, runs| {
            rounds(runs).filter(|round| selection.takes_part(mode, *round)).count()
        };
        let named = RowSelection { modes: vec![JournalMode::Delete], ..RowSelection::default() };
        assert_eq!(rounds(&RowSelection::default(), JournalMode::Delete, 5), 3);
        assert_eq!(rounds(&RowSelection::default(), JournalMode::Delete, 3), 3);
        assert_eq!(rounds(&RowSelection::default(), JournalMode::Wal, 5), 5);
        assert_eq!(rounds(&named, JournalMode::Delete, 5), 5);
    }

    #[test]
    fn states_of_the_log_fit_the_mode() {
        let none = RowSelection {
            workloads: vec![Workload::Open],
            modes: vec![JournalMode::Wal],
            logs: vec![LogState::Steady],
            ..RowSelection::default()
        };
        assert_eq!(count(&none), 0);
    }
}
