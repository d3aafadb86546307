//! Counts of values by size, in constant memory: percentiles of a trace of any length.

use schemars::JsonSchema;
use serde::Serialize;

/// Sub-buckets of each power of two: a percentile is at most 1/128 too high.
const SUB_BITS: u32 = 7;
const SUBS: usize = 1 << SUB_BITS;
const BUCKETS: usize = (64 - SUB_BITS as usize + 1) * SUBS;

/// Values from 0 to 2^64, counted.
#[derive(Debug, Clone)]
pub struct Histogram {
    counts: Vec<u64>,
    /// The largest value of each bucket: where all of them are equal, a percentile is exact.
    largest: Vec<u64>,
    total: u64,
    sum: u128,
    highest: u64,
}

/// What a histogram says.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Default)]
pub struct Distribution {
    pub values: u64,
    /// Arithmetic mean, exact.
    pub mean: f64,
    /// Half of the values are at most this.
    pub p50: u64,
    /// 90 of 100 values are at most so large.
    pub p90: u64,
    /// 99 of 100 values are at most so large.
    pub p99: u64,
    /// The largest, exact.
    pub highest: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], largest: vec![0; BUCKETS], total: 0, sum: 0, highest: 0 }
    }
}

impl Histogram {
    /// Counts a value.
    pub fn add(&mut self, value: u64) {
        let bucket = bucket(value);
        self.counts[bucket] += 1;
        self.largest[bucket] = self.largest[bucket].max(value);
        self.total += 1;
        self.sum += u128::from(value);
        self.highest = self.highest.max(value);
    }

    /// The value that the given share of all values does not exceed; 0 where there is none.
    pub fn percentile(&self, share: f64) -> u64 {
        let mut left = share * self.total as f64;
        for (index, &count) in self.counts.iter().enumerate() {
            left -= count as f64;
            if count > 0 && left <= 0.0 {
                return self.largest[index];
            }
        }
        self.highest
    }

    /// All of it in a few numbers.
    pub fn distribution(&self) -> Distribution {
        let mean = if self.total == 0 { 0.0 } else { self.sum as f64 / self.total as f64 };
        let [p50, p90, p99] = [0.5, 0.9, 0.99].map(|share| self.percentile(share));
        Distribution { values: self.total, mean, p50, p90, p99, highest: self.highest }
    }
}

fn bucket(value: u64) -> usize {
    let bits = 64 - value.leading_zeros();
    if bits <= SUB_BITS {
        return usize::try_from(value).unwrap_or(0);
    }
    let shift = bits - SUB_BITS - 1;
    let sub = usize::try_from((value >> shift) - (1 << SUB_BITS)).unwrap_or(0);
    (shift as usize + 1) * SUBS + sub
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest value that a bucket can hold.
    fn highest_of(index: usize) -> u64 {
        if index < SUBS {
            return index as u64;
        }
        let (shift, sub) = (index / SUBS - 1, (index % SUBS) as u64);
        let next = u128::from(SUBS as u64 + sub + 1) << shift;
        u64::try_from(next - 1).unwrap_or(u64::MAX)
    }

    #[test]
    fn every_value_lies_in_its_bucket_within_a_32nd() {
        for value in (0..2000).chain([u64::MAX, 1 << 40, (1 << 40) - 1, 123_456_789]) {
            let top = highest_of(bucket(value));
            assert!(top >= value && u128::from(top - value) * 32 <= u128::from(value), "{value}: {top}");
        }
    }

    #[test]
    fn percentiles_are_those_of_the_values() {
        let mut histogram = Histogram::default();
        (1..=1000).for_each(|value| histogram.add(value));
        let found = histogram.distribution();
        assert_eq!((found.values, found.mean, found.highest), (1000, 500.5, 1000));
        let mut equal = Histogram::default();
        [28_672; 9].iter().for_each(|&value| equal.add(value));
        assert_eq!((equal.percentile(0.5), equal.percentile(0.99)), (28_672, 28_672));
        assert!((500..=516).contains(&found.p50) && (990..=1000).contains(&found.p99), "{found:?}");
        assert_eq!(Histogram::default().distribution(), Distribution::default());
    }
}
