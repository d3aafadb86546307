//! Mean, percentiles and maximum of one quantity over all intervals.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::monitor::quantity::Quantity;
use crate::statistics::percentile;

/// What a quantity was like.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SeriesSummary {
    /// Intervals in which it had a value.
    pub samples: usize,
    /// Over all the time: weighted with the intervals' lengths, or with what the quantity is a share of.
    pub mean: f64,
    /// Of the intervals' values, by nearest rank.
    pub p50: f64,
    /// Of the intervals' values, by nearest rank.
    pub p99: f64,
    /// Of the intervals' values.
    pub max: f64,
}

impl SeriesSummary {
    /// Of `values`, each with its weight in the mean. Percentiles and the maximum are only of values that `is_long` says
    /// come from a whole interval, as long as there is one. `None` where there is no value.
    pub fn of(values: &[f64], weights: &[f64], is_long: &[bool]) -> Option<SeriesSummary> {
        let there = || (0..values.len()).filter(|index| !values[*index].is_nan());
        let mut sorted: Vec<f64> =
            there().filter(|index| is_long[*index]).map(|index| values[index]).collect();
        if sorted.is_empty() {
            sorted = there().map(|index| values[index]).collect();
        }
        sorted.sort_by(f64::total_cmp);
        let max = *sorted.last()?;
        let weight = |index: usize| Some(weights[index]).filter(|weight| weight.is_finite()).unwrap_or(0.0);
        let weight_of_all: f64 = there().map(weight).sum();
        let sum: f64 = there().map(|index| values[index] * weight(index)).sum();
        Some(SeriesSummary {
            samples: there().count(),
            mean: if weight_of_all > 0.0 { sum / weight_of_all } else { 0.0 },
            p50: percentile(&sorted, 50_000)?,
            p99: percentile(&sorted, 99_000)?,
            max,
        })
    }

    /// None of it above the most that its quantity can be.
    #[must_use]
    pub fn cut(self, quantity: &Quantity) -> SeriesSummary {
        let [mean, p50, p99, max] =
            [self.mean, self.p50, self.p99, self.max].map(|value| quantity.cut(value));
        SeriesSummary { mean, p50, p99, max, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_weighted_and_the_rest_are_ranks() {
        let values = [10.0, 30.0, f64::NAN, 20.0];
        let summary = SeriesSummary::of(&values, &[1.0, 3.0, 9.0, 0.0], &[true; 4]).unwrap();
        let expected = SeriesSummary { samples: 3, mean: 25.0, p50: 20.0, p99: 30.0, max: 30.0 };
        assert_eq!(summary, expected);
        assert_eq!(SeriesSummary::of(&[f64::NAN], &[1.0], &[true]), None);
        assert_eq!(SeriesSummary::of(&[], &[], &[]), None);
    }

    #[test]
    fn the_rest_of_an_interval_makes_no_maximum() {
        let summary = SeriesSummary::of(&[10.0, 90.0], &[1.0, 0.1], &[true, false]).unwrap();
        assert_eq!((summary.max, summary.samples), (10.0, 2));
        let alone = SeriesSummary::of(&[90.0], &[0.1], &[false]).unwrap();
        assert_eq!((alone.max, alone.mean), (90.0, 90.0));
    }
}
