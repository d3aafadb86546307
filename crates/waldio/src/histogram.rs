//! A histogram of durations that many threads fill without a lock.
//!
//! Each power of two of nanoseconds is split into 16 buckets, so a percentile is at most 1/16 (6.25 %) above the
//! true one. 640 buckets reach 2^40 ns, 18 minutes.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

const BITS: u32 = 4;
const SPLIT: usize = 1 << BITS;
const BUCKETS: usize = 640;

/// Counts of durations.
#[derive(Debug)]
pub struct Histogram {
    counts: Box<[AtomicU64]>,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { counts: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect() }
    }
}

impl Histogram {
    /// Counts one duration.
    pub fn record(&self, duration: Duration) {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket_of(nanoseconds)].fetch_add(1, Relaxed);
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Relaxed)).sum()
    }

    /// The upper edge of the bucket in which the given share (in 1/1000) of the durations ends, in nanoseconds;
    /// `None` while there are none.
    pub fn percentile_nanoseconds(&self, per_mille: u64) -> Option<u64> {
        let count = self.count();
        let rank = (count * per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        self.counts
            .iter()
            .position(|bucket| {
                seen += bucket.load(Relaxed);
                seen >= rank
            })
            .map(upper_edge)
    }
}

fn bucket_of(nanoseconds: u64) -> usize {
    if nanoseconds < SPLIT as u64 {
        return usize::try_from(nanoseconds).unwrap_or(0);
    }
    let exponent = 63 - nanoseconds.leading_zeros();
    let within = usize::try_from((nanoseconds >> (exponent - BITS)) & (SPLIT as u64 - 1)).unwrap_or(0);
    (((exponent - BITS + 1) as usize) * SPLIT + within).min(BUCKETS - 1)
}

fn upper_edge(bucket: usize) -> u64 {
    if bucket < SPLIT {
        return bucket as u64;
    }
    let (power, within) = (bucket / SPLIT - 1, (bucket % SPLIT) as u64);
    ((SPLIT as u64 + within + 1) << power) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_duration_lies_in_its_bucket_within_a_sixteenth() {
        for nanoseconds in [0, 1, 15, 16, 17, 31, 32, 1000, 123_456, 1_000_000_007] {
            let edge = upper_edge(bucket_of(nanoseconds));
            assert!(edge >= nanoseconds && edge - nanoseconds <= nanoseconds / 16, "{nanoseconds} -> {edge}");
        }
    }

    #[test]
    fn percentiles_of_a_known_set() {
        let histogram = Histogram::default();
        assert_eq!(histogram.percentile_nanoseconds(500), None);
        for microseconds in 1..=100 {
            histogram.record(Duration::from_micros(microseconds));
        }
        let p50 = histogram.percentile_nanoseconds(500).unwrap();
        assert!((50_000..=53_200).contains(&p50), "{p50}");
        let p99 = histogram.percentile_nanoseconds(990).unwrap();
        assert!((99_000..=105_300).contains(&p99), "{p99}");
        histogram.record(Duration::MAX);
        assert!(histogram.percentile_nanoseconds(1000).is_some());
    }
}
