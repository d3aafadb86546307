//! What came of crash states: a verdict for each, and the result of all (docs/crash_states.md).

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lab::cell::Cell;
use crate::lab::crash_script::rows_after;
use crate::lab::loss_bound::LossBound;
use crate::lab::result::LabMachine;

/// First word of a result.
pub const CRASH_FORMAT: &str = "joj-lab-crash";
/// Version that this joj writes.
pub const CRASH_VERSION: u32 = 3;

/// What a recovered database shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    /// What `PRAGMA integrity_check` said; `ok` where all is well.
    pub integrity: String,
    /// Its rows in order: each with the number of its last writer.
    pub rows: Vec<(u64, u64)>,
    /// The first row whose text is not the one that its writer wrote.
    pub wrong_text: Option<u64>,
}

/// What had been promised at the moment of the cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Promise {
    /// Transactions whose COMMIT had returned: these must be there.
    pub acknowledged: u64,
    /// Transactions that had begun: at most these may be there.
    pub begun: u64,
}

/// What is to be said of a state.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CrashVerdict {
    /// Everything acknowledged is there; so many transactions in all.
    Sound(u64),
    /// It has a prefix, of so many transactions, which lacks acknowledged ones.
    Lost(u64),
    /// It has what no prefix leaves, or is damaged.
    Corrupt(String),
    /// The kernel does not mount the filesystem.
    Unmountable(String),
    /// All rows are there, but the database cannot be used: opened, written, closed, its filesystem unmounted.
    Unusable(String),
    /// The guest, or the process that looks at the database, ended or took too long.
    Ended(String),
}

impl CrashVerdict {
    /// Of the database that `seen` shows.
    pub fn of(seen: &Seen, promise: Promise) -> CrashVerdict {
        if seen.integrity != "ok" {
            return CrashVerdict::Corrupt(format!("integrity_check: {}", seen.integrity));
        }
        if let Some(row) = seen.wrong_text {
            return CrashVerdict::Corrupt(format!("row {row} has a text that nobody wrote"));
        }
        let found = seen.rows.iter().map(|(_, number)| *number).max().unwrap_or(0);
        if found > promise.begun {
            return CrashVerdict::Corrupt(format!(
                "transaction {found} is there, and only {} had begun",
                promise.begun
            ));
        }
        let expected = rows_after(found);
        if !seen.rows.iter().copied().eq(expected.iter().map(|(row, number)| (*row, *number))) {
            let missing = expected.iter().find(|(row, number)| !seen.rows.contains(&(**row, **number)));
            let of_row = missing.map_or("there are rows beside them".to_owned(), |(row, number)| {
                format!("row {row} of transaction {number} is not")
            });
            return CrashVerdict::Corrupt(format!("no prefix: transaction {found} is there, {of_row}"));
        }
        if found < promise.acknowledged { CrashVerdict::Lost(found) } else { CrashVerdict::Sound(found) }
    }

    /// The last transaction that is there, where later ones that were acknowledged are missing.
    pub fn lost_behind(&self) -> Option<u64> {
        match self {
            CrashVerdict::Lost(found) => Some(*found),
            _ => None,
        }
    }

    fn told(&self, acknowledged: Option<u64>) -> String {
        match self {
            CrashVerdict::Sound(found) => format!("sound, {found} transactions"),
            CrashVerdict::Lost(found) => {
                let last = acknowledged.map_or("the last".to_owned(), |last| last.to_string());
                format!("LOST transactions {} to {last}, which were acknowledged", found + 1)
            }
            CrashVerdict::Corrupt(reason) => format!("CORRUPT: {reason}"),
            CrashVerdict::Unmountable(reason) => format!("UNMOUNTABLE: {reason}"),
            CrashVerdict::Unusable(reason) => format!("UNUSABLE: {reason}"),
            CrashVerdict::Ended(reason) => format!("ENDED: {reason}"),
        }
    }
}

/// A state: where its cut was, and what it held.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct StateResult {
    /// Its number, from 1 on; with the seed it tells cut and choice.
    pub state: u64,
    /// The cut; `null` where the guest ended before it told.
    pub cut: Option<CutResult>,
    /// What came of it.
    pub verdict: CrashVerdict,
    /// What stock SQLite alone makes of a copy of the files, where the mode is waldio and the log is SQLite's own.
    pub stock: Option<CrashVerdict>,
    /// How long before the cut the oldest of the acknowledged transactions returned that are lost.
    pub lost_age_ns: Option<u64>,
}

impl StateResult {
    /// Every verdict on it.
    pub fn verdicts(&self) -> impl Iterator<Item = &CrashVerdict> {
        [Some(&self.verdict), self.stock.as_ref()].into_iter().flatten()
    }
}

/// Where the power was cut, and what was kept.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct CutResult {
    /// `anywhere`, `flush`, `checkpoint` or `acknowledged`: what the moment was chosen for.
    pub place: String,
    /// Nanoseconds of the guest's clock.
    pub at_ns: u64,
    /// Writes, trims and flushes of the log that were done.
    pub completed: usize,
    /// Those behind them that were under way.
    pub in_flight: usize,
    /// Writes that no flush covered, counted by blocks.
    pub volatile_writes: u64,
    /// Which of these were kept.
    pub kept: String,
    /// What had been promised.
    pub promise: Promise,
}

/// What the states of one cell came to.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct CellStates {
    /// Filesystem, mode, options.
    pub cell: Cell,
    /// Why there is no recording of it, where there is none.
    pub failure: Option<String>,
    /// Entries of its log, from the first commit to the last.
    pub entries: usize,
    /// The longest time in which the device had something to do without a pause: no flush took longer.
    pub longest_flush_ns: u64,
    /// Its states, in order.
    pub states: Vec<StateResult>,
}

impl CellStates {
    /// How many states have a verdict of this kind.
    pub fn count(&self, kind: fn(&CrashVerdict) -> bool) -> usize {
        self.states.iter().filter(|state| state.verdicts().any(kind)).count()
    }

    /// What a power cut may take.
    pub fn bound(&self) -> LossBound {
        LossBound::of(&self.cell)
    }

    /// How long ago, in nanoseconds, a commit may have returned that is gone.
    pub fn age_max_ns(&self) -> u64 {
        self.bound().age_max_ns(self.longest_flush_ns)
    }

    /// True where `state` breaks no promise.
    pub fn holds(&self, state: &StateResult) -> bool {
        let acknowledged = state.cut.as_ref().map_or(u64::MAX, |cut| cut.promise.acknowledged);
        state.verdicts().all(|verdict| match verdict {
            CrashVerdict::Sound(_) => true,
            CrashVerdict::Lost(found) => acknowledged.saturating_sub(*found) <= self.bound().commits_max(),
            _ => false,
        }) && state.lost_age_ns.is_none_or(|age_ns| age_ns <= self.age_max_ns())
    }

    /// True where states were looked at, and none breaks a promise.
    pub fn is_sound(&self) -> bool {
        self.failure.is_none() && self.states.iter().all(|state| self.holds(state))
    }
}

/// The result of `joj lab crash`.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct CrashResult {
    /// Always `joj-lab-crash`.
    pub format: String,
    /// Version of the format, 1 or more.
    pub version: u32,
    /// What chose the cuts.
    pub seed: u64,
    /// The bug that was planted, if any.
    pub planted: Option<String>,
    /// What it ran on.
    pub machine: LabMachine,
    /// The states of each cell.
    pub cells: Vec<CellStates>,
}

impl fmt::Display for StateResult {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "state {}", self.state)?;
        if let Some(cut) = &self.cut {
            write!(
                formatter,
                ", cut ({}) behind entry {}, {} under way, kept {} of {} writes",
                cut.place, cut.completed, cut.in_flight, cut.kept, cut.volatile_writes
            )?;
        }
        let acknowledged = self.cut.as_ref().map(|cut| cut.promise.acknowledged);
        write!(formatter, ": {}", self.verdict.told(acknowledged))?;
        if let Some(stock) = &self.stock {
            write!(formatter, "; by stock SQLite: {}", stock.told(acknowledged))?;
        }
        match self.lost_age_ns {
            Some(age_ns) => {
                write!(
                    formatter,
                    "; the first of those that are gone {:.1} ms before the cut",
                    age_ns as f64 / 1e6
                )
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::key::{JournalMode, Synchronous};
    use crate::lab::report::facts::sample;

    fn seen(commits: u64) -> Seen {
        Seen { integrity: "ok".to_owned(), rows: rows_after(commits).into_iter().collect(), wrong_text: None }
    }

    const PROMISE: Promise = Promise { acknowledged: 20, begun: 21 };

    fn cut() -> CutResult {
        CutResult {
            place: "flush".to_owned(),
            at_ns: 5,
            completed: 7,
            in_flight: 1,
            volatile_writes: 3,
            kept: "None".to_owned(),
            promise: PROMISE,
        }
    }

    fn reason(verdict: CrashVerdict) -> String {
        match verdict {
            CrashVerdict::Corrupt(reason) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_acknowledged_ones_and_the_one_under_way_are_sound() {
        assert_eq!(CrashVerdict::of(&seen(20), PROMISE), CrashVerdict::Sound(20));
        assert_eq!(CrashVerdict::of(&seen(21), PROMISE), CrashVerdict::Sound(21));
        let nothing = Promise { acknowledged: 0, begun: 1 };
        assert_eq!(CrashVerdict::of(&seen(0), nothing), CrashVerdict::Sound(0));
    }

    #[test]
    fn a_shorter_prefix_is_a_loss() {
        for found in 0..20 {
            assert_eq!(CrashVerdict::of(&seen(found), PROMISE), CrashVerdict::Lost(found));
        }
    }

    #[test]
    fn what_nobody_began_cannot_be_there() {
        assert!(reason(CrashVerdict::of(&seen(22), PROMISE)).contains("only 21 had begun"));
    }

    #[test]
    fn any_hole_is_corruption() {
        let whole = seen(20);
        for hole in 0..whole.rows.len() {
            let mut less = whole.clone();
            let (_, number) = less.rows.remove(hole);
            if number == 20 && less.rows.iter().all(|(_, number)| *number < 20) {
                continue;
            }
            assert!(reason(CrashVerdict::of(&less, PROMISE)).contains("no prefix"), "without row {hole}");
        }
        let mut more = whole;
        more.rows.push((1 << 40, 20));
        assert!(reason(CrashVerdict::of(&more, PROMISE)).contains("beside"));
    }

    #[test]
    fn damage_is_corruption_whatever_the_rows_say() {
        let damaged = Seen { integrity: "row 3 missing from index".to_owned(), ..seen(20) };
        assert!(reason(CrashVerdict::of(&damaged, PROMISE)).contains("missing from index"));
        let torn = Seen { wrong_text: Some(64), ..seen(20) };
        assert!(reason(CrashVerdict::of(&torn, PROMISE)).contains("row 64"));
    }

    #[test]
    fn a_loss_is_allowed_up_to_the_bound_and_not_beyond() {
        let holds = |synchronous, options: &[&str], lost: u64, age_ns: u64| {
            let cell = Cell {
                synchronous,
                waldio_options: options.iter().map(|option| (*option).to_owned()).collect(),
                ..sample::cell(JournalMode::Waldio)
            };
            let verdict = CrashVerdict::Lost(PROMISE.acknowledged - lost);
            let lost_age_ns = Some(age_ns);
            let state = StateResult { state: 1, cut: Some(cut()), verdict, stock: None, lost_age_ns };
            let longest_flush_ns = 500_000;
            CellStates { cell, failure: None, entries: 1, longest_flush_ns, states: vec![state] }.is_sound()
        };
        let full = Synchronous::Full;
        assert!(!holds(full, &[], 1, 0));
        let window = ["group=16KiB,2ms"];
        let of_window = |(lost, age_ns)| holds(full, &window, lost, age_ns);
        let within_and_beyond = [(1, 0), (3, 2_500_000), (4, 0), (1, 2_500_001)];
        assert_eq!(within_and_beyond.map(of_window), [true, true, false, false]);
        assert!(holds(Synchronous::Normal, &[], 20, u64::MAX));
    }

    #[test]
    fn a_state_tells_where_it_was_and_what_is_missing() {
        let cut = cut();
        let (verdict, lost_age_ns) = (CrashVerdict::Lost(17), Some(12_345_678));
        let state = StateResult { state: 12, cut: Some(cut), verdict, stock: None, lost_age_ns };
        let expected = "state 12, cut (flush) behind entry 7, 1 under way, kept None of 3 writes: LOST transactions 18 to \
                        20, which were acknowledged; the first of those that are gone 12.3 ms before the cut";
        assert_eq!(state.to_string(), expected);
    }
}
