//! SVG as text: the few shapes the plots are made of.

use joj_analysis::bench::key::{JournalMode, LogState, RowKey};

/// An SVG image under construction.
#[derive(Debug)]
pub struct Svg {
    width: f64,
    height: f64,
    body: String,
}

/// Where a text stands relative to its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// The text begins there.
    Start,
    /// It is centred there.
    Middle,
    /// The text ends at the point.
    End,
}

impl Svg {
    /// An empty image of this size in pixels; `title` is what a screen reader says.
    pub fn new(width: f64, height: f64, title: &str) -> Svg {
        let body = format!("<title>{}</title>\n", escape(title));
        Svg { width, height, body }
    }

    /// A filled rectangle.
    pub fn bar(&mut self, (x, y): (f64, f64), width: f64, height: f64, fill: Fill) {
        self.body.push_str(&format!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\" fill=\"{}\" \
             fill-opacity=\"{}\"/>\n",
            width.max(0.5),
            fill.colour,
            fill.opacity
        ));
    }

    /// A straight line; `class` is one of the page's.
    pub fn line(&mut self, (from_x, from_y): (f64, f64), (to_x, to_y): (f64, f64), class: &str) {
        self.body.push_str(&format!(
            "<line x1=\"{from_x:.1}\" y1=\"{from_y:.1}\" x2=\"{to_x:.1}\" y2=\"{to_y:.1}\" class=\"{class}\"/>\n"
        ));
    }

    /// A rectangle from its upper left to its lower right corner; `class` is one of the page's.
    pub fn area(&mut self, (left, top): (f64, f64), (right, bottom): (f64, f64), class: &str) {
        let (width, height) = ((right - left).max(0.5), (bottom - top).max(0.5));
        self.body.push_str(&format!(
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" class=\"{class}\"/>\n"
        ));
    }

    /// A circle; `class` is one of the page's, or several; `told` is what a pointer over it says.
    pub fn circle(&mut self, (x, y): (f64, f64), radius: f64, class: &str, told: Option<&str>) {
        let told = told.map_or_else(String::new, |told| format!("<title>{}</title>", escape(told)));
        self.body.push_str(&format!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\" class=\"{class}\">{told}</circle>\n"
        ));
    }

    /// A line through points.
    pub fn path(&mut self, points: &[(f64, f64)], fill: Fill) {
        let list: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let dash = if fill.opacity < 1.0 { " stroke-dasharray=\"5 3\"" } else { "" };
        self.body.push_str(&format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"{dash}/>\n",
            list.join(" "),
            fill.colour
        ));
    }

    /// A text; `class` is one of the page's.
    pub fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.body.push_str(&format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{}</text>\n",
            escape(text)
        ));
    }

    /// The finished image.
    pub fn finish(self) -> String {
        let Svg { width, height, body } = self;
        format!(
            "<svg viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
             role=\"img\">\n{body}</svg>\n"
        )
    }
}

/// A colour and how much of it.
#[derive(Debug, Clone, Copy)]
pub struct Fill {
    /// Hexadecimal colour.
    pub colour: &'static str,
    /// 0 to 1; a line of less than 1 is dashed.
    pub opacity: f64,
}

/// How a row looks in every plot: the mode's colour, paler or dashed for a fresh log.
///
/// The colours are Okabe and Ito's, told apart with any kind of colour vision.
pub fn fill_of(key: &RowKey) -> Fill {
    Fill { colour: colour_of(key.mode), opacity: if key.log == LogState::Fresh { 0.55 } else { 1.0 } }
}

/// A mode's colour.
pub fn colour_of(mode: JournalMode) -> &'static str {
    match mode {
        JournalMode::Delete => "#6b6b6b",
        JournalMode::Truncate => "#009e73",
        JournalMode::Persist => "#cc79a7",
        JournalMode::Memory => "#e69f00",
        JournalMode::Off => "#b8a600",
        JournalMode::Wal => "#0072b2",
        JournalMode::Waldio => "#d55e00",
        JournalMode::Bounded => "#7f2704",
    }
}

/// Text for HTML and SVG.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Three to seven round numbers from 0 to at least `largest`, evenly spaced.
pub fn round_steps(largest: f64) -> Vec<f64> {
    if !largest.is_finite() || largest <= 0.0 {
        return vec![0.0, 1.0];
    }
    let power = 10.0_f64.powf((largest / 4.0).log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power);
    let step = step.into_iter().find(|step| largest / step <= 6.0).unwrap_or(10.0 * power);
    (0..=6).map(|index| f64::from(index) * step).take_while(|value| *value < largest + step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_reach_the_largest() {
        assert_eq!(round_steps(8_736.0), [0.0, 2_000.0, 4_000.0, 6_000.0, 8_000.0, 10_000.0]);
        for largest in [0.003, 1.0, 7.0, 99.0, 12_345.0, 5e8] {
            let steps = round_steps(largest);
            assert!((3..=8).contains(&steps.len()), "{largest}: {steps:?}");
            assert!(steps[steps.len() - 1] >= largest, "{largest}: {steps:?}");
        }
        assert_eq!(round_steps(0.0), [0.0, 1.0]);
        assert_eq!(round_steps(f64::NAN), [0.0, 1.0]);
    }

    #[test]
    fn texts_cannot_break_out() {
        let mut svg = Svg::new(10.0, 10.0, "a<b");
        svg.text((0.0, 0.0), Anchor::Start, "label", "<script>\"&");
        let text = svg.finish();
        assert!(text.contains("a&lt;b") && text.contains("&lt;script&gt;&quot;&amp;"), "{text}");
    }
}
