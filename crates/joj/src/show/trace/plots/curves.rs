//! Curves of a trace's page: the journal block ratio of its sync calls, and how long requests and calls took.

use joj_analysis::trace::histogram::Distribution;
use joj_analysis::trace::points::Points;
use joj_analysis::trace::summary::Summary;
use joj_analysis::trace::summary::durability::RATIO_STEPS;

use crate::show::latency::decades;
use crate::show::svg::{Anchor, Fill, Svg};
use crate::show::text::duration;
use crate::show::trace::plots::colours::{of_index, of_label};
use crate::show::words::plain;

const WIDTH: f64 = 450.0;
const WIDE: f64 = 920.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 40.0;
const PLOT_HEIGHT: f64 = 190.0;
const AXIS_HEIGHT: f64 = 24.0;
const ROW_HEIGHT: f64 = 22.0;
/// So many kinds of sync calls are drawn; the table has all.
const CALLS_MAX: usize = 16;

/// The frame of a plot whose upward axis is 0 to 1.
fn frame(title: &str, upward: &str, shown: fn(f64) -> String) -> Svg {
    let mut svg = Svg::new(WIDTH, TOP + PLOT_HEIGHT + AXIS_HEIGHT, title);
    svg.text((0.0, 14.0), Anchor::Start, "title", title);
    svg.text((0.0, 30.0), Anchor::Start, "tick", upward);
    for quarter in 0..=4 {
        let value = f64::from(quarter) / 4.0;
        svg.line((LEFT, y_of(value)), (WIDTH - RIGHT, y_of(value)), "grid");
        svg.text((LEFT - 5.0, y_of(value) + 4.0), Anchor::End, "tick", &shown(value));
    }
    svg
}

fn y_of(value: f64) -> f64 {
    TOP + PLOT_HEIGHT * (1.0 - value)
}

fn x_of(share: f64) -> f64 {
    LEFT + (WIDTH - LEFT - RIGHT) * share
}

/// The share of persistence paths with R at most so much; empty without paths.
pub fn ratio_cdf(summary: &Summary) -> String {
    let paths = &summary.persistence;
    if paths.paths == 0 || paths.journal_ratio_cdf.is_empty() {
        return String::new();
    }
    let upward = "share of paths with R at most so much; R = journal / (data + journal)";
    let mut svg = frame("Journal block ratio R", upward, |share| format!("{:.0} %", share * 100.0));
    for quarter in 0..=4 {
        let ratio = f64::from(quarter) / 4.0;
        svg.text((x_of(ratio), TOP + PLOT_HEIGHT + 15.0), Anchor::Middle, "tick", &format!("{ratio}"));
    }
    let mut stairs = vec![(x_of(0.0), y_of(0.0))];
    let mut before = 0.0;
    for (step, share) in paths.journal_ratio_cdf.iter().enumerate() {
        let x = x_of(step as f64 / RATIO_STEPS as f64);
        stairs.extend([(x, y_of(before)), (x, y_of(*share))]);
        before = *share;
    }
    svg.path(&stairs, Fill { colour: of_label("journal"), opacity: 1.0 });
    let mean = paths.journal_ratio_mean;
    svg.line((x_of(mean), TOP), (x_of(mean), TOP + PLOT_HEIGHT), "limit");
    let anchor = if mean > 0.7 { Anchor::End } else { Anchor::Start };
    let beside = if mean > 0.7 { -5.0 } else { 5.0 };
    svg.text((x_of(mean) + beside, TOP + 12.0), anchor, "limit-label", &format!("mean {mean:.2}"));
    svg.finish()
}

/// R of each sync call that wrote, over time; empty without such calls.
pub fn ratio_over_time(points: &Points) -> String {
    let (Some(from_ns), Some(to_ns)) = (
        points.ratios.iter().map(|one| one.time_ns).min(),
        points.ratios.iter().map(|one| one.time_ns).max(),
    ) else {
        return String::new();
    };
    let merged = points.ratios.iter().map(|one| one.calls).max().unwrap_or(1);
    let upward = match merged {
        0 | 1 => "R of each sync call that wrote".to_owned(),
        several => format!("R of sync calls that wrote, the mean of up to {several} neighbours"),
    };
    let mut svg = frame("R over time", &upward, |ratio| format!("{ratio}"));
    let span_ns = to_ns - from_ns;
    for quarter in 0..=4_u32 {
        let share = f64::from(quarter) / 4.0;
        let anchor = if quarter == 4 { Anchor::End } else { Anchor::Middle };
        let offset_ns = u64::try_from(u128::from(span_ns) * u128::from(quarter) / 4).unwrap_or(span_ns);
        let offset = if offset_ns == 0 { "0".to_owned() } else { duration(offset_ns) };
        svg.text((x_of(share), TOP + PLOT_HEIGHT + 15.0), anchor, "tick", &offset);
    }
    for one in &points.ratios {
        let x = x_of((one.time_ns - from_ns) as f64 / span_ns.max(1) as f64);
        svg.circle((x, y_of(one.ratio)), 2.2, "c1", None);
    }
    svg.finish()
}

/// Requests at the device, then sync calls: half took no longer than the high mark, 90 % and 99 % than the lower ones.
pub fn latencies(summary: &Summary) -> String {
    let requests = ["reads", "writes", "flushes"].map(str::to_owned).into_iter();
    let of_requests = requests.zip(&summary.counts.latency_ns);
    let mut rows: Vec<(String, &Distribution, &str)> =
        of_requests.map(|(name, times)| (name, times, of_index(0))).collect();
    let mut calls: Vec<_> = summary.sync_calls.iter().collect();
    calls.sort_by_key(|group| std::cmp::Reverse(group.calls));
    for group in calls.iter().take(CALLS_MAX) {
        rows.push((format!("{}, {}", plain(&group.call), group.file_type), &group.duration_ns, of_index(2)));
    }
    rows.retain(|(_, times, _)| times.values > 0);
    if rows.is_empty() {
        return String::new();
    }
    let lowest = rows.iter().map(|(_, times, _)| times.p50.max(1)).min().unwrap_or(1) as f64;
    let highest = rows.iter().map(|(_, times, _)| times.highest).max().unwrap_or(1) as f64;
    let from = lowest.log10() - 0.1;
    let to = highest.max(1.0).log10().max(from + 0.5) + 0.05;
    let letters = rows.iter().map(|(name, _, _)| name.chars().count()).max().unwrap_or(0);
    let left = letters as f64 * 6.6 + 14.0;
    let right = WIDE - 190.0;
    let x_of =
        |nanoseconds: u64| left + (right - left) * ((nanoseconds.max(1) as f64).log10() - from) / (to - from);
    let bottom = 30.0 + rows.len() as f64 * ROW_HEIGHT;
    let title = "How long requests took at the device, and sync calls in all";
    let mut svg = Svg::new(WIDE, bottom + AXIS_HEIGHT, title);
    svg.text((0.0, 14.0), Anchor::Start, "title", title);
    for (nanoseconds, label) in decades(from, to) {
        let x = left + (right - left) * (nanoseconds.log10() - from) / (to - from);
        svg.line((x, 26.0), (x, bottom), "grid");
        if let Some(label) = label {
            svg.text((x, bottom + 15.0), Anchor::Middle, "tick", &label);
        }
    }
    for (index, (name, times, colour)) in rows.iter().enumerate() {
        let y = 30.0 + (index as f64 + 0.5) * ROW_HEIGHT;
        svg.text((left - 8.0, y + 4.0), Anchor::End, "label", name);
        let start = x_of(times.p50);
        svg.bar((start, y - 1.5), x_of(times.highest) - start, 3.0, Fill { colour, opacity: 0.35 });
        for (nanoseconds, height) in
            [(times.p50, 13.0), (times.p90, 8.0), (times.p99, 8.0), (times.highest, 3.0)]
        {
            svg.bar((x_of(nanoseconds) - 1.5, y - height / 2.0), 3.0, height, Fill { colour, opacity: 1.0 });
        }
        let note = format!("p50 {}, p99 {}", duration(times.p50), duration(times.p99));
        svg.text((right + 12.0, y + 4.0), Anchor::Start, "value", &note);
    }
    svg.finish()
}
