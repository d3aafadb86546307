//! Arguments of calls, as strace prints them: numbers, flags, descriptors, and what structures say.

use std::borrow::Cow;

use crate::recording::flags;
use crate::recording::import::{in_column, is_no};
use crate::recording::paths::{text_of, unquoted};
use crate::recording::system_calls::operation::NamedDescriptor;
use crate::trace::import::LineProblem;

use super::line::{self, TextCall, TextDescriptor};

/// A call as its line has it.
#[derive(Clone, Copy)]
pub struct CallText<'a> {
    /// All of it.
    pub text: &'a str,
    /// Its parts.
    pub call: &'a TextCall<'a>,
}

impl<'a> CallText<'a> {
    /// An argument; the first is 0.
    pub fn argument(&self, index: usize) -> Result<&'a str, LineProblem> {
        let missing = || in_column(self.text.len(), LineProblem::EndsBefore("last argument"));
        self.call.arguments.get(index).copied().ok_or_else(missing)
    }

    /// An argument that is a number.
    pub fn number(&self, index: usize) -> Result<i64, LineProblem> {
        let word = self.argument(index)?;
        flags::number(word).ok_or_else(|| is_no(self.text, word, "number"))
    }

    /// An argument that is flags.
    pub fn flags(&self, index: usize) -> Result<u32, LineProblem> {
        let word = self.argument(index)?;
        // `O_RDWR /* comment */`, `R_OK`, `0`
        let word = word.split(" /*").next().unwrap_or(word);
        flags::flags(word).ok_or_else(|| is_no(self.text, word, "flags that joj knows"))
    }

    /// An argument that is a descriptor.
    pub fn descriptor(&self, index: usize) -> Result<NamedDescriptor<'a>, LineProblem> {
        let word = self.argument(index)?;
        let found = descriptor(word).ok_or_else(|| is_no(self.text, word, "descriptor"))?;
        let unescaped = self.call.unescaped.get(index).and_then(Option::as_deref);
        Ok(NamedDescriptor { known: unescaped.or(found.known), ..found })
    }

    /// An argument in quotes, as text; `None` where it is none.
    pub fn quoted(&self, index: usize) -> Result<Option<Cow<'a, str>>, LineProblem> {
        let bytes = unquoted(self.argument(index)?);
        Ok(bytes.map(|bytes| Cow::Owned(text_of(&bytes).into_owned())))
    }

    /// True where it returned no error.
    pub fn succeeded(&self) -> bool {
        self.call.result.is_some_and(|result| result >= 0)
    }
}

/// A descriptor with what strace knows of it, as the text has it.
pub fn descriptor(text: &str) -> Option<NamedDescriptor<'_>> {
    let found = line::descriptor(text)?;
    let TextDescriptor { number, known, is_gone } = found;
    Some(NamedDescriptor { number, known: known.map(line::without_mark), is_gone })
}

/// The directory of relative paths, which strace -y tells beside AT_FDCWD; not where it has lost its name.
pub fn directory(text: &str) -> Option<Cow<'_, str>> {
    let known = line::descriptor(text)?;
    let is_one = |path: &&str| known.number.is_none() && path.starts_with('/') && !known.is_gone;
    known.known.filter(is_one).map(line::known_path)
}

/// Flags of `{flags=O_RDWR|O_CREAT, mode=0644, resolve=..}`.
pub fn how_flags(at: &CallText<'_>, index: usize) -> Result<u32, LineProblem> {
    let word = at.argument(index)?;
    let told = word.split_once("flags=").map(|(_, told)| told.split([',', '}']).next().unwrap_or_default());
    told.and_then(flags::flags).ok_or_else(|| is_no(at.text, word, "flags that joj knows"))
}

/// The bytes of `[{iov_base="..", iov_len=24}, {iov_base=..}]`. In contents the same words may stand.
pub fn vector_bytes(text: &str) -> Option<u64> {
    let (mut bytes, mut in_string, mut escaped) = (0_u64, false, false);
    let mut found = false;
    for (at, letter) in text.char_indices() {
        match (in_string, letter) {
            (true, _) if escaped => escaped = false,
            (true, '\\') => escaped = true,
            (_, '"') => in_string = !in_string,
            (false, 'i') => {
                if let Some(rest) = text[at..].strip_prefix("iov_len=") {
                    let digits = rest.split(|letter: char| !letter.is_ascii_digit()).next()?;
                    bytes = bytes.checked_add(digits.parse().ok()?)?;
                    found = true;
                }
            }
            _ => {}
        }
    }
    found.then_some(bytes)
}

/// The kind (S_IF..) and size of `{st_mode=S_IFREG|0644, st_size=12288, ...}`; 0 where the text does not tell.
pub fn status(text: &str) -> (u32, u64) {
    let value = |names: [&str; 2]| {
        let (_, rest) = names.iter().find_map(|name| text.split_once(name))?;
        rest.split([',', '}', '|']).next()
    };
    let kind = value(["st_mode=", "stx_mode="]).and_then(flags::flags).unwrap_or(0);
    let bytes = value(["st_size=", "stx_size="]).and_then(|size| size.parse().ok()).unwrap_or(0);
    (kind, bytes)
}

/// True for the commands of fcntl that set a lock or end one.
pub fn is_lock(command: &str) -> bool {
    matches!(command.trim_end_matches("64"), "F_SETLK" | "F_SETLKW" | "F_OFD_SETLK" | "F_OFD_SETLKW")
}

/// A lock as it is asked for.
pub struct AskedLock {
    /// F_RDLCK 0, F_WRLCK 1, F_UNLCK 2.
    pub kind: u32,
    /// Its start counts from the file's begin.
    pub is_absolute: bool,
    /// The first byte.
    pub start: i64,
    /// How many; 0 is to the end of the file.
    pub length: i64,
}

/// `{l_type=F_WRLCK, l_whence=SEEK_SET, l_start=120, l_len=1}`; strace before 4.9 wrote no `l_`.
pub fn lock_of(text: &str) -> Option<AskedLock> {
    let value = |name: &str| text.split_once(name)?.1.split([',', '}']).next();
    let kind = match value("type=")? {
        "F_RDLCK" => 0,
        "F_WRLCK" => 1,
        "F_UNLCK" => 2,
        _ => return None,
    };
    let is_absolute = value("whence=")? == "SEEK_SET";
    let [start, length] = [flags::number(value("start=")?)?, flags::number(value("len=")?)?];
    Some(AskedLock { kind, is_absolute, start, length })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_read() {
        let told = |text| lock_of(text).map(|lock| (lock.kind, lock.is_absolute, lock.start, lock.length));
        for (text, lock) in [
            ("{l_type=F_WRLCK, l_whence=SEEK_SET, l_start=120, l_len=1}", Some((1, true, 120, 1))),
            ("{l_type=F_UNLCK, l_whence=SEEK_CUR, l_start=-4, l_len=0}", Some((2, false, -4, 0))),
            ("{type=F_RDLCK, whence=SEEK_SET, start=1073741824, len=1}", Some((0, true, 1_073_741_824, 1))),
            ("0x7ffc8d1b3f20", None),
        ] {
            assert_eq!(told(text), lock, "{text}");
        }
        let commands = ["F_SETLK", "F_SETLKW64", "F_OFD_SETLK", "F_GETLK", "F_SETFL"].map(is_lock);
        assert_eq!(commands, [true, true, true, false, false]);
    }
}
