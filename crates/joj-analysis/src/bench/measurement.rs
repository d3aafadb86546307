//! Runs of one step without SQLite, and what they amount to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bench::run::Run;
use crate::statistics::Estimate;

/// All runs of a step: one for each round.
#[derive(Debug, Clone, PartialEq, Default, JsonSchema, Serialize, Deserialize)]
pub struct Measurement {
    /// The runs, in the order they were made; `transactions` is how many operations the clock covers.
    pub runs: Vec<Run>,
    /// What they amount to; `null` where there are none.
    pub summary: Option<MeasurementSummary>,
}

/// The runs in one number each: medians over the runs.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct MeasurementSummary {
    /// Operations per second.
    pub operations_per_s: Estimate,
    /// A run's median latency, in nanoseconds.
    pub p50_ns: Estimate,
    /// The latency that 99 % of a run's operations did not exceed, in nanoseconds.
    pub p99_ns: Estimate,
    /// Bytes per operation that the block device wrote, by whomever; like the three below `null` where a run lacks it.
    pub device_bytes: Option<f64>,
    /// Write requests of the device per operation.
    pub device_requests: Option<f64>,
    /// Flushes of the device per operation.
    pub device_flushes: Option<f64>,
    /// Commits of the file system's journal per operation.
    pub journal_commits: Option<f64>,
}

impl Measurement {
    /// Fills in `summary`.
    pub fn summarise(&mut self) {
        let runs = &self.runs;
        let estimate = |value: fn(&Run) -> f64| Estimate::of(&runs.iter().map(value).collect::<Vec<f64>>());
        let per_operation = |value: fn(&Run) -> Option<u64>| {
            let amounts: Option<Vec<f64>> =
                runs.iter().map(|run| value(run).map(|amount| run.per_transaction(amount))).collect();
            Estimate::of(&amounts?).map(|found| found.median)
        };
        let estimates = (
            estimate(Run::transactions_per_s),
            estimate(|run| run.latency.p50_ns as f64),
            estimate(|run| run.latency.p99_ns as f64),
        );
        let (Some(operations_per_s), Some(p50_ns), Some(p99_ns)) = estimates else { return };
        self.summary = Some(MeasurementSummary {
            operations_per_s,
            p50_ns,
            p99_ns,
            device_bytes: per_operation(|run| run.device.map(|device| device.written_bytes)),
            device_requests: per_operation(|run| run.device.map(|device| device.write_requests)),
            device_flushes: per_operation(|run| run.device.and_then(|device| device.flushes)),
            journal_commits: per_operation(|run| run.journal_commits),
        });
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bench::row::tests::run;
    use crate::bench::run::DeviceDelta;

    /// Runs of ten operations each, of so many operations per second.
    pub(crate) fn measurement(speeds: &[u64]) -> Measurement {
        let one = |(round, speed): (u32, &u64)| {
            let device = DeviceDelta { written_bytes: 40_960, write_requests: 10, flushes: None };
            Run { device: Some(device), journal_commits: Some(5), ..run(round, *speed) }
        };
        let mut measurement = Measurement { runs: (0..).zip(speeds).map(one).collect(), summary: None };
        measurement.summarise();
        measurement
    }

    #[test]
    fn a_measurement_is_the_median_of_its_runs_for_each_operation() {
        let found = measurement(&[300, 100, 200]);
        let summary = found.summary.unwrap();
        let operations = found.runs[0].transactions as f64;
        assert!((summary.operations_per_s.median - 200.0).abs() < 1e-6, "{summary:?}");
        assert_eq!(summary.device_bytes, Some(40_960.0 / operations));
        assert_eq!((summary.device_flushes, summary.journal_commits), (None, Some(5.0 / operations)));
    }

    #[test]
    fn what_one_run_lacks_nobody_invents() {
        let mut found = measurement(&[300, 100, 200]);
        found.runs[1].journal_commits = None;
        found.summarise();
        assert_eq!(found.summary.unwrap().journal_commits, None);
        let mut none = Measurement::default();
        none.summarise();
        assert_eq!(none.summary, None);
    }
}
