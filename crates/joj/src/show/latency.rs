//! The distribution of latencies: time to the right on a logarithmic scale, the share of transactions that took
//! no longer upwards, on a scale of nines so that the tail takes as much room as the rest.

use joj_analysis::bench::document::Document;
use joj_analysis::bench::row::Row;
use joj_analysis::statistics::WHOLE;

use crate::show::bars::short_name;
use crate::show::svg::{Anchor, Fill, Svg, fill_of};
use crate::show::text::duration;

const WIDTH: f64 = 450.0;
const PLOT_HEIGHT: f64 = 230.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 44.0;
const AXIS_HEIGHT: f64 = 24.0;
const LEGEND_LINE: f64 = 18.0;
const LEGEND_COLUMNS: usize = 3;

/// The highest share drawn, in parts of 100,000.
const SHARE_MAX: u64 = 99_990;

/// Shares that have a line of their own, with their names.
const SHARES: [(u64, &str); 6] = [
    (0, "0"),
    (50_000, "50 %"),
    (90_000, "90 %"),
    (99_000, "99 %"),
    (99_900, "99.9 %"),
    (SHARE_MAX, "99.99 %"),
];

/// 0 for none, 1 for 90 %, 2 for 99 %: the number of nines.
fn nines(parts: u64) -> f64 {
    -((WHOLE - parts.min(SHARE_MAX)) as f64 / WHOLE as f64).log10()
}

/// A line: its name, its look, its points as (nanoseconds, nines).
struct LatencyCurve {
    name: String,
    fill: Fill,
    points: Vec<(f64, f64)>,
}

/// One plot for each SQLite build among `rows`.
pub fn plots(document: &Document, rows: &[&Row]) -> String {
    let mut libraries: Vec<&str> = rows.iter().map(|row| row.key.library.as_str()).collect();
    libraries.dedup();
    let limit = document.best_limit().filter(|_| rows.iter().any(|row| row.key.is_bound_by_flushes()));
    let mut text = String::new();
    for library in libraries {
        let members = rows.iter().filter(|row| row.key.library == library);
        let mut curves: Vec<LatencyCurve> = members
            .filter(|row| !row.latency_quantiles_ns.is_empty())
            .map(|row| LatencyCurve {
                name: row.key.mode_title(),
                fill: fill_of(&row.key),
                points: points(document, &row.latency_quantiles_ns),
            })
            .collect();
        if curves.is_empty() {
            continue;
        }
        if let Some(limit) = limit {
            let fill = Fill { colour: "#111111", opacity: 1.0 };
            let points = points(document, &limit.latency_quantiles_ns);
            curves.push(LatencyCurve { name: "the disk's limit".to_owned(), fill, points });
        }
        text.push_str(&draw(library, &curves));
    }
    text
}

fn points(document: &Document, quantiles_ns: &[u64]) -> Vec<(f64, f64)> {
    let pairs = document.quantile_parts.iter().zip(quantiles_ns);
    pairs
        .filter(|(parts, _)| **parts <= SHARE_MAX)
        .map(|(parts, latency)| (latency.max(&1).to_owned() as f64, nines(*parts)))
        .collect()
}

fn draw(library: &str, curves: &[LatencyCurve]) -> String {
    let latencies = || curves.iter().flat_map(|curve| &curve.points).map(|point| point.0);
    let from = latencies().fold(f64::INFINITY, f64::min).log10();
    let to = latencies().fold(1.0, f64::max).log10().max(from + 0.5);
    let (bottom, right) = (TOP + PLOT_HEIGHT, WIDTH - RIGHT);
    let x_of = |latency: f64| LEFT + (right - LEFT) * (latency.log10() - from) / (to - from);
    let y_of = |nines_up: f64| bottom - PLOT_HEIGHT * nines_up / nines(SHARE_MAX);
    let legend_lines = curves.len().div_ceil(LEGEND_COLUMNS) as f64;
    let title = format!("Latency, {}", short_name(library));
    let mut svg = Svg::new(WIDTH, bottom + AXIS_HEIGHT + legend_lines * LEGEND_LINE + 10.0, &title);
    svg.text((0.0, 14.0), Anchor::Start, "title", &title);
    svg.text((0.0, 32.0), Anchor::Start, "tick", "share of transactions that took no longer");
    for (parts, name) in SHARES {
        svg.line((LEFT, y_of(nines(parts))), (right, y_of(nines(parts))), "grid");
        svg.text((LEFT - 5.0, y_of(nines(parts)) + 4.0), Anchor::End, "tick", name);
    }
    for (latency, label) in decades(from, to) {
        svg.line((x_of(latency), TOP), (x_of(latency), bottom), "grid");
        if let Some(label) = label {
            svg.text((x_of(latency), bottom + 15.0), Anchor::Middle, "tick", &label);
        }
    }
    for curve in curves {
        let placed: Vec<(f64, f64)> = curve.points.iter().map(|(x, y)| (x_of(*x), y_of(*y))).collect();
        svg.path(&placed, curve.fill);
    }
    for (index, curve) in curves.iter().enumerate() {
        let column = (index % LEGEND_COLUMNS) as f64;
        let x = LEFT + column * (right - LEFT) / LEGEND_COLUMNS as f64;
        let y = bottom + AXIS_HEIGHT + (index / LEGEND_COLUMNS) as f64 * LEGEND_LINE + 8.0;
        svg.path(&[(x, y), (x + 22.0, y)], curve.fill);
        svg.text((x + 27.0, y + 4.0), Anchor::Start, "tick", &curve.name);
    }
    svg.finish()
}

/// 1, 2 and 5 times powers of ten between two logarithms; labels on the powers, or on all where there are few.
pub fn decades(from: f64, to: f64) -> Vec<(f64, Option<String>)> {
    let is_wide = to - from > 1.6;
    let mut found = Vec::new();
    for power in 0..12 {
        for factor in [1.0, 2.0, 5.0] {
            let latency = factor * 10.0_f64.powi(power);
            if latency.log10() >= from - 1e-9 && latency.log10() <= to + 1e-9 {
                let has_label = !is_wide || factor == 1.0;
                found.push((latency, has_label.then(|| label(latency))));
            }
        }
    }
    found
}

/// `duration` without the digits that a round number does not need.
fn label(latency: f64) -> String {
    let nanoseconds = format!("{latency:.0}").parse().unwrap_or(0);
    let text = duration(nanoseconds);
    let split = text.find(|letter: char| letter.is_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number =
        if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{number} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nines_spread_the_tail() {
        for (parts, expected) in [(0, 0.0), (90_000, 1.0), (99_000, 2.0), (99_900, 3.0), (WHOLE, 4.0)] {
            assert!((nines(parts) - expected).abs() < 1e-9, "{parts}");
        }
    }

    #[test]
    fn axis_labels_are_round() {
        assert_eq!([100.0, 20_000.0, 1e6, 5e8].map(label), ["0.1 us", "20 us", "1 ms", "500 ms"]);
        let labelled = decades(5.0, 6.0).into_iter().filter(|(_, label)| label.is_some()).count();
        assert_eq!(labelled, 4);
    }
}
