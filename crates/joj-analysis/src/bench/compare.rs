//! Two results side by side: ratios of medians, and which conditions differ.
//!
//! A row's interval tells how its runs differ within one measurement, not what the disk was like in it. That the disk's own limit
//! tells, which is measured beside the rows: a row counts as another one only where its speed and its share of the limit both say so,
//! in the same direction.

use crate::bench::document::{Document, RunPlan};
use crate::bench::environment::conditions;
use crate::bench::key::RowKey;
use crate::bench::many_writers::{ContendedKey, ContendedRow, ContendedSummary};
use crate::bench::row::Row;
use crate::statistics::Estimate;

/// By how much the disk's limit has to differ to be told among the conditions.
const LIMIT_MOVES_MIN: f64 = 1.05;

/// A condition with a different value in each result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What it is.
    pub what: String,
    /// In the first result.
    pub first: String,
    /// In the second.
    pub second: String,
}

/// Whether two measurements of a row differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// They do.
    Differs,
    /// The intervals have a value in common.
    Overlap,
    /// Measured in shares of the disk's limit they do not, or in the other direction.
    DiskMoved,
    /// One of them has a single run or two: their intervals tell of no difference.
    FewRuns,
}

/// How fast a row was in each result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speeds {
    /// Transactions or commits per second in the first result.
    pub first: Estimate,
    /// And in the second.
    pub second: Estimate,
    /// Second median by first.
    pub ratio: f64,
    /// The same of the shares of the disk's limit.
    pub share_ratio: Option<f64>,
    /// Whether the two differ by more than chance.
    pub verdict: Verdict,
}

/// A row that both results have.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// What was measured.
    pub key: RowKey,
    /// Transactions per second.
    pub speeds: Speeds,
    /// Median latency of the second by that of the first.
    pub latency_ratio: Option<f64>,
}

/// A contended row that both results have.
#[derive(Debug, Clone, PartialEq)]
pub struct ContendedPair {
    /// What was measured.
    pub key: ContendedKey,
    /// Commits per second.
    pub speeds: Speeds,
    /// Median of the longest waits of the second by that of the first.
    pub worst_wait_ratio: Option<f64>,
}

/// What two results say about each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Conditions that differ.
    pub differences: Vec<Difference>,
    /// Rows of both, in the first's order.
    pub pairs: Vec<Pair>,
    /// Contended rows of both, in the first's order.
    pub contended: Vec<ContendedPair>,
    /// The disk's limit, second by first.
    pub limit_ratio: Option<f64>,
    /// Rows that one of them lacks, or that failed in one, with which and why.
    pub unpaired: Vec<(String, Alone)>,
}

/// Why a row has no partner in the other result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alone {
    /// The second has none of its name.
    OnlyFirst,
    /// The first has none.
    OnlySecond,
    /// It failed in the first, or in both.
    FailedInFirst,
    /// It failed in the second.
    FailedInSecond,
}

impl Alone {
    /// As a reader is told.
    pub fn text(self) -> &'static str {
        match self {
            Alone::OnlyFirst => "only in the first",
            Alone::OnlySecond => "only in the second",
            Alone::FailedInFirst => "FAILED in the first",
            Alone::FailedInSecond => "FAILED in the second",
        }
    }
}

/// What a threshold says of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Rows below it, with their ratios, and what the second lacks.
    pub fallen: Vec<(String, String)>,
    /// Rows that could have been below it.
    pub judged: usize,
}

impl Comparison {
    /// Which rows of the second have fallen below `ratio_min` of the first: their speed and their share of the disk's limit, by
    /// more than chance. So has a row of the first that the second lacks, or that failed there.
    pub fn judge(&self, ratio_min: f64) -> Judgement {
        let pairs = self.pairs.iter().map(|pair| (pair.key.to_string(), pair.speeds));
        let contended = self.contended.iter().map(|pair| (pair.key.to_string(), pair.speeds));
        let sound = pairs.chain(contended).filter(|(_, speeds)| speeds.verdict != Verdict::FewRuns);
        let sound: Vec<(String, Speeds)> = sound.collect();
        let fallen = sound.iter().filter(|(_, speeds)| {
            let kindest =
                speeds.share_ratio.map_or(speeds.ratio, |share_ratio| share_ratio.max(speeds.ratio));
            speeds.verdict == Verdict::Differs && kindest < ratio_min
        });
        let fallen = fallen.map(|(key, speeds)| (key.clone(), format!("{:.2}", speeds.ratio)));
        let missing = self.unpaired.iter();
        let missing = missing.filter(|(_, why)| matches!(why, Alone::OnlyFirst | Alone::FailedInSecond));
        let missing = missing.map(|(key, why)| (key.clone(), why.text().to_owned()));
        Judgement { fallen: fallen.chain(missing).collect(), judged: sound.len() }
    }
}

fn speed(row: &Row) -> Option<Estimate> {
    row.summary.as_ref().filter(|_| row.failure.is_none()).map(|summary| summary.transactions_per_s)
}

fn median_latency(row: &Row) -> f64 {
    row.summary.as_ref().map_or(0.0, |summary| summary.latency.p50_ns as f64)
}

/// Compares two speeds, and their shares of the disk's limit.
fn speeds(first: Estimate, second: Estimate, limit_ratio: Option<f64>) -> Speeds {
    let ratio = second.median / first.median;
    let share_ratio = limit_ratio.map(|limit_ratio| ratio / limit_ratio);
    let agrees = |limit_ratio: f64| {
        let shares = second.scaled(1.0 / limit_ratio);
        !first.overlaps(&shares) && (shares.median > first.median) == (second.median > first.median)
    };
    let verdict = if first.overlaps(&second) {
        Verdict::Overlap
    } else if first.has_few_samples() || second.has_few_samples() {
        Verdict::FewRuns
    } else if limit_ratio.is_none_or(agrees) {
        Verdict::Differs
    } else {
        Verdict::DiskMoved
    };
    Speeds { first, second, ratio, share_ratio, verdict }
}

fn pair(first_row: &Row, second_row: &Row, limit_ratio: Option<f64>) -> Option<Pair> {
    let (first, second) = (speed(first_row)?, speed(second_row)?);
    let latency_ratio = median_latency(second_row) / median_latency(first_row);
    Some(Pair {
        key: first_row.key.clone(),
        speeds: speeds(first, second, limit_ratio),
        latency_ratio: latency_ratio.is_finite().then_some(latency_ratio),
    })
}

fn sound(row: &ContendedRow) -> Option<&ContendedSummary> {
    row.summary.as_ref().filter(|_| row.failure.is_none())
}

fn contended_pair(
    first_row: &ContendedRow,
    second_row: &ContendedRow,
    limit_ratio: Option<f64>,
) -> Option<ContendedPair> {
    let (first, second) = (sound(first_row)?, sound(second_row)?);
    let waits = first.worst_wait_ns.zip(second.worst_wait_ns);
    Some(ContendedPair {
        key: first_row.key.clone(),
        speeds: speeds(first.commits_per_s, second.commits_per_s, limit_ratio),
        worst_wait_ratio: waits
            .map(|(before, after)| after.median / before.median)
            .filter(|ratio| ratio.is_finite()),
    })
}

/// Pairs rows with equal keys; what stays alone, or cannot be used, goes to `unpaired` with the reason.
fn pair_up<R, K: PartialEq + ToString, P>(
    first: &[R],
    second: &[R],
    key: impl Fn(&R) -> &K,
    is_sound: impl Fn(&R) -> bool,
    pair: impl Fn(&R, &R) -> Option<P>,
    unpaired: &mut Vec<(String, Alone)>,
) -> Vec<P> {
    let mut pairs = Vec::new();
    for row in first {
        match second.iter().find(|other| key(other) == key(row)) {
            None => unpaired.push((key(row).to_string(), Alone::OnlyFirst)),
            Some(other) => match pair(row, other) {
                Some(found) => pairs.push(found),
                None if is_sound(row) => unpaired.push((key(row).to_string(), Alone::FailedInSecond)),
                None => unpaired.push((key(row).to_string(), Alone::FailedInFirst)),
            },
        }
    }
    let extra = second.iter().filter(|row| first.iter().all(|other| key(other) != key(row)));
    unpaired.extend(extra.map(|row| (key(row).to_string(), Alone::OnlySecond)));
    pairs
}

fn differences(first: &Document, second: &Document) -> Vec<Difference> {
    let ours = conditions(&first.environment, &first.builds);
    let theirs = conditions(&second.environment, &second.builds);
    let find = |list: &[(String, String)], what: &str| {
        let found = list.iter().find(|(name, _)| name == what);
        found.map_or_else(|| "absent".to_owned(), |(_, value)| value.clone())
    };
    let mut names: Vec<&String> = ours.iter().map(|(name, _)| name).collect();
    names.extend(theirs.iter().map(|(name, _)| name).filter(|name| find(&ours, name) == "absent"));
    let all = names.into_iter().map(|name| Difference {
        what: name.clone(),
        first: find(&ours, name),
        second: find(&theirs, name),
    });
    let mut list: Vec<Difference> = all.filter(|difference| difference.first != difference.second).collect();
    if first.plan.transactions != second.plan.transactions {
        list.push(Difference {
            what: "transactions per run".to_owned(),
            first: first.plan.transactions.to_string(),
            second: second.plan.transactions.to_string(),
        });
    }
    if first.plan.seconds.zip(second.plan.seconds).is_some_and(|(first, second)| first != second) {
        let words = |plan: &RunPlan| plan.seconds.map(|seconds| seconds.to_string()).unwrap_or_default();
        list.push(Difference {
            what: "seconds per run".to_owned(),
            first: words(&first.plan),
            second: words(&second.plan),
        });
    }
    list
}

/// Compares `second` with `first`; ratios above 1 mean that the second is faster.
pub fn compare(first: &Document, second: &Document) -> Comparison {
    let mut unpaired = Vec::new();
    let limits = limit(first).zip(limit(second));
    let limit_ratio = limits.map(|(before, after)| after.median / before.median);
    let of_one = |one: &Row, other: &Row| pair(one, other, limit_ratio);
    let is_sound = |row: &Row| speed(row).is_some();
    let pairs = pair_up(&first.rows, &second.rows, |row| &row.key, is_sound, of_one, &mut unpaired);
    let beside = |one: &ContendedRow, other: &ContendedRow| contended_pair(one, other, limit_ratio);
    let is_sound = |row: &ContendedRow| sound(row).is_some();
    let contended =
        pair_up(&first.contended, &second.contended, |row| &row.key, is_sound, beside, &mut unpaired);
    let mut differences = differences(first, second);
    differences.extend(limits.filter(|(before, after)| has_moved(before, after)).map(|(before, after)| {
        let [first, second] = [before, after].map(|limit| format!("{:.0}", limit.median));
        Difference { what: "the disk's own limit, durable writes/s".to_owned(), first, second }
    }));
    Comparison { differences, pairs, contended, limit_ratio, unpaired }
}

fn limit(document: &Document) -> Option<Estimate> {
    document.best_limit()?.operations_per_s
}

/// Whether the disk was another one, as it were.
fn has_moved(before: &Estimate, after: &Estimate) -> bool {
    let ratio = after.median / before.median;
    !before.overlaps(after) && !(1.0 / LIMIT_MOVES_MIN..LIMIT_MOVES_MIN).contains(&ratio)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::document::tests::{contended, document};
    use crate::bench::key::{JournalMode, LogState};
    use crate::bench::row::tests::{key, row};

    #[test]
    fn equal_results_differ_in_nothing() {
        let comparison = compare(&document(), &document());
        assert_eq!((comparison.differences.len(), comparison.unpaired.len()), (0, 0));
        assert_eq!(comparison.limit_ratio, Some(1.0));
        assert!(
            comparison
                .pairs
                .iter()
                .all(|pair| pair.speeds.verdict == Verdict::Overlap && pair.speeds.ratio == 1.0)
        );
    }

    #[test]
    fn faster_rows_and_other_conditions_are_named() {
        let mut second = document();
        second.environment.kernel = "7.1".to_owned();
        second.plan.transactions = 20;
        let summary = second.rows[0].summary.as_mut().unwrap();
        summary.transactions_per_s = Estimate::of(&[980.0, 1_000.0, 1_020.0]).unwrap();
        let comparison = compare(&document(), &second);
        let names: Vec<&str> = comparison.differences.iter().map(|item| item.what.as_str()).collect();
        assert_eq!(names, ["kernel", "transactions per run"]);
        assert!((comparison.pairs[0].speeds.ratio - 2.0).abs() < 0.01);
        assert_eq!(comparison.pairs[0].speeds.verdict, Verdict::Differs);
        assert_eq!(comparison.pairs[1].speeds.verdict, Verdict::Overlap);
    }

    #[test]
    fn one_run_or_two_make_no_difference() {
        let with_runs = |speeds: &[f64]| {
            let mut document = document();
            let summary = document.rows[0].summary.as_mut().unwrap();
            summary.transactions_per_s = Estimate::of(speeds).unwrap();
            document
        };
        let verdict = |first: &[f64], second: &[f64]| {
            compare(&with_runs(first), &with_runs(second)).pairs[0].speeds.verdict
        };
        assert_eq!(verdict(&[66.6], &[232.0]), Verdict::FewRuns);
        assert_eq!(verdict(&[60.0, 66.6], &[230.0, 231.0, 232.0]), Verdict::FewRuns);
        assert_eq!(verdict(&[60.0, 66.6, 70.0], &[230.0, 231.0, 232.0]), Verdict::Differs);
    }

    /// The same command twice, on a disk that was 1.91 times as fast the second time.
    #[test]
    fn a_row_that_moved_with_the_disk_does_not_differ() {
        let with_speeds = |limit: f64, row: f64| {
            let mut document = document();
            let around = |speed: f64| Estimate::of(&[speed * 0.99, speed, speed * 1.01]).unwrap();
            document.limits[0].operations_per_s = Some(around(limit));
            document.rows[0].summary.as_mut().unwrap().transactions_per_s = around(row);
            document
        };
        let compared = |limit, row| {
            let comparison = compare(&with_speeds(10_000.0, 1_000.0), &with_speeds(limit, row));
            let pair = &comparison.pairs[0];
            (
                pair.speeds.verdict,
                (pair.speeds.share_ratio.unwrap() * 100.0).round(),
                comparison.differences.len(),
            )
        };
        assert_eq!(compared(19_100.0, 1_800.0), (Verdict::DiskMoved, 94.0, 1));
        assert_eq!(compared(19_100.0, 1_910.0), (Verdict::DiskMoved, 100.0, 1));
        assert_eq!(compared(19_100.0, 3_000.0), (Verdict::Differs, 157.0, 1), "faster than the disk became");
        assert_eq!(compared(19_100.0, 800.0), (Verdict::Differs, 42.0, 1));
        assert_eq!(compared(10_100.0, 1_800.0), (Verdict::Differs, 178.0, 0));
        assert_eq!(compared(10_100.0, 1_005.0), (Verdict::Overlap, 100.0, 0));
    }

    #[test]
    fn contended_rows_are_paired_by_writers_and_mode() {
        let mut second = contended();
        second.plan.seconds = Some(10.0);
        let summary = second.contended[1].summary.as_mut().unwrap();
        summary.commits_per_s = Estimate::of(&[1_790.0, 1_800.0, 1_810.0]).unwrap();
        summary.worst_wait_ns = Estimate::of(&[4_000.0]);
        second.contended[0].key.writers = 3;
        let comparison = compare(&contended(), &second);
        assert_eq!(comparison.differences.len(), 1);
        assert_eq!((comparison.contended.len(), comparison.unpaired.len()), (1, 2));
        let pair = &comparison.contended[0];
        assert!((pair.speeds.ratio - 2.0).abs() < 0.01 && pair.speeds.verdict == Verdict::Differs);
        assert!((pair.worst_wait_ratio.unwrap() - 0.5).abs() < 0.01);
    }

    #[test]
    fn rows_without_a_partner_are_listed_with_the_reason() {
        let (mut first, mut second) = (document(), document());
        first.rows.push(row(key(JournalMode::Delete, LogState::None), &[10]));
        second.rows[1].failure = Some("lost a row".to_owned());
        second.rows.push(row(key(JournalMode::Off, LogState::None), &[10]));
        let reasons: Vec<Alone> = compare(&first, &second).unpaired.iter().map(|(_, why)| *why).collect();
        assert_eq!(reasons, [Alone::FailedInSecond, Alone::OnlyFirst, Alone::OnlySecond]);
        let reasons: Vec<Alone> = compare(&second, &first).unpaired.iter().map(|(_, why)| *why).collect();
        assert_eq!(reasons, [Alone::FailedInFirst, Alone::OnlyFirst, Alone::OnlySecond]);
    }

    #[test]
    fn a_threshold_falls_for_what_is_slower_by_more_than_chance_or_is_not_there() {
        let with = |limit: f64, speeds: &[f64]| {
            let mut document = document();
            document.limits[0].operations_per_s =
                Some(Estimate::of(&[limit * 0.99, limit, limit * 1.01]).unwrap());
            document.rows[0].summary.as_mut().unwrap().transactions_per_s = Estimate::of(speeds).unwrap();
            document
        };
        let first = with(10_000.0, &[990.0, 1_000.0, 1_010.0]);
        let judged = |second: &Document| compare(&first, second).judge(0.9);
        let fallen = |limit, speeds: &[f64]| judged(&with(limit, speeds)).fallen.len();
        assert_eq!(fallen(10_000.0, &[840.0, 850.0, 860.0]), 1);
        assert_eq!(fallen(10_000.0, &[910.0, 920.0, 930.0]), 0, "slower, but not by so much");
        assert_eq!(fallen(10_000.0, &[700.0, 850.0, 1_200.0]), 0, "perhaps by chance");
        assert_eq!(fallen(9_000.0, &[840.0, 850.0, 860.0]), 0, "of the limit it is 0.94");
        assert_eq!(fallen(10_000.0, &[1_090.0, 1_100.0, 1_110.0]), 0);
        let rows = first.rows.len() + first.contended.len();
        assert_eq!(judged(&first), Judgement { fallen: Vec::new(), judged: rows });
        let few = judged(&with(10_000.0, &[850.0]));
        assert_eq!((few.fallen.len(), few.judged), (0, rows - 1), "one run judges nothing");
        let mut second = first.clone();
        second.rows[0].failure = Some("lost a row".to_owned());
        assert_eq!(
            judged(&second).fallen,
            [(first.rows[0].key.to_string(), "FAILED in the second".to_owned())]
        );
        second.rows.remove(0);
        assert_eq!(judged(&second).fallen[0].1, "only in the first");
        assert_eq!(compare(&second, &first).judge(0.9).fallen, [], "the first lacks it");
    }
}
