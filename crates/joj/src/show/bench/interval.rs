//! Intervals of rows: as cells of a table, and what a ratio of two rows says.

use joj_analysis::statistics::Estimate;

use crate::show::paper::Mood;
use crate::show::text::number;

/// The ends of an interval.
pub fn interval(estimate: &Estimate) -> String {
    format!("{}-{}", number(estimate.low), number(estimate.high))
}

/// What the column of such intervals is called: of few runs it goes from the slowest to the fastest.
pub fn interval_title(estimate: Option<&Estimate>) -> String {
    match estimate {
        None => "interval".to_owned(),
        Some(found) if found.is_range() => "min-max".to_owned(),
        Some(found) => format!("{:.0} % int.", found.confidence * 100.0),
    }
}

/// What overlaps with 1 may be chance, as a ratio of fewer than three runs may, and a few percent either way nobody feels.
pub fn ratio_mood(ratio: Option<Estimate>) -> Mood {
    match ratio.filter(|ratio| !ratio.has_few_samples()) {
        Some(slower) if slower.median < 0.97 && slower.high < 1.0 => Mood::Bad,
        Some(faster) if faster.median > 1.03 && faster.low > 1.0 => Mood::Good,
        _ => Mood::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_difference_of_three_runs_has_a_colour() {
        let mood = |ratios: &[f64]| ratio_mood(Estimate::of(ratios));
        assert_eq!(mood(&[1.2, 1.3, 1.4]), Mood::Good);
        assert_eq!(mood(&[0.7, 0.8, 0.9]), Mood::Bad);
        assert_eq!([mood(&[0.9, 1.3, 1.4]), mood(&[1.3, 1.4]), mood(&[1.01, 1.02, 1.03])], [Mood::Plain; 3]);
    }
}
