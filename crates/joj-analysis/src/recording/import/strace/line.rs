//! One line of strace's text, taken apart.
//!
//! ```text
//! 4711 12:00:01.000123 pwrite64(3</data/app.db>, "..."..., 4096, 8192) = 4096 <0.000021>
//! [pid 4711] 1700000000.000123 read(3,  <unfinished ...>
//! 4711 12:00:01.000130 <... read resumed>"..."..., 4096) = -1 EINTR (Interrupted system call) <0.000005>
//! 4711 12:00:01.000140 --- SIGCHLD {si_signo=SIGCHLD, ..} ---
//! 4711 12:00:01.000150 +++ exited with 0 +++
//! ```

use std::borrow::Cow;

use crate::recording::flags;
use crate::recording::import::{in_column, is_no};
use crate::recording::paths::{text_of, unquoted};
use crate::trace::import::LineProblem;
use crate::trace::import::words;

/// At the end of a line; older versions put `) = ?` after it where the thread is killed.
const UNFINISHED: &str = "<unfinished ...>";
const DAY_NS: u64 = 86_400_000_000_000;
/// No strace is older than 1990.
const CALENDAR_BEGIN_NS: u64 = 631_152_000_000_000_000;

/// A line.
#[derive(Debug, PartialEq, Eq)]
pub struct TextLine<'a> {
    /// The thread that strace names; `None` where it traces one only.
    pub thread: Option<u32>,
    /// Nanoseconds since midnight, or since 1970.
    pub time_ns: u64,
    /// True for the latter.
    pub is_calendar: bool,
    /// What follows them.
    pub what: LineEvent<'a>,
}

/// What a line reports.
#[derive(Debug, PartialEq, Eq)]
pub enum LineEvent<'a> {
    /// A whole call, or the begin of one.
    Call(&'a str),
    /// The begin of a call whose end is in a later line.
    Unfinished(&'a str),
    /// The end of one: its name, and what follows the begin.
    Resumed(&'a str, &'a str),
    /// The thread was killed in the call that it had begun.
    CutOff,
    /// The thread is gone.
    Exit,
    /// The thread with this number began an execve that ended all others. It goes on under the number of this line, its process's.
    Superseded(u32),
    /// A signal.
    Signal,
}

/// Takes a line apart; `None` where it is strace's own talk.
pub fn parse(line: &str) -> Result<Option<TextLine<'_>>, LineProblem> {
    if line.trim().is_empty() || line.starts_with("strace: ") {
        return Ok(None);
    }
    let mut rest = line.trim_start();
    let mut thread = None;
    let number = |word: &str| word.parse::<u32>().ok();
    if let Some(bracket) = rest.strip_prefix("[pid") {
        let (word, after) = bracket.split_once(']').ok_or(LineProblem::OpenBracket)?;
        thread = Some(number(word.trim()).ok_or_else(|| is_no(line, word.trim(), "process number"))?);
        rest = after.trim_start();
    } else if let Some((word, after)) = rest.split_once(' ')
        && let Some(found) = number(word)
    {
        thread = Some(found);
        rest = after.trim_start();
    }
    let (time, after) = rest.split_once(' ').unwrap_or((rest, ""));
    let wanted = "time; run strace with -ttt or -tt";
    let (time_ns, is_calendar) = time_of(time).ok_or_else(|| is_no(line, time, wanted))?;
    let rest = after.trim_start();
    let what = if let Some(by) = rest.strip_prefix("+++ superseded by execve in pid ") {
        let by = by.split(' ').next().unwrap_or(by);
        LineEvent::Superseded(number(by).ok_or_else(|| is_no(line, by, "process number"))?)
    } else if rest.starts_with("+++ ") {
        LineEvent::Exit
    } else if rest.starts_with("--- ") {
        LineEvent::Signal
    } else if let Some(resumed) = rest.strip_prefix("<... ") {
        let told = resumed.split_once(" resumed>");
        let (name, rest) = told.ok_or_else(|| is_no(line, resumed, "call that was resumed"))?;
        // A thread that was killed in a call has no end of it.
        let is_cut_off = rest.trim_start().starts_with(UNFINISHED);
        if is_cut_off { LineEvent::CutOff } else { LineEvent::Resumed(name, rest) }
    } else if let Some((begin, _)) = rest.rsplit_once(UNFINISHED).filter(|(_, after)| !after.contains('"')) {
        // The blank before the mark is strace's. What a program writes may look like the mark, and a quote follows it.
        LineEvent::Unfinished(begin.strip_suffix(' ').unwrap_or(begin))
    } else if rest.contains('(') {
        LineEvent::Call(rest)
    } else {
        return Err(is_no(line, rest, "call"));
    };
    Ok(Some(TextLine { thread, time_ns, is_calendar, what }))
}

/// `12:00:01.000123`, `12:00:01`, `1700000000.000123`.
fn time_of(text: &str) -> Option<(u64, bool)> {
    let Some((hours, rest)) = text.split_once(':') else {
        let time_ns = words::time_ns(text)?;
        // Less is since the line before (-r), and says nothing of the order of threads.
        return (time_ns >= CALENDAR_BEGIN_NS).then_some((time_ns, true));
    };
    let (minutes, seconds) = rest.split_once(':')?;
    let seconds_ns =
        words::time_ns(seconds).or_else(|| seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000))?;
    let [hours, minutes] = [hours, minutes].map(|word| word.parse::<u64>().ok());
    let time_ns = (hours?.checked_mul(60)?.checked_add(minutes?)?)
        .checked_mul(60_000_000_000)?
        .checked_add(seconds_ns)?;
    (time_ns < DAY_NS).then_some((time_ns, false))
}

/// Times since midnight as times that never begin anew.
#[derive(Debug, Default)]
pub struct Midnights {
    days_ns: u64,
    last_ns: u64,
}

impl Midnights {
    /// The time of the next line.
    pub fn time_ns(&mut self, line: &TextLine<'_>) -> u64 {
        // Lines of several threads may change places; half a day is none of that.
        if !line.is_calendar && line.time_ns + DAY_NS / 2 < self.last_ns {
            self.days_ns += DAY_NS;
        }
        self.last_ns = line.time_ns;
        line.time_ns + self.days_ns
    }
}

/// A call with all its parts.
#[derive(Debug, PartialEq, Eq)]
pub struct TextCall<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its arguments, as strace prints them.
    pub arguments: Vec<&'a str>,
    /// What it returned, or its errno, negative; `None` for `?`.
    pub result: Option<i64>,
    /// For each argument that is a descriptor what is between its brackets, where strace escaped bytes there.
    pub unescaped: Vec<Option<String>>,
    /// The path of the descriptor that it returned.
    pub result_path: Option<Cow<'a, str>>,
    /// The kernel began it again after a signal.
    pub is_restarted: bool,
    /// How long it took, with `-T`.
    pub duration_ns: Option<u64>,
}

/// Takes a call apart.
pub fn call(text: &str) -> Result<TextCall<'_>, LineProblem> {
    let (name, inside) = text.split_once('(').ok_or(LineProblem::EndsBefore("arguments"))?;
    let is_name =
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_?".contains(&byte));
    if !is_name {
        return Err(is_no(text, name, "name of a call"));
    }
    let (arguments, rest) = arguments(text, inside)?;
    let rest = rest.trim_start();
    let told = rest.strip_prefix('=').ok_or_else(|| is_no(text, rest, "result like `= 0`"))?.trim();
    let (told, duration_ns) = duration(told);
    let (word, after) = told.split_once(' ').unwrap_or((told, ""));
    let (number, behind) = word.split_once('<').unwrap_or((word, ""));
    let result = if number == "?" {
        None
    } else {
        Some(flags::number(number).ok_or_else(|| is_no(text, number, "result of a call"))?)
    };
    let is_error = |name: &&str| {
        name.len() > 1
            && name.starts_with('E')
            && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    };
    let error = after.split(' ').next().filter(is_error);
    let is_restarted = error.is_some_and(|error| error.starts_with("ERESTART"));
    let result = match (result, error) {
        (Some(-1), Some(name)) if !is_restarted => {
            Some(-flags::errno(name).ok_or_else(|| is_no(text, name, "error of Linux's"))?)
        }
        (result, _) => result,
    };
    let path =
        told.split_once('<').filter(|_| !behind.is_empty()).and_then(|(_, path)| path.rsplit_once('>'));
    let result_path = path.map(|(path, _)| known_path(path));
    let unescaped = arguments.iter().map(|word| match known_path(descriptor(word)?.known?) {
        Cow::Owned(path) => Some(path),
        Cow::Borrowed(_) => None,
    });
    let unescaped = if text.contains('\\') { unescaped.collect() } else { Vec::new() };
    Ok(TextCall { name, arguments, unescaped, result, result_path, is_restarted, duration_ns })
}

/// Older versions of strace mark within the brackets what has lost its name; with -yy all do that with devices: `/a (deleted)`,
/// `/a<char 1:3>`.
pub fn without_mark(path: &str) -> &str {
    let path = path.strip_suffix(GONE).unwrap_or(path);
    path.split_once('<').map_or(path, |(path, _)| path)
}

/// A path between brackets, as recordings spell it. strace escapes bytes there as in quotes, and `<` and `>` besides.
pub fn known_path(told: &str) -> Cow<'_, str> {
    let path = without_mark(told);
    let bytes = if path.contains('\\') { unquoted(&format!("\"{path}\"")) } else { None };
    bytes.map_or(Cow::Borrowed(path), |bytes| Cow::Owned(text_of(&bytes).into_owned()))
}

/// `-1 ENOENT (No such file or directory) <0.000013>` without its last word.
fn duration(text: &str) -> (&str, Option<u64>) {
    let found = text.strip_suffix('>').and_then(|text| text.rsplit_once('<'));
    match found.and_then(|(before, time)| Some((before.trim_end(), words::time_ns(time)?))) {
        Some((before, time_ns)) => (before, Some(time_ns)),
        None => (text, None),
    }
}

/// The arguments up to the bracket that ends them, and what follows it.
fn arguments<'a>(text: &str, inside: &'a str) -> Result<(Vec<&'a str>, &'a str), LineProblem> {
    let bytes = inside.as_bytes();
    let (mut found, mut begin, mut depth, mut at) = (Vec::new(), 0, 0_u32, 0);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at),
            b'<' if begins_annotation(&inside[..at]) => at = annotation_end(bytes, at),
            b'(' | b'[' | b'{' => depth += 1,
            b')' if depth == 0 => {
                let last = inside[begin..at].trim();
                if !(last.is_empty() && found.is_empty()) {
                    found.push(last);
                }
                return Ok((found, &inside[at + 1..]));
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                found.push(inside[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    Err(in_column(text.len(), LineProblem::EndsBefore("bracket behind its arguments")))
}

/// The quote that ends a string.
fn string_end(bytes: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 1,
            b'"' => break,
            _ => {}
        }
        at += 1;
    }
    at
}

/// `3<`, `AT_FDCWD<`: what strace knows of the descriptor follows.
fn begins_annotation(before: &str) -> bool {
    before.ends_with(|letter: char| letter.is_ascii_digit()) || before.ends_with("AT_FDCWD")
}

/// The bracket that ends it; `->` in a connection's addresses (`<TCP:[..->..]>`) is none. A file's name may end with a dash.
fn annotation_end(bytes: &[u8], begin: usize) -> usize {
    let (mut at, mut depth) = (begin, 0_u32);
    let is_path = bytes.get(begin + 1) == Some(&b'/');
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'<' => depth += 1,
            b'>' if is_path || bytes[at - 1] != b'-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        at += 1;
    }
    at
}

/// What a path ends with that is no name of the file any more, in older versions of strace. Newer ones have it behind the bracket.
pub const GONE: &str = " (deleted)";

/// A descriptor with what strace knows of it: `3</data/app.db>`, `5<pipe:[77]>`, `3`, `AT_FDCWD</data>`, `4</a>(deleted)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextDescriptor<'a> {
    /// The number; `None` for AT_FDCWD.
    pub number: Option<i32>,
    /// What is between the brackets.
    pub known: Option<&'a str>,
    /// The file has not this name any more.
    pub is_gone: bool,
}

/// Reads a descriptor.
pub fn descriptor(text: &str) -> Option<TextDescriptor<'_>> {
    let (number, known, mark) = match text.split_once('<') {
        Some((number, told)) => {
            let (known, mark) = told.rsplit_once('>')?;
            (number, Some(known), mark)
        }
        None => (text, None, ""),
    };
    let number = if number == "AT_FDCWD" { None } else { Some(number.parse().ok()?) };
    let is_gone = mark == GONE.trim_start() || known.is_some_and(|known| known.ends_with(GONE));
    Some(TextDescriptor { number, known, is_gone })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_every_kind_are_told_apart() {
        fn told(line: &str) -> TextLine<'_> {
            parse(line).unwrap().unwrap()
        }
        let line = told("4711 12:00:01.000123 close(3) = 0 <0.000021>");
        assert_eq!((line.thread, line.time_ns, line.is_calendar), (Some(4711), 43_201_000_123_000, false));
        assert_eq!(line.what, LineEvent::Call("close(3) = 0 <0.000021>"));
        let line = told("[pid   12] 1700000000.000001 read(3,  <unfinished ...>");
        assert_eq!(
            (line.thread, line.is_calendar, line.what),
            (Some(12), true, LineEvent::Unfinished("read(3, "))
        );
        let line = told("00:00:00 <... read resumed>\"x\", 5) = 1");
        assert_eq!((line.thread, line.what), (None, LineEvent::Resumed("read", "\"x\", 5) = 1")));
        let whole = r#"write(3</a>, "<unfinished ...>", 16) = 16 <0.000010>"#;
        assert_eq!(told(&format!("1 00:00:00 {whole}")).what, LineEvent::Call(whole));
        assert_eq!(told("1 00:00:00 read(0, <unfinished ...>) = ?").what, LineEvent::Unfinished("read(0,"));
        assert_eq!(told("1 00:00:00 <... pread64 resumed> <unfinished ...>) = ?").what, LineEvent::CutOff);
        assert_eq!(told("1 00:00:00 +++ exited with 0 +++").what, LineEvent::Exit);
        let superseded = "1 00:00:00 +++ superseded by execve in pid 72 +++";
        assert_eq!(told(superseded).what, LineEvent::Superseded(72));
        assert_eq!(told("1 00:00:00 --- SIGINT {si_signo=SIGINT} ---").what, LineEvent::Signal);
        assert_eq!(parse("strace: Process 5 attached").unwrap(), None);
        for (wrong, said) in [
            ("close(3) = 0", "column 1: `close(3)` is no time; run strace with -ttt or -tt"),
            ("7 24:00:00.0 close(3) = 0", "column 3: `24:00:00.0` is no time; run strace with -ttt or -tt"),
            ("7 1.5 close(3) = 0", "column 3: `1.5` is no time; run strace with -ttt or -tt"),
            ("7 1700000000.5 what", "column 16: `what` is no call"),
        ] {
            assert_eq!(parse(wrong).unwrap_err().to_string(), said);
        }
    }

    #[test]
    fn a_call_is_taken_apart_whatever_stands_in_its_strings() {
        let text = r#"pwrite64(3</a,b (c)>, "x\", 1) = 7 <"..., 4096, 8192) = 4096 <0.000021>"#;
        let found = call(text).unwrap();
        assert_eq!(found.arguments, ["3</a,b (c)>", r#""x\", 1) = 7 <"..."#, "4096", "8192"]);
        assert_eq!((found.result, found.duration_ns), (Some(4096), Some(21_000)));
        let found = call("openat(AT_FDCWD</x>, \"f\", O_RDONLY) = 3</x/f>").unwrap();
        assert_eq!(
            (found.result, found.result_path.as_deref(), found.duration_ns),
            (Some(3), Some("/x/f"), None)
        );
        let found =
            call("read(3<TCP:[1.2.3.4:5->6.7.8.9:80]>, 0x7f, 5) = -1 EAGAIN (Resource ..) <0.1>").unwrap();
        assert_eq!((found.arguments[0], found.result), ("3<TCP:[1.2.3.4:5->6.7.8.9:80]>", Some(-11)));
        assert_eq!(call("read(3</q->, 0x7f, 5) = 0").unwrap().arguments, ["3</q->", "0x7f", "5"]);
        let found = call("read(3, 0x7f, 5) = ? ERESTARTSYS (To be restarted)").unwrap();
        assert_eq!((found.result, found.is_restarted), (None, true));
        let found = call(r#"fsync(3</x/\74\303\234 \"\\\n\\xff\76<char 1:3>>) = 4</\377>"#).unwrap();
        assert_eq!(found.unescaped, [Some("/x/<\u{dc} \"\\\n\\x5cxff>".to_owned())]);
        assert_eq!(found.result_path.as_deref(), Some("/\\xff"));
        assert_eq!(call("getpid() = 7").unwrap().arguments, Vec::<&str>::new());
        for (wrong, said) in [
            ("read(3, \"x", "column 11: it ends before the bracket behind its arguments"),
            ("read(3) 5", "column 9: `5` is no result like `= 0`"),
            ("read(3) = x", "column 11: `x` is no result of a call"),
            ("re d(3) = 0", "column 1: `re d` is no name of a call"),
        ] {
            assert_eq!(call(wrong).unwrap_err().to_string(), said);
        }
    }

    #[test]
    fn midnight_does_not_turn_time_back() {
        let mut midnights = Midnights::default();
        let mut at = |time| midnights.time_ns(&parse(&format!("1 {time} close(3) = 0")).unwrap().unwrap());
        let (before, slightly, after) = (at("23:59:59.999999"), at("23:59:59.999998"), at("00:00:00.000001"));
        assert_eq!((before - slightly, after - slightly), (1_000, 3_000));
    }
}
