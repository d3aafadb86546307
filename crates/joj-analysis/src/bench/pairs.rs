//! Runs of two rows side by side: how the one stands to the other where the disk was alike.
//!
//! Rounds are minutes apart and a disk drifts. The two runs of one round are neighbours in time, so their ratio keeps what the drift would
//! hide. But where the disk's own limit moved far between rounds, the disk had other work, perhaps in one of the two runs alone. Such rounds
//! do not count. Where half of them are such, nothing is compared.

use crate::bench::run::Run;
use crate::statistics::Estimate;

/// How far the disk's limit in a round may lie from its median over the rounds, up or down.
pub const LIMIT_MOVE_MAX: f64 = 4.0 / 3.0;

/// For each limit, whether it is near enough to the median of all. `None` counts as near: no limit was measured there.
pub fn alike(limits: &[Option<f64>]) -> Vec<bool> {
    let known: Vec<f64> = limits.iter().copied().flatten().collect();
    let Some(median) = Estimate::of(&known).map(|of_all| of_all.median) else {
        return vec![true; limits.len()];
    };
    let is_near = |limit: f64| limit <= median * LIMIT_MOVE_MAX && limit * LIMIT_MOVE_MAX >= median;
    limits.iter().map(|limit| limit.is_none_or(is_near)).collect()
}

/// True where so few of the rounds were alike that nothing is compared: half of them or less.
pub fn is_refused(alike: &[bool]) -> bool {
    alike.iter().filter(|alike| **alike).count() * 2 <= alike.len()
}

/// The median over the rounds of `value` of the `top` run as a multiple of the `bottom` run's, both of the same round. `None` where they
/// have no round in common, and where the disk [moved](is_refused).
pub fn versus<'a>(
    top: impl IntoIterator<Item = &'a Run>,
    bottom: impl IntoIterator<Item = &'a Run>,
    value: fn(&Run) -> f64,
) -> Option<Estimate> {
    let bottom: Vec<&Run> = bottom.into_iter().collect();
    let pair = |above: &Run| {
        let below = bottom.iter().find(|below| below.round == above.round)?;
        let below = value(below);
        (below > 0.0).then_some((above.limit_per_s, value(above) / below))
    };
    let (limits, ratios): (Vec<Option<f64>>, Vec<f64>) = top.into_iter().filter_map(pair).unzip();
    let alike = alike(&limits);
    if is_refused(&alike) {
        return None;
    }
    let counted: Vec<f64> =
        ratios.into_iter().zip(alike).filter_map(|(ratio, alike)| alike.then_some(ratio)).collect();
    Estimate::of(&counted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::row::tests::run;

    /// The ratio of rounds with these speeds above, 100 below, and these limits.
    fn ratio(rounds: &[(u64, Option<f64>)]) -> Option<(f64, usize)> {
        let with_limit = |speed, round, limit_per_s| Run { limit_per_s, ..run(round, speed) };
        let runs = |speed: &dyn Fn(u64) -> u64| -> Vec<Run> {
            (0..)
                .zip(rounds)
                .map(|(round, (above, limit))| with_limit(speed(*above), round, *limit))
                .collect()
        };
        let (top, bottom) = (runs(&|above| above), runs(&|_| 100));
        versus(&top, bottom.iter().rev(), Run::transactions_per_s).map(|ratio| (ratio.median, ratio.samples))
    }

    #[test]
    fn runs_of_a_round_are_paired_and_those_without_are_dropped() {
        let top = [run(0, 20), run(1, 50), run(2, 10)];
        let bottom = [run(1, 20), run(0, 10), run(3, 1)];
        let found = versus(&top, &bottom, Run::transactions_per_s).unwrap();
        assert_eq!((found.median, found.samples), (2.25, 2));
        assert_eq!(versus(&top, &[], Run::transactions_per_s), None);
        assert_eq!(versus(&top, &bottom, |_| 0.0), None, "no multiple of nothing");
    }

    #[test]
    fn rounds_count_where_the_limit_is_within_a_third_of_its_median() {
        let limit = |limit: f64| Some(limit);
        let steady = [(200, limit(900.0)), (400, limit(1_000.0)), (200, limit(1_300.0))];
        assert_eq!(ratio(&steady), Some((2.0, 3)));
        let slow_once = [(200, limit(1_000.0)), (400, limit(740.0)), (200, limit(1_000.0))];
        assert_eq!(ratio(&slow_once), Some((2.0, 2)));
        let fast_once = [(200, limit(1_000.0)), (400, limit(1_340.0)), (200, limit(1_000.0))];
        assert_eq!(ratio(&fast_once), Some((2.0, 2)));
    }

    #[test]
    fn nothing_is_compared_where_half_of_the_rounds_were_otherwise() {
        let limit = |limit: f64| Some(limit);
        assert_eq!(ratio(&[(200, limit(500.0)), (200, limit(1_000.0)), (200, limit(2_000.0))]), None);
        assert_eq!(ratio(&[(200, limit(1_000.0)), (200, limit(2_000.0))]), None);
        assert_eq!(ratio(&[(200, limit(1_000.0))]), Some((2.0, 1)));
        assert_eq!(ratio(&[(200, None), (400, None)]), Some((3.0, 2)), "no limit was measured");
    }
}
