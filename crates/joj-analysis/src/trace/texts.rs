//! Names of files, processes and blocks, each kept once.

use std::borrow::Cow;
use std::collections::HashMap;

/// A name in a [`Texts`]. The first, 0, is always the empty one: no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Text(pub u32);

impl Text {
    /// No name.
    pub const NONE: Self = Self(0);
}

/// A file's name as text. Bytes that are no UTF-8 are spelled `\xff`, so that two such names stay two.
pub fn name_of(bytes: &[u8]) -> Cow<'_, str> {
    let Err(_) = std::str::from_utf8(bytes) else { return String::from_utf8_lossy(bytes) };
    let mut name = String::with_capacity(bytes.len() + 12);
    for chunk in bytes.utf8_chunks() {
        name.push_str(chunk.valid());
        for byte in chunk.invalid() {
            name.push_str(&format!("\\x{byte:02x}"));
        }
    }
    Cow::Owned(name)
}

/// The names of one trace. It grows with the number of different names, not with the number of events.
#[derive(Debug, Clone)]
pub struct Texts {
    texts: Vec<Box<str>>,
    index: HashMap<Box<str>, Text>,
}

impl Default for Texts {
    fn default() -> Self {
        let mut empty = Self { texts: Vec::new(), index: HashMap::new() };
        empty.keep("");
        empty
    }
}

impl Texts {
    /// The text's number, the same for the same text.
    pub fn keep(&mut self, text: &str) -> Text {
        if let Some(&known) = self.index.get(text) {
            return known;
        }
        let number = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        assert!(number < u32::MAX, "a trace has at most 2^32 - 1 names");
        self.texts.push(text.into());
        self.index.insert(text.into(), Text(number));
        Text(number)
    }

    /// The text behind a number; empty where the number belongs to other texts.
    pub fn get(&self, text: Text) -> &str {
        self.texts.get(text.0 as usize).map_or("", |text| text)
    }

    /// Takes what `longer` has more, of which these are the beginning.
    pub fn catch_up(&mut self, longer: &Self) {
        for text in longer.texts.iter().skip(self.count()) {
            self.keep(text);
        }
    }

    /// How many there are, the empty one included.
    pub fn count(&self) -> usize {
        self.texts.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_text_stay_apart() {
        let names = [
            &b"\xff.bin"[..],
            b"\xfe.bin",
            "\u{fffd}.bin".as_bytes(),
            "\u{e4}\u{2192}".as_bytes(),
            b"a\xe2\x86z",
        ];
        let told = names.map(|name| name_of(name).into_owned());
        assert_eq!(told, ["\\xff.bin", "\\xfe.bin", "\u{fffd}.bin", "\u{e4}\u{2192}", "a\\xe2\\x86z"]);
    }

    #[test]
    fn a_text_is_kept_once_and_the_first_is_empty() {
        let mut texts = Texts::default();
        let (first, second) = (texts.keep("app.db"), texts.keep("app.db-wal"));
        assert_eq!((texts.keep("app.db"), texts.get(second), texts.count()), (first, "app.db-wal", 3));
        assert_eq!((texts.keep(""), texts.get(Text(99))), (Text::NONE, ""));
        let mut other = Texts::default();
        other.catch_up(&texts);
        assert_eq!((other.get(first), other.get(second), other.count()), ("app.db", "app.db-wal", 3));
    }
}
