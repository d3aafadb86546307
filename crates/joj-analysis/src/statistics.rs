//! Order statistics: medians, their intervals, percentiles by rank.
//!
//! Nothing here assumes a distribution: latencies and throughputs of a disk have long tails, and a mean with a
//! standard deviation would describe none of them.
//! Source of the interval: the number of samples below the true median is binomial(n, 1/2), so the k-th smallest
//! and the k-th largest sample enclose it with probability 1 - 2 P(X < k).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The confidence that intervals aim at. With fewer than six samples even the extremes give less.
pub const CONFIDENCE_AIM: f64 = 0.95;

/// Samples from which an interval tells of a difference. That of one sample encloses the true median never, that of two half the time.
const SAMPLES_MIN: usize = 3;

/// Parts that a percentile is given in: 50 % is 50,000, 99.9 % is 99,900.
pub const WHOLE: u64 = 100_000;

/// Percentiles, in parts of [`WHOLE`], that describe a latency distribution in a result file.
/// Every percent, then finer where the tail is.
pub fn quantile_grid() -> Vec<u64> {
    let mut grid: Vec<u64> = (0..=99).map(|percent| percent * 1_000).collect();
    grid.extend((1..=9).map(|tenth| 99_000 + tenth * 100));
    grid.extend([99_950, 99_990, WHOLE]);
    grid
}

/// A median with an interval that encloses the true one with the stated confidence.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Estimate {
    /// The median of the samples.
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Probability, 0 to 1, that the interval encloses the true median.
    pub confidence: f64,
    /// How many samples there were.
    pub samples: usize,
}

impl Estimate {
    /// The median of `values` with its interval; `None` where there is no finite value.
    pub fn of(values: &[f64]) -> Option<Estimate> {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        if sorted.is_empty() {
            return None;
        }
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len();
        let (trim, confidence) = interval_trim(count);
        let middle = count / 2;
        let median =
            if count % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 };
        let (low, high) = (sorted[trim], sorted[count - 1 - trim]);
        Some(Estimate { median, low, high, confidence, samples: count })
    }

    /// True where the interval goes from the least sample to the largest: of so few, nothing is left out.
    pub fn is_range(&self) -> bool {
        interval_trim(self.samples).0 == 0
    }

    /// Half the interval's width as a share of the median; infinite where the median is 0.
    pub fn relative_half_width(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.median.abs()
    }

    /// The same of values that are so many times as large.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Estimate {
        let [median, low, high] = [self.median, self.low, self.high].map(|value| value * factor);
        Estimate { median, low, high, ..*self }
    }

    /// True where there are too few samples to tell of a difference.
    pub fn has_few_samples(&self) -> bool {
        self.samples < SAMPLES_MIN
    }

    /// True where the two intervals have a value in common.
    pub fn overlaps(&self, other: &Estimate) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// How many samples to leave out on each side so that the rest still encloses the median with
/// [`CONFIDENCE_AIM`], and the confidence this gives.
fn interval_trim(count: usize) -> (usize, f64) {
    // 2^-count underflows past about a thousand samples; that many runs nobody makes, but be exact about it.
    let mut probability = 0.5_f64.powf(count as f64);
    let mut below = 0.0;
    let mut best = (0, 1.0 - 2.0 * probability);
    for trim in 0..count.div_ceil(2) {
        below += probability;
        let confidence = 1.0 - 2.0 * below;
        if confidence < CONFIDENCE_AIM {
            break;
        }
        best = (trim, confidence);
        probability *= (count - trim) as f64 / (trim + 1) as f64;
    }
    (best.0, best.1.max(0.0))
}

/// The smallest sample that at least `parts` of [`WHOLE`] of the samples do not exceed (nearest rank).
/// `sorted` is ascending; `None` where it is empty.
pub fn percentile<T: Copy>(sorted: &[T], parts: u64) -> Option<T> {
    assert!(parts <= WHOLE, "a percentile of {parts} parts of {WHOLE}");
    let count = u64::try_from(sorted.len()).ok()?;
    let rank = (count * parts).div_ceil(WHOLE).max(1);
    sorted.get(usize::try_from(rank - 1).ok()?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_few_samples_is_their_range() {
        let of = |count: u32| Estimate::of(&(0..count).map(f64::from).collect::<Vec<_>>()).unwrap();
        let is_whole = |estimate: Estimate| estimate.high - estimate.low == (estimate.samples - 1) as f64;
        for count in 1..30 {
            assert_eq!(of(count).is_range(), is_whole(of(count)), "{count} samples");
        }
    }

    #[test]
    fn median_of_odd_and_even_counts() {
        assert_eq!(Estimate::of(&[3.0, 1.0, 2.0]).unwrap().median, 2.0);
        assert_eq!(Estimate::of(&[4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[f64::NAN]), None);
    }

    /// Known answers: the usual table of order-statistic intervals for the median at 95 %.
    #[test]
    fn interval_has_the_ranks_of_the_binomial_table() {
        for (count, rank_low, confidence) in
            [(5, 1, 0.9375), (6, 1, 0.96875), (9, 2, 0.9609), (10, 2, 0.9785), (20, 6, 0.9586)]
        {
            let values: Vec<f64> = (1..=count).map(f64::from).collect();
            let estimate = Estimate::of(&values).unwrap();
            assert_eq!(estimate.low, f64::from(rank_low), "of {count}");
            assert_eq!(estimate.high, f64::from(count + 1 - rank_low), "of {count}");
            assert!((estimate.confidence - confidence).abs() < 0.0001, "of {count}: {estimate:?}");
        }
    }

    #[test]
    fn one_sample_promises_nothing() {
        let estimate = Estimate::of(&[7.0]).unwrap();
        assert_eq!((estimate.low, estimate.high, estimate.confidence), (7.0, 7.0, 0.0));
    }

    #[test]
    fn percentile_is_the_nearest_rank() {
        let sorted: Vec<u64> = (1..=1000).collect();
        for (parts, expected) in [(0, 1), (50_000, 500), (99_000, 990), (99_900, 999), (WHOLE, 1000)] {
            assert_eq!(percentile(&sorted, parts), Some(expected));
        }
        assert_eq!(percentile(&[5], 50_000), Some(5));
        assert_eq!(percentile::<u64>(&[], 50_000), None);
    }

    #[test]
    fn grid_rises_from_nothing_to_everything() {
        let grid = quantile_grid();
        assert!(grid.is_sorted_by(|left, right| left < right));
        assert_eq!((grid[0], grid[grid.len() - 1]), (0, WHOLE));
    }
}
