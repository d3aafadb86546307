//! /proc/net/dev: what each network interface received and sent.
//!
//! Source: two lines of headings, then `name:` and 16 numbers: bytes packets errs drop fifo frame compressed multicast,
//! received; bytes packets errs drop fifo colls carrier compressed, sent. Old kernels leave no space behind the colon.

use crate::monitor::counter::all_grown;
use crate::monitor::proc::proc_text::{ProcError, ProcText};

/// Numbers of an interface.
const NUMBERS: usize = 16;

/// An interface's line of /proc/net/dev.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    /// Bytes, packets, errors, dropped packets; received, then sent.
    pub counters: [u64; 8],
}

/// Reads the text.
/// # Errors
/// Where the headings are others, or a line has not 16 numbers.
pub fn parse(text: &str) -> Result<Vec<Interface>, ProcError> {
    let text = ProcText::new("net/dev", text)?;
    let mut lines = text.lines();
    let columns = "|bytes packets errs drop ";
    for expected in ["Inter-| Receive ", "face |bytes packets errs drop "] {
        let (line, words) = lines.next().unwrap_or((1, ""));
        let words: Vec<&str> = words.split_ascii_whitespace().collect();
        let words = words.join(" ") + " ";
        let has_both = words.matches(columns).count() == 2 || !expected.contains(columns);
        if !words.starts_with(expected) || !has_both {
            return Err(text.error(line, "the heading is not that of /proc/net/dev"));
        }
    }
    let mut found = Vec::new();
    for (line, words) in lines {
        // The last colon: an alias has one in its name.
        let (name, rest) =
            words.rsplit_once(':').ok_or_else(|| text.error(line, "it is not `name: numbers`"))?;
        let numbers = text.numbers(line, rest)?;
        if numbers.len() != NUMBERS {
            return Err(text.error(line, format!("it has {} numbers, not {NUMBERS}", numbers.len())));
        }
        let counters = [0, 1, 2, 3, 8, 9, 10, 11].map(|index| numbers[index]);
        found.push(Interface { name: name.trim().to_owned(), counters });
    }
    Ok(found)
}

impl Interface {
    /// The quantities of [`crate::monitor::quantity::QuantityKind::Network`] since `then`, `seconds` before; `None` where it began anew.
    pub fn since(&self, then: &Interface, seconds: f64) -> Option<Vec<f64>> {
        let grown = all_grown(&then.counters, &self.counters)?;
        let rates = grown.iter().enumerate().map(|(index, number)| {
            let rate = *number as f64 / seconds;
            if index % 4 == 0 { rate / 1_024.0 } else { rate }
        });
        Some(rates.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "Inter-|   Receive                                                |  Transmit\n face \
                        |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop \
                        fifo colls carrier compressed\n";

    fn one(line: &str) -> Interface {
        parse(&format!("{HEAD}{line}\n")).unwrap().remove(0)
    }

    #[test]
    fn interfaces_are_read_with_and_without_a_space() {
        let expected = Interface { name: "eth0".to_owned(), counters: [1, 2, 3, 4, 9, 10, 11, 12] };
        assert_eq!(one("  eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16"), expected);
        assert_eq!(one("  eth0:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16"), expected);
        assert_eq!(one("eth0:1:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16").name, "eth0:1");
        assert_eq!(parse(HEAD), Ok(Vec::new()));
    }

    #[test]
    fn rates_are_per_second_and_survive_a_wrap() {
        let then = one("eth0: 4294966272 2 0 0 0 0 0 0 2048 1 0 0 0 0 0 0");
        let now = one("eth0: 1024 6 0 2 0 0 0 0 6144 5 0 0 0 0 0 0");
        assert_eq!(now.since(&then, 2.0), Some(vec![1.0, 2.0, 0.0, 1.0, 2.0, 2.0, 0.0, 0.0]));
        assert_eq!(then.since(&now, 2.0), None, "it began anew");
    }

    #[test]
    fn damage_is_named_with_its_line() {
        for (text, expected) in [
            (String::new(), "net/dev, line 1: the heading is not that of /proc/net/dev"),
            ("Inter-| Receive |\n".to_owned(), "net/dev, line 1: the heading is not that of /proc/net/dev"),
            (format!("{HEAD}eth0 1 2\n"), "net/dev, line 3: it is not `name: numbers`"),
            (format!("{HEAD}eth0: 1 2\n"), "net/dev, line 3: it has 2 numbers, not 16"),
            (format!("{HEAD}eth0: 1 y\n"), "net/dev, line 3: `y` is no whole number"),
        ] {
            assert_eq!(parse(&text).unwrap_err().to_string(), expected);
        }
    }
}
