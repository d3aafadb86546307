//! One line of ftrace's text: who, when, which event, and the event's own words.
//!
//! ```text
//!          sqlite3-4711    [001] .....   123.456789: block_rq_issue: 8,0 WS 4096 () 2048 + 8 be,0,4 [sqlite3]
//!          sqlite3-4711    ( 4710) [001] ..... 123.456789: ...      with the option record-tgid
//!          sqlite3-4711    [001]   123.456789: block_rq_issue: ...  as trace-cmd report prints it
//! ```

use crate::trace::import::error::LineProblem;
use crate::trace::import::words;

/// The parts of a line.
#[derive(Debug, PartialEq, Eq)]
pub struct Line<'a> {
    pub command: &'a str,
    /// The thread; 0 for the idle ones.
    pub thread: u32,
    /// The process, where it was recorded.
    pub process: u32,
    /// Nanoseconds of ftrace's clock.
    pub time_ns: u64,
    /// Name of the event.
    pub event: &'a str,
    /// What stands behind the event's name.
    pub said: &'a str,
}

impl<'a> Line<'a> {
    /// Takes a line apart.
    /// # Errors
    /// Says which part is not there.
    pub fn parse(line: &'a str) -> Result<Self, LineProblem> {
        // A thread's name may hold brackets, blanks and dashes: the first ` [digits]` that has a thread's number before it is the processor.
        let mut from = 0;
        while let Some(place) = line[from..].find('[').map(|place| from + place) {
            from = place + 1;
            let Some((processor, after)) = line[from..].split_once(']') else { break };
            let is_processor = !processor.is_empty() && processor.bytes().all(|byte| byte.is_ascii_digit());
            let who = if is_processor { who(&line[..place]) } else { None };
            if let Some((command, thread, process)) = who {
                let (time_ns, event, said) = what(after)?;
                return Ok(Self { command, thread, process, time_ns, event, said });
            }
        }
        Err(LineProblem::HasNo("`name-thread [processor]`"))
    }
}

/// `  sqlite3-4711  ( 4710) ` gives the name, the thread and the process.
fn who(text: &str) -> Option<(&str, u32, u32)> {
    let mut text = text.trim();
    let mut process = 0;
    if let Some((before, group)) = text.strip_suffix(')').and_then(|text| text.rsplit_once('(')) {
        // `(-------)` where the kernel did not know.
        process = group.trim().parse().unwrap_or(0);
        text = before.trim_end();
    }
    let (command, thread) = text.rsplit_once('-')?;
    Some((command, thread.parse().ok()?, process))
}

/// `  .....   123.456789: block_rq_issue: 8,0 ..` gives the time, the event's name and the rest.
fn what(text: &str) -> Result<(u64, &str, &str), LineProblem> {
    let mut rest = text.trim_start();
    for _ in 0..2 {
        let (word, after) = rest.split_once(char::is_whitespace).ok_or(LineProblem::EndsBefore("time"))?;
        rest = after.trim_start();
        let Some(time) = word.strip_suffix(':') else { continue };
        let time_ns = words::time_ns(time)
            .ok_or_else(|| words::is_no(time, "time in seconds: record with `echo mono > trace_clock`"))?;
        // System calls have a text of their own: `sys_fsync(fd: 3)` and `sys_fsync -> 0x0`.
        let is_call =
            rest.starts_with("sys_") && !rest.starts_with("sys_enter_") && !rest.starts_with("sys_exit_");
        let end = if is_call { rest.find(['(', ' ']) } else { rest.find(':') };
        let end = end.ok_or(LineProblem::EndsBefore("event's name"))?;
        let said = &rest[end..];
        return Ok((time_ns, rest[..end].trim(), said.strip_prefix(':').unwrap_or(said).trim()));
    }
    Err(LineProblem::HasNo("time"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_print_a_line_is_read() {
        let wanted = Line {
            command: "a [0] b-c",
            thread: 47,
            process: 0,
            time_ns: 1_500_000_000,
            event: "e",
            said: "x: y",
        };
        for middle in ["[001] .....  1.500000", "[001] d..2. 1.5", "[12]  1.500000000"] {
            assert_eq!(
                Line::parse(&format!("   a [0] b-c-47   {middle}: e: x: y")).as_ref().ok(),
                Some(&wanted),
                "{middle}"
            );
        }
        let grouped = Line::parse("  a [0] b-c-47  (  46) [001] ..... 1.5: e: x: y");
        assert_eq!(grouped.ok(), Some(Line { process: 46, ..wanted }));
        let idle = Line::parse("  <idle>-0  (-------) [001] d.h1. 1.5: e:");
        assert_eq!(
            idle.ok().map(|line| (line.command, line.thread, line.process, line.said)),
            Some(("<idle>", 0, 0, ""))
        );
    }

    #[test]
    fn system_calls_have_a_text_of_their_own() {
        let parts = |rest: &'static str| what(rest).ok().map(|(_, event, said)| (event, said));
        assert_eq!(parts(". 1.5: sys_fsync(fd: 3)"), Some(("sys_fsync", "(fd: 3)")));
        assert_eq!(parts(". 1.5: sys_fsync -> 0x0"), Some(("sys_fsync", "-> 0x0")));
        assert_eq!(parts("1.5: sys_enter_fsync:        fd: 0x3"), Some(("sys_enter_fsync", "fd: 0x3")));
    }

    #[test]
    fn what_is_missing_is_named() {
        for (line, told) in [
            ("", "name-thread"),
            ("x [001] 1.5: e:", "name-thread"),
            ("x-1 [001]", "ends before the time"),
            ("x-1 [001] ..... 15: e: y", "trace_clock"),
            ("x-1 [001] ..... ..... 1.5: e: y", "no time"),
            ("x-1 [001] ..... 1.5: e", "event's name"),
            ("x-1 [001] ..... 1.5: sys_fsync", "event's name"),
        ] {
            let error = Line::parse(line).unwrap_err().to_string();
            assert!(error.contains(told), "{line}: {error}");
        }
    }
}
