//! Which rows the parts of `--waldio-study` have.

use joj_analysis::bench::durability::Durability;
use joj_analysis::bench::key::{JournalMode, LogState, RowKey, Schema, Synchronous, Word, Workload};
use joj_analysis::bench::study::initialisation::{Approach, InitialisationKey};
use joj_analysis::bench::study::parts::StudyPart;
use joj_analysis::bench::study::pattern::{Pattern, PatternKey};
use joj_analysis::bench::study::table_two::{Layout, TableTwoKey};

use crate::bench::worker::initialisation_run::OVERWRITES_MAX;
use crate::bench::worker::pattern_run::COMMITS_MAX;

/// The rows of [`StudyPart::Init`]. None without a flush: the page cache would hide how blocks were made ready.
pub fn initialisation_keys() -> Vec<InitialisationKey> {
    let each = |durability| {
        Approach::ALL.iter().map(move |approach| InitialisationKey { approach: *approach, durability })
    };
    [Durability::Fs, Durability::Pd].into_iter().flat_map(each).collect()
}

/// Overwrites of each pass of [`StudyPart::Init`] where `transactions` are asked for.
pub fn overwrites(transactions: u64) -> u64 {
    transactions.min(OVERWRITES_MAX)
}

/// The rows of [`StudyPart::Alignment`], by table.
pub fn pattern_keys() -> Vec<PatternKey> {
    let mut keys = Vec::new();
    for prepared in [true, false] {
        for durability in Durability::ALL {
            let key = |pattern: &Pattern| PatternKey { pattern: *pattern, durability: *durability, prepared };
            keys.extend(Pattern::ALL.iter().map(key));
        }
    }
    keys
}

/// Commits of a run of [`StudyPart::Alignment`] where `transactions` are asked for.
pub fn frame_commits(transactions: u64) -> u64 {
    transactions.min(COMMITS_MAX)
}

/// The rows of [`StudyPart::Table2`], by table: stock journal modes, then WAL and waldio in each state of the log, the
/// latter in each of `layouts`.
///
/// No group with NS, whose COMMIT waits for nothing anyway, nor with PD: a COMMIT that does not wait is a buffered
/// write, and its flush an fdatasync, whatever `waldio_persist` says.
pub fn table_two_keys(library: &str, layouts: &[Layout]) -> Vec<TableTwoKey> {
    let mut keys = Vec::new();
    for workload in [Workload::Insert, Workload::Update, Workload::Delete] {
        let mut add = |mode: JournalMode, log, (durability, group): (Durability, bool), layout| {
            let synchronous =
                if durability == Durability::Ns { Synchronous::Normal } else { Synchronous::Full };
            let library = library.to_owned();
            let row = RowKey { workload, schema: Schema::Waldio, synchronous, mode, log, library };
            keys.push(TableTwoKey { row, durability, group, layout });
        };
        for mode in JournalMode::ALL.iter().filter(|mode| !mode.has_log()) {
            add(*mode, LogState::None, (Durability::Fs, false), Layout::Stock);
        }
        for log in [LogState::Fresh, LogState::Steady] {
            for durability in [Durability::Fs, Durability::Ns] {
                add(JournalMode::Wal, log, (durability, false), Layout::Stock);
            }
            for layout in layouts {
                let unshared = Durability::ALL.iter().map(|durability| (*durability, false));
                for flushed in unshared.chain([(Durability::Fs, true)]) {
                    add(JournalMode::Waldio, log, flushed, *layout);
                }
            }
        }
    }
    keys
}

/// What is to be measured.
#[derive(Debug, Clone)]
pub struct StudyPlan {
    /// The parts.
    pub parts: Vec<StudyPart>,
    /// The rows of [`StudyPart::Table2`].
    pub table_two: Vec<TableTwoKey>,
}

impl StudyPlan {
    /// How many rows a part has.
    pub fn row_count(&self, part: StudyPart) -> usize {
        match part {
            StudyPart::Init => initialisation_keys().len(),
            StudyPart::Alignment => pattern_keys().len(),
            StudyPart::Table2 => self.table_two.len(),
        }
    }

    /// Steps of progress in `runs` rounds: the rows, and the disk's limit once a round.
    pub fn steps(&self, runs: u32) -> usize {
        let rounds = usize::try_from(runs).unwrap_or(1);
        self.parts.iter().map(|part| rounds * (self.row_count(*part) + 1)).sum()
    }

    /// How many rows all parts have.
    pub fn row_count_of_all(&self) -> usize {
        self.parts.iter().map(|part| self.row_count(*part)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_that_the_extension_lacks_has_no_row() {
        let stock = table_two_keys("system", &[Layout::Stock]);
        // Five modes without a log; in two states of it WAL with and without flushes, and four modes of waldio.
        assert_eq!(stock.len(), 3 * (5 + 2 * (2 + 4)));
        assert!(stock.iter().all(|key| key.layout == Layout::Stock));
        let both = table_two_keys("system", Layout::ALL);
        assert_eq!(both.len() - stock.len(), 3 * 2 * 4);
        for (index, key) in both.iter().enumerate() {
            assert!(!both[..index].contains(key), "{key} twice");
        }
    }
}
