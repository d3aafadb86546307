//! Which rows to measure, in which order.
//!
//! The default is not every combination: that would take half an hour. Naming a value of a dimension on the
//! command line widens the plan in that dimension to all workloads.

use joj_analysis::bench::key::{JournalMode, LogState, RowKey, Schema, Synchronous, Word, Workload};

/// What the command line chose; an empty list leaves the choice to the default.
#[derive(Debug, Clone, Default)]
pub struct Selection {
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

impl Selection {
    /// True where waldio's extension is needed.
    pub fn needs_waldio(&self) -> bool {
        allows(&self.modes, &JournalMode::Waldio)
    }

    /// True where a mode takes part in this round. Rollback journals are three to ten times slower than a log and
    /// far from it, so in the default plan every other round will do for them; who names modes gets every round.
    pub fn takes_part(&self, mode: JournalMode, round: u32, runs: u32) -> bool {
        const RUNS_TO_SPARE: u32 = 5;
        mode.has_log() || !self.modes.is_empty() || runs < RUNS_TO_SPARE || round.is_multiple_of(2)
    }

    fn includes(&self, key: &RowKey) -> bool {
        let is_core_insert = key.workload == Workload::Insert && key.schema == Schema::Waldio;
        let is_full = key.synchronous == Synchronous::Full;
        let schema_is_usual = key.schema == Schema::Waldio
            || (key.workload == Workload::Insert && is_full && key.mode.has_log());
        let synchronous_is_usual = is_full || (is_core_insert && key.mode.has_log());
        let mode_is_usual = key.mode.has_log() || (is_core_insert && is_full);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn count(selection: &Selection) -> usize {
        let libraries = ["bundled".to_owned()];
        selection.groups(&libraries).iter().map(|group| group.keys.len()).sum()
    }

    #[test]
    fn the_default_has_every_workload_schema_mode_and_setting() {
        let groups = Selection::default().groups(&["bundled".to_owned(), "system".to_owned()]);
        let keys: Vec<&RowKey> = groups.iter().flat_map(|group| &group.keys).collect();
        assert!(Workload::ALL.iter().all(|word| keys.iter().any(|key| key.workload == *word)));
        assert!(Schema::ALL.iter().all(|word| keys.iter().any(|key| key.schema == *word)));
        assert!(JournalMode::ALL.iter().all(|word| keys.iter().any(|key| key.mode == *word)));
        assert!(Synchronous::ALL.iter().all(|word| keys.iter().any(|key| key.synchronous == *word)));
        assert!(groups.iter().all(|group| group.keys.iter().all(|key| key.same_group(&group.keys[0]))));
    }

    #[test]
    fn stock_and_waldio_are_neighbours() {
        let groups = Selection::default().groups(&["bundled".to_owned()]);
        for keys in groups.iter().map(|group| &group.keys) {
            for (index, key) in keys.iter().enumerate().filter(|(_, key)| key.mode == JournalMode::Waldio) {
                assert_eq!(keys[index - 1], key.stock_wal());
            }
        }
    }

    #[test]
    fn naming_a_mode_widens_the_plan_to_all_workloads() {
        let only = |modes: &[JournalMode]| Selection { modes: modes.to_vec(), ..Selection::default() };
        assert_eq!(count(&only(&[JournalMode::Delete])), Workload::ALL.len());
        assert!(!only(&[JournalMode::Delete]).needs_waldio());
        let one = Selection {
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
        let rounds = |selection: &Selection, mode, runs| {
            (0..runs).filter(|round| selection.takes_part(mode, *round, runs)).count()
        };
        let named = Selection { modes: vec![JournalMode::Delete], ..Selection::default() };
        assert_eq!(rounds(&Selection::default(), JournalMode::Delete, 5), 3);
        assert_eq!(rounds(&Selection::default(), JournalMode::Delete, 3), 3);
        assert_eq!(rounds(&Selection::default(), JournalMode::Wal, 5), 5);
        assert_eq!(rounds(&named, JournalMode::Delete, 5), 5);
    }

    #[test]
    fn states_of_the_log_fit_the_mode() {
        let none = Selection {
            workloads: vec![Workload::Open],
            modes: vec![JournalMode::Wal],
            logs: vec![LogState::Steady],
            ..Selection::default()
        };
        assert_eq!(count(&none), 0);
    }
}
