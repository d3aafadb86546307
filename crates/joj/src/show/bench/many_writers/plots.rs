//! What many writers did, over their number: throughput from zero up, the longest wait on a logarithmic scale. The
//! numbers of writers stand at their logarithm, so that doubling them is always the same step.

use joj_analysis::bench::key::{JournalMode, Word};
use joj_analysis::bench::many_writers::{ContendedRow, ContendedSummary};
use joj_analysis::statistics::Estimate;

use crate::show::latency::decades;
use crate::show::svg::{Anchor, Fill, Svg, colour_of, round_steps};
use crate::show::text::number;

const WIDTH: f64 = 450.0;
const HEIGHT: f64 = 330.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 62.0;

/// One mode's estimates by number of writers, ascending.
struct Curve {
    mode: JournalMode,
    points: Vec<(u32, Estimate)>,
}

/// Values to heights: from `low` at the bottom to `high` at the top.
struct Scale {
    low: f64,
    high: f64,
    is_logarithmic: bool,
    /// Lines across the plot with their labels.
    ticks: Vec<(f64, Option<String>)>,
}

impl Scale {
    fn y_of(&self, value: f64) -> f64 {
        let place = |value: f64| if self.is_logarithmic { value.max(1.0).log10() } else { value };
        let share = (place(value) - place(self.low)) / (place(self.high) - place(self.low));
        HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * share
    }

    fn linear(largest: f64) -> Scale {
        let steps = round_steps(largest);
        let high = steps.last().copied().unwrap_or(1.0);
        let ticks = steps.into_iter().map(|step| (step, Some(number(step)))).collect();
        Scale { low: 0.0, high, is_logarithmic: false, ticks }
    }

    /// Of nanoseconds, whole powers of ten around what there is.
    fn logarithmic(smallest: f64, largest: f64) -> Scale {
        let low = smallest.max(1.0).log10().floor();
        let high = largest.max(1.0).log10().ceil().max(low + 1.0);
        let ticks = decades(low, high);
        Scale { low: 10.0_f64.powf(low), high: 10.0_f64.powf(high), is_logarithmic: true, ticks }
    }
}

/// Both plots of one group's rows.
pub fn of_group(rows: &[&ContendedRow]) -> String {
    let speeds = curves(rows, |summary| Some(summary.commits_per_s));
    let waits = curves(rows, |summary| summary.worst_wait_ns);
    let largest = |curves: &[Curve]| ends(curves).map(|found| found.high).fold(0.0, f64::max);
    let smallest = |curves: &[Curve]| ends(curves).map(|found| found.low).fold(f64::INFINITY, f64::min);
    let speed_scale = Scale::linear(largest(&speeds));
    let wait_scale = Scale::logarithmic(smallest(&waits).min(1e9), largest(&waits));
    format!(
        "{}{}",
        draw("Commits per second, all writers together", &speeds, &speed_scale),
        draw("Longest wait of a run", &waits, &wait_scale)
    )
}

fn ends(curves: &[Curve]) -> impl Iterator<Item = &Estimate> {
    curves.iter().flat_map(|curve| &curve.points).map(|(_, found)| found)
}

fn curves(rows: &[&ContendedRow], value: impl Fn(&ContendedSummary) -> Option<Estimate>) -> Vec<Curve> {
    let of_mode = |mode: JournalMode| {
        let rows = rows.iter().filter(|row| row.key.mode == mode);
        let points = rows.filter_map(|row| Some((row.key.writers, value(row.summary.as_ref()?)?)));
        Curve { mode, points: points.collect() }
    };
    let all = [JournalMode::Wal, JournalMode::Waldio, JournalMode::Bounded].map(of_mode);
    all.into_iter().filter(|curve| !curve.points.is_empty()).collect()
}

fn draw(title: &str, curves: &[Curve], scale: &Scale) -> String {
    let mut counts: Vec<u32> =
        curves.iter().flat_map(|curve| &curve.points).map(|(writers, _)| *writers).collect();
    counts.sort_unstable();
    counts.dedup();
    let (Some(least), Some(most)) = (counts.first(), counts.last()) else { return String::new() };
    let place = |writers: u32| f64::from(writers).log2();
    let span = (place(*most) - place(*least)).max(f64::MIN_POSITIVE);
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    // A lone number of writers stands in the middle.
    let x_of = |writers: u32| match counts.len() {
        1 => (LEFT + right) / 2.0,
        _ => LEFT + 10.0 + (right - LEFT - 20.0) * (place(writers) - place(*least)) / span,
    };
    let mut svg = Svg::new(WIDTH, HEIGHT, title);
    svg.text((0.0, 14.0), Anchor::Start, "title", title);
    for (value, label) in &scale.ticks {
        svg.line((LEFT, scale.y_of(*value)), (right, scale.y_of(*value)), "grid");
        if let Some(label) = label {
            svg.text((LEFT - 6.0, scale.y_of(*value) + 4.0), Anchor::End, "tick", label);
        }
    }
    for writers in &counts {
        svg.line((x_of(*writers), TOP), (x_of(*writers), bottom), "grid");
        svg.text((x_of(*writers), bottom + 16.0), Anchor::Middle, "tick", &writers.to_string());
    }
    svg.text(((LEFT + right) / 2.0, bottom + 32.0), Anchor::Middle, "tick", "writers");
    for (index, curve) in curves.iter().enumerate() {
        let fill = Fill { colour: colour_of(curve.mode), opacity: 1.0 };
        draw_curve(&mut svg, curve, fill, scale, &x_of);
        let x = LEFT + 110.0 * index as f64;
        let name = if curve.mode.uses_waldio() { curve.mode.word() } else { "stock WAL" };
        svg.path(&[(x, HEIGHT - 10.0), (x + 22.0, HEIGHT - 10.0)], fill);
        svg.text((x + 27.0, HEIGHT - 6.0), Anchor::Start, "tick", name);
    }
    svg.finish()
}

/// The line through the medians, and each interval as a whisker.
fn draw_curve(svg: &mut Svg, curve: &Curve, fill: Fill, scale: &Scale, x_of: &impl Fn(u32) -> f64) {
    let placed: Vec<(f64, f64)> =
        curve.points.iter().map(|(writers, found)| (x_of(*writers), scale.y_of(found.median))).collect();
    svg.path(&placed, fill);
    for ((_, found), (x, y)) in curve.points.iter().zip(&placed) {
        svg.bar((x - 2.5, y - 2.5), 5.0, 5.0, fill);
        let (low, high) = (scale.y_of(found.low), scale.y_of(found.high));
        // In the mode's colour, and a little apart: two black ones at one place would not tell whose they are.
        let x = x + if curve.mode.uses_waldio() { 2.0 } else { -2.0 };
        svg.path(&[(x, low), (x, high)], fill);
        for edge in [low, high] {
            svg.path(&[(x - 3.0, edge), (x + 3.0, edge)], fill);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_reach_from_the_bottom_to_the_top() {
        let speeds = Scale::linear(4_321.0);
        assert_eq!((speeds.low, speeds.high), (0.0, 5_000.0));
        let waits = Scale::logarithmic(3e6, 4e9);
        assert!((waits.low - 1e6).abs() < 1.0 && (waits.high - 1e10).abs() < 1e4);
        for scale in [speeds, waits] {
            assert!((scale.y_of(scale.low) - (HEIGHT - BOTTOM)).abs() < 1e-6);
            assert!((scale.y_of(scale.high) - TOP).abs() < 1e-6);
            assert!(scale.ticks.len() > 2);
        }
    }
}
