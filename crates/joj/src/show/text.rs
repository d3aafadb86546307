//! Numbers as people read them, and columns that line up.

use std::time::Duration;

/// Three significant digits, thousands set apart: `12,300`, `456`, `7.89`, `0.012`.
pub fn number(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude >= 1_000.0 {
        return thousands(value);
    }
    match magnitude {
        0.0 => "0".to_owned(),
        hundreds if hundreds >= 99.95 => format!("{value:.0}"),
        tens if tens >= 9.995 => format!("{value:.1}"),
        ones if ones >= 0.095 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A count with its thousands set apart.
pub fn count(value: u64) -> String {
    thousands(value as f64)
}

fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

/// Nanoseconds with their unit: `0.9us`, `131us`, `4.02ms`, `1.20s`.
pub fn duration(nanoseconds: u64) -> String {
    let value = nanoseconds as f64;
    match nanoseconds {
        0..100_000 => format!("{:.1}us", value / 1e3),
        100_000..1_000_000 => format!("{:.0}us", value / 1e3),
        1_000_000..100_000_000 => format!("{:.2}ms", value / 1e6),
        100_000_000..1_000_000_000 => format!("{:.0}ms", value / 1e6),
        _ => format!("{:.2}s", value / 1e9),
    }
}

/// A duration that is a median of several: whole nanoseconds are enough.
pub fn duration_of(nanoseconds: f64) -> String {
    duration(Duration::from_secs_f64(nanoseconds.max(0.0) / 1e9).as_nanos().try_into().unwrap_or(u64::MAX))
}

/// Bytes as KiB.
pub fn kib(bytes: f64) -> String {
    number(bytes / 1024.0)
}

/// A value, or a dash where there is none: never a zero that nobody counted.
pub fn or_dash(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

/// How many letters are seen of a text: those of colours are not.
pub fn letters(text: &str) -> usize {
    let mut parts = text.split("\x1b[");
    let plain = parts.next().map_or(0, |part| part.chars().count());
    plain + parts.map(|part| part.split_once('m').map_or(0, |(_, rest)| rest.chars().count())).sum::<usize>()
}

/// A text with spaces up to `width` letters, behind it or, where it goes to the right, in front.
pub fn padded(text: &str, width: usize, to_the_right: bool) -> String {
    let spaces = " ".repeat(width.saturating_sub(letters(text)));
    if to_the_right { spaces + text } else { text.to_owned() + &spaces }
}

/// Lines cut between words: the first of at most `first` letters, the others of `rest`; a longer word stays whole.
pub fn wrap(text: &str, first: usize, rest: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut letters = 0;
    for word in text.split_inclusive(' ') {
        let room = if lines.len() == 1 { first } else { rest };
        if letters + word.trim_end().chars().count() > room && letters > 0 {
            lines.push(String::new());
            letters = 0;
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(word);
        }
        letters += word.chars().count();
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_digits() {
        let shown = [0.0, 0.0123, 0.5, 9.99, 12.34, 456.7, 1234.5, 1_234_567.0].map(number);
        assert_eq!(shown, ["0", "0.012", "0.50", "9.99", "12.3", "457", "1,234", "1,234,567"]);
    }

    #[test]
    fn durations_carry_their_unit() {
        let shown = [900, 131_000, 4_020_000, 250_000_000, 1_200_000_000].map(duration);
        assert_eq!(shown, ["0.9us", "131us", "4.02ms", "250ms", "1.20s"]);
        assert_eq!([duration_of(-1.0), duration_of(4_020_000.4)], ["0.0us", "4.02ms"]);
    }

    #[test]
    fn lines_are_cut_between_words() {
        assert_eq!(wrap("one two  three four", 8, 5), ["one two", "three", "four"]);
        assert_eq!(wrap("unbreakable word", 4, 4), ["unbreakable", "word"]);
        assert_eq!(wrap("", 4, 4), [""]);
    }

    #[test]
    fn a_dash_stands_for_no_value_and_colours_take_no_room() {
        assert_eq!(or_dash(None, number), "-");
        assert_eq!((letters("\x1b[1;31mab\x1b[0mc"), letters("abc")), (3, 3));
        assert_eq!([padded("\x1b[1ma\x1b[0m", 3, true), padded("a", 3, false)], ["  \x1b[1ma\x1b[0m", "a  "]);
    }
}
