//! Values over the time: lines from zero up, seconds to the right.

use crate::show::svg::{Anchor, Fill, Svg, round_steps};
use crate::show::text::number;

const WIDTH: f64 = 450.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 44.0;
const AXIS_HEIGHT: f64 = 24.0;
const LEGEND_LINE: f64 = 18.0;
const LEGEND_COLUMNS: usize = 3;
/// Of a name in the legend there is room for this many letters.
const LEGEND_LETTERS: usize = 18;
/// Places to the right that a line is drawn at: past that several samples share a pixel.
const PLACES: usize = 360;

/// Okabe and Ito's, told apart with any kind of colour vision.
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#6b6b6b"];

/// A line of the picture: one quantity over time.
#[derive(Debug, Clone)]
pub struct Line<'a> {
    /// As the legend has it.
    pub name: String,
    /// Which colour: the same thing has the same in all plots of a device.
    pub colour: usize,
    /// A value for each sample.
    pub values: &'a [f64],
}

/// The plot; nothing where there is no line with a value. `ends_s`: when each sample ended. `high`: where the scale ends, if
/// not at the largest value.
pub fn plot(title: &str, unit: &str, ends_s: &[f64], lines: &[Line<'_>], high: Option<f64>) -> String {
    let values = lines.iter().flat_map(|line| line.values).filter(|value| value.is_finite());
    let Some(largest) = values.copied().reduce(f64::max) else { return String::new() };
    let steps = round_steps(high.unwrap_or(largest));
    let high = high.or(steps.last().copied()).unwrap_or(1.0);
    let end_s = ends_s.last().copied().unwrap_or(0.0).max(1e-3);
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - AXIS_HEIGHT);
    let x_of = |at_s: f64| LEFT + (right - LEFT) * at_s / end_s;
    let y_of = |value: f64| bottom - (bottom - TOP) * (value / high).min(1.0);
    let legend_lines = lines.len().div_ceil(LEGEND_COLUMNS) as f64;
    let mut svg = Svg::new(WIDTH, HEIGHT + legend_lines * LEGEND_LINE + 6.0, title);
    svg.text((0.0, 14.0), Anchor::Start, "title", title);
    svg.text((0.0, 32.0), Anchor::Start, "tick", unit);
    for step in steps.iter().filter(|step| **step <= high) {
        svg.line((LEFT, y_of(*step)), (right, y_of(*step)), "grid");
        svg.text((LEFT - 6.0, y_of(*step) + 4.0), Anchor::End, "tick", &short(*step));
    }
    for second in round_steps(end_s).into_iter().filter(|second| *second <= end_s) {
        svg.line((x_of(second), TOP), (x_of(second), bottom), "grid");
        svg.text((x_of(second), bottom + 15.0), Anchor::Middle, "tick", &format!("{} s", short(second)));
    }
    for (index, line) in lines.iter().enumerate() {
        let fill = Fill { colour: COLOURS[line.colour % COLOURS.len()], opacity: 1.0 };
        for piece in pieces(ends_s, line.values) {
            let mut placed: Vec<(f64, f64)> =
                piece.iter().map(|(at_s, value)| (x_of(*at_s), y_of(*value))).collect();
            if let [(x, y)] = placed[..] {
                // A sample without neighbours is a dot, and not nothing.
                placed = vec![(x - 1.5, y), (x + 1.5, y)];
            }
            svg.path(&placed, fill);
        }
        let column = (index % LEGEND_COLUMNS) as f64;
        let x = LEFT + column * (right - LEFT) / LEGEND_COLUMNS as f64;
        let y = HEIGHT + (index / LEGEND_COLUMNS) as f64 * LEGEND_LINE + 4.0;
        svg.path(&[(x, y), (x + 18.0, y)], fill);
        svg.text((x + 22.0, y + 4.0), Anchor::Start, "tick", &shortened(&line.name));
    }
    svg.finish()
}

/// A round number without the digits that it does not need.
fn short(value: f64) -> String {
    let text = number(value);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn shortened(name: &str) -> String {
    match name.char_indices().nth(LEGEND_LETTERS) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// The points of a line, broken where there is no value. Of samples that share a place the smallest and the largest are
/// kept, in their order: a peak is never averaged away.
fn pieces(ends_s: &[f64], values: &[f64]) -> Vec<Vec<(f64, f64)>> {
    let group = ends_s.len().div_ceil(PLACES).max(1);
    let points: Vec<(f64, f64)> = ends_s.iter().copied().zip(values.iter().copied()).collect();
    let mut found: Vec<Vec<(f64, f64)>> = vec![Vec::new()];
    for chunk in points.chunks(group) {
        let there: Vec<&(f64, f64)> = chunk.iter().filter(|(_, value)| value.is_finite()).collect();
        let Some(least) = there.iter().min_by(|one, other| one.1.total_cmp(&other.1)) else {
            found.push(Vec::new());
            continue;
        };
        let most = there.iter().max_by(|one, other| one.1.total_cmp(&other.1)).unwrap_or(least);
        let (first, second) = if least.0 <= most.0 { (least, most) } else { (most, least) };
        if let Some(piece) = found.last_mut() {
            piece.push(**first);
            if second.0 > first.0 {
                piece.push(**second);
            }
        }
    }
    found.retain(|piece| !piece.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_breaks_where_there_is_no_value() {
        let found = pieces(&[1.0, 2.0, 3.0, 4.0], &[5.0, f64::NAN, 6.0, 7.0]);
        assert_eq!(found, [vec![(1.0, 5.0)], vec![(3.0, 6.0), (4.0, 7.0)]]);
        let nothing = Line { name: "a".to_owned(), colour: 0, values: &[f64::NAN] };
        assert_eq!(plot("t", "u", &[1.0], &[nothing], None), "");
    }

    #[test]
    fn labels_have_no_needless_digits() {
        assert_eq!(
            [0.0, 0.05, 0.5, 3.0, 20.0, 2.5, 15_000.0].map(short),
            ["0", "0.05", "0.5", "3", "20", "2.5", "15,000"]
        );
        assert_eq!(shortened("LOC Local timer interrupts"), "LOC Local timer in…");
    }

    #[test]
    fn a_peak_is_seen_among_many_samples() {
        let ends: Vec<f64> = (0..10_000).map(f64::from).collect();
        let mut values = vec![1.0; 10_000];
        values[4_321] = 99.0;
        let found = pieces(&ends, &values);
        assert_eq!(found.len(), 1);
        assert!(found[0].len() <= 2 * PLACES, "{}", found[0].len());
        assert!(found[0].contains(&(4_321.0, 99.0)));
    }
}
