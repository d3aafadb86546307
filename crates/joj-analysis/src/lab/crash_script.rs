//! The transactions that `joj lab crash` commits, and the rows that each prefix of them leaves.
//!
//!   number   1 2 3 4 5 6 7 8 ...   each changes rows so that no two prefixes have the same
//!   most     one new row           one frame or two
//!   4th of 6 changes rows of three earlier transactions
//!   6th of 9 forty new rows        a transaction of many frames
//! A row has the number of the transaction that wrote it last, and a text that follows from both.

use std::collections::BTreeMap;
use std::fmt::Write;

/// Rows of a large transaction.
const LARGE_ROWS: u64 = 40;
/// From one transaction's first row to the next one's: room for a large one.
const ROWS_MAX: u64 = 64;
/// Commits between two checkpoints that the script asks for.
const CHECKPOINT_COMMITS: u64 = 7;
/// Commits between closing and opening the database.
const REOPEN_COMMITS: u64 = 16;
/// Commits between two pauses.
const PAUSE_COMMITS: u64 = 6;

/// What the writer does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptStep {
    /// Commits the transaction of this number.
    Commit(u64),
    /// Checkpoints, so that the next commit begins the log anew.
    Checkpoint,
    /// Closes the database and opens it again.
    Reopen,
    /// Does nothing for a while: longer than a delayed flush may wait.
    Pause,
}

/// The steps with `commits` commits, numbered from 1 on. Behind a checkpoint and behind a reopening there are commits.
pub fn steps(commits: u64) -> Vec<ScriptStep> {
    let mut steps = Vec::new();
    for number in 1..=commits {
        steps.push(ScriptStep::Commit(number));
        if number % REOPEN_COMMITS == 0 {
            steps.push(ScriptStep::Reopen);
        } else if number % CHECKPOINT_COMMITS == 0 {
            steps.push(ScriptStep::Checkpoint);
        } else if number % PAUSE_COMMITS == 0 {
            steps.push(ScriptStep::Pause);
        }
    }
    steps
}

/// The rows that transaction `number` writes, new ones and old ones.
///
/// # Panics
/// When `number` is zero: transactions are numbered from 1 on.
pub fn rows_of(number: u64) -> Vec<u64> {
    assert!(number > 0, "the first transaction is 1");
    let first = number * ROWS_MAX;
    if number % 9 == 6 {
        return (first..first + LARGE_ROWS).collect();
    }
    if number % 6 == 4 {
        // 4, 10, 16, ...: the one before is no such one, so the row is there; so are those of 1 and of the half.
        return [1, number / 2, number - 1].map(own_row).into_iter().filter(|row| *row < first).collect();
    }
    vec![first]
}

/// A row that transaction `number` made, or that was there before where it made none.
fn own_row(number: u64) -> u64 {
    let made = |number: u64| number % 9 == 6 || number % 6 != 4;
    let maker = (1..=number).rev().find(|number| made(*number)).unwrap_or(1);
    maker * ROWS_MAX
}

/// The text of `row` as transaction `number` writes it: 20 to 819 bytes, none of them like its neighbour's.
pub fn text_of(row: u64, number: u64) -> String {
    let mut text = format!("{row} of {number}: ");
    let end = usize::try_from(20 + (row * 11 + number * 37) % 800).unwrap_or(20);
    let mut state = row.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number;
    while text.len() < end {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let _ = write!(text, "{:08x}", state >> 32);
    }
    text
}

/// All steps with `commits` commits, and all that they write, as text: two scripts are the same where this is.
pub fn transactions(commits: u64) -> String {
    let mut text = format!("{:?}\n", steps(commits));
    for number in 1..=commits {
        for row in rows_of(number) {
            let _ = writeln!(text, "{row} {}", text_of(row, number));
        }
    }
    text
}

/// The rows behind the first `commits` transactions: each with the number of its last writer.
pub fn rows_after(commits: u64) -> BTreeMap<u64, u64> {
    (1..=commits).flat_map(|number| rows_of(number).into_iter().map(move |row| (row, number))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_transaction_changes_what_is_there_and_each_prefix_is_another() {
        let mut rows = BTreeMap::new();
        for number in 1..=200 {
            let written = rows_of(number);
            assert!(!written.is_empty(), "transaction {number} changes nothing");
            let first = number * ROWS_MAX;
            for row in written {
                assert!(
                    row >= first || rows.contains_key(&row),
                    "{number} changes row {row}, which is not there"
                );
                rows.insert(row, number);
            }
            assert_eq!(rows, rows_after(number));
            assert_eq!(rows.values().max(), Some(&number));
        }
    }

    #[test]
    fn forty_commits_have_all_kinds_of_steps() {
        let steps = steps(40);
        let count = |wanted: fn(&ScriptStep) -> bool| steps.iter().filter(|step| wanted(step)).count();
        assert_eq!(count(|step| matches!(step, ScriptStep::Commit(_))), 40);
        assert_eq!(
            [ScriptStep::Checkpoint, ScriptStep::Reopen, ScriptStep::Pause]
                .map(|wanted| steps.iter().filter(|step| **step == wanted).count()),
            [5, 2, 6]
        );
        assert!((1..=40).any(|number| rows_of(number).len() > 30));
        assert!(matches!(steps.last(), Some(ScriptStep::Commit(_))));
    }

    #[test]
    fn no_two_rows_have_the_same_text() {
        let texts: BTreeSet<String> =
            (1..100).flat_map(|row| (1..20).map(move |number| text_of(row, number))).collect();
        assert_eq!(texts.len(), 99 * 19);
        assert!(texts.iter().all(|text| (8..840).contains(&text.len())));
    }
}
