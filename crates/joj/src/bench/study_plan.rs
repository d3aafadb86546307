//! Which rows the parts of `--waldio-study` have.

use joj_analysis::durability::Durability;
use joj_analysis::initialisation::{Approach, InitialisationKey};
use joj_analysis::key::Word;
use joj_analysis::pattern::{Pattern, PatternKey};
use joj_analysis::study::StudyPart;

use crate::bench::initialisation_run::OVERWRITES_MAX;
use crate::bench::pattern_run::COMMITS_MAX;

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

/// How many rows a part has.
pub fn row_count(part: StudyPart) -> usize {
    match part {
        StudyPart::Init => initialisation_keys().len(),
        StudyPart::Alignment => pattern_keys().len(),
    }
}

/// Steps of progress for `parts` in `runs` rounds: the rows, and the disk's limit once a round.
pub fn steps(parts: &[StudyPart], runs: u32) -> usize {
    let rounds = usize::try_from(runs).unwrap_or(1);
    parts.iter().map(|part| rounds * (row_count(*part) + 1)).sum()
}
