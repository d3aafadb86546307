//! Shares, sizes and names as people read them. Names come from files of others: nothing in one may act on a terminal.

use crate::show::text::{count, number};

/// A share as percent. Only all of it is `100 %`, only nothing is `0 %`.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    match value {
        none if none <= 0.0 => "0 %".to_owned(),
        little if little < 0.05 => "<0.1 %".to_owned(),
        few if few < 9.95 => format!("{few:.1} %"),
        some if some < 99.5 => format!("{some:.0} %"),
        most if most < 99.95 => format!("{most:.1} %"),
        nearly if nearly < 100.0 => format!("{:.2} %", (nearly * 100.0).floor() / 100.0),
        _ => "100 %".to_owned(),
    }
}

/// A part of a whole as percent; a dash where there is no whole.
pub fn part_of(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { percent(part as f64 / whole as f64) }
}

/// Bytes as KiB, without digits that a whole number does not need.
pub fn kib_of(bytes: u64) -> String {
    if bytes.is_multiple_of(1024) { count(bytes / 1024) } else { number(bytes as f64 / 1024.0) }
}

/// A mean of bytes as KiB.
pub fn kib_mean(bytes: f64) -> String {
    mean(bytes / 1024.0)
}

/// A mean, without digits that a whole number does not need.
pub fn mean(value: f64) -> String {
    let whole = value.round();
    if (value - whole).abs() < 1e-6 { number_of_whole(whole) } else { number(value) }
}

fn number_of_whole(whole: f64) -> String {
    if whole.abs() >= 1000.0 { number(whole) } else { format!("{whole:.0}") }
}

/// `1 flush`, `2 flushes`.
pub fn counted(how_many: u64, one: &str, more: &str) -> String {
    format!("{} {}", count(how_many), if how_many == 1 { one } else { more })
}

/// A name that cannot act: control characters, and those that turn the direction of writing, are spelled out.
pub fn plain(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for letter in name.chars() {
        if is_harmless(letter) { text.push(letter) } else { text.extend(letter.escape_unicode()) }
    }
    text
}

fn is_harmless(letter: char) -> bool {
    !letter.is_control()
        && !matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A file's path in at most `letters` letters, its end kept; what stands for a name that nobody saw.
pub fn path(name: &str, letters: usize) -> String {
    if name.is_empty() {
        return "(name not seen)".to_owned();
    }
    let name = plain(name);
    let length = name.chars().count();
    if length <= letters {
        return name;
    }
    let tail: String = name.chars().skip(length + 3 - letters).collect();
    format!("...{tail}")
}

/// The last part of a path.
pub fn last_part(name: &str) -> &str {
    let trimmed = name.strip_suffix('/').unwrap_or(name);
    match trimmed.rfind('/') {
        Some(at) => &name[at + 1..],
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_all_is_100_percent_and_only_nothing_0() {
        let shares = [0.0, 0.0001, 0.004, 0.5, 0.996, 0.99996, 0.999_999, 1.0].map(percent);
        assert_eq!(shares, ["0 %", "<0.1 %", "0.4 %", "50 %", "99.6 %", "99.99 %", "99.99 %", "100 %"]);
        assert_eq!((part_of(1, 4), part_of(1, 0)), ("25 %".to_owned(), "-".to_owned()));
    }

    #[test]
    fn whole_numbers_stand_without_digits() {
        assert_eq!([56 * 1024, 1536, 2 << 30].map(kib_of), ["56", "1.50", "2,097,152"]);
        assert_eq!([56.0, 9.5, 0.0, 4000.0].map(mean), ["56", "9.50", "0", "4,000"]);
        assert_eq!(
            [counted(1, "flush", "flushes"), counted(2, "flush", "flushes")],
            ["1 flush", "2 flushes"]
        );
    }

    #[test]
    fn no_name_acts_on_a_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb\nc\u{202e}d"), "a\\u{1b}[2Jb\\u{a}c\\u{202e}d");
        assert_eq!(path("/data/a/very/long/path/app.db", 12), ".../app.db".replace("/app", "th/app"));
        assert_eq!([path("", 9), path("/a/b", 9)], ["(name not seen)", "/a/b"]);
        assert_eq!(["/a/b.db", "b.db", "/a/dir/", "/"].map(last_part), ["b.db", "b.db", "dir/", "/"]);
    }
}
