//! What blkparse prints by default, which is what `-f` gives with blkparse's own default format.
//!
//! ```text
//!   8,0    3        1     0.000000000   697  Q  WS 223490 + 8 [sqlite3]
//!   8,0    1        2     0.000107000     0  C  WS 223490 + 8 [0]
//! CPU0 (sda):
//! ```
//!
//! Device, processor, sequence, seconds, thread, action, kind of request, sectors, and in brackets the thread's name or the error.
//! From the first line of its summary on, only the number of lost records is read.

use std::io::BufRead;

use crate::trace::event::{DeviceNumber, Event, EventKind};
use crate::trace::header::{Header, Source};
use crate::trace::import::error::{ImportError, LineProblem};
use crate::trace::import::lines::Lines;
use crate::trace::import::output::{ImportSink, Output};
use crate::trace::import::words;

/// Imports blkparse's text.
/// # Errors
/// Names the line and its byte. What the sink got before is part of a trace, not a trace.
pub fn import(text: impl BufRead, sink: &mut ImportSink) -> Result<Header, ImportError> {
    let mut output = Output::new(sink);
    let mut summary = false;
    let mut lines = Lines::new(text);
    while lines.advance()? {
        let line = lines.line();
        summary |= begins_summary(&line);
        let is_event = !line.trim().is_empty() && !line.starts_with("Input file ");
        let read = if summary {
            skips(&line).map_or(Ok(()), |events| Ok(output.lost(output.last_ns(), events)?))
        } else if is_event {
            event(&line, &mut output)
        } else {
            Ok(())
        };
        read.map_err(|problem| lines.error(problem))?;
    }
    let inferred = [
        "Files, sync calls and journal commits are unknown: blktrace records requests only.",
        "The number that blkparse calls pid was taken for the thread; processes are unknown.",
        "Writes without sectors but with PREFLUSH were taken for flushes.",
        "Write-zeroes requests count as such where blkparse calls them WZ; what it calls W counts as a write.",
        "Lost events are those that blkparse's summary calls skips; without the summary nobody knows.",
    ];
    Ok(output.finish(Source::Blkparse, inferred.map(str::to_owned).to_vec())?)
}

/// `CPU0 (sda):`, `Total (8,0):`, `Events (sda): 4 entries`.
fn begins_summary(line: &str) -> bool {
    ["CPU", "Total (", "Events (", "Throughput ("].iter().any(|word| line.starts_with(word))
}

/// The events missing according to `Skips: 2 forward (17 -   0.1%)`; thousands may have separators.
fn skips(line: &str) -> Option<u64> {
    let (_, after) = line.strip_prefix("Skips: ")?.split_once("forward (")?;
    let digits: String = after.split('-').next()?.chars().filter(char::is_ascii_digit).collect();
    digits.parse().ok().filter(|events| *events > 0)
}

fn event(line: &str, output: &mut Output) -> Result<(), LineProblem> {
    let mut rest = line;
    let mut word = |what: &'static str| {
        rest = rest.trim_start();
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = after;
        if word.is_empty() { Err(LineProblem::EndsBefore(what)) } else { Ok(word) }
    };
    let device = word("device")?;
    let device = words::device(device)
        .ok_or_else(|| words::is_no(device, "device like 8,0; we read blkparse's default format only"))?;
    for what in ["processor", "sequence number"] {
        let number = word(what)?;
        number.parse::<u64>().map_err(|_| words::is_no(number, what))?;
    }
    let time = word("time")?;
    let time_ns = words::time_ns(time).ok_or_else(|| words::is_no(time, "time"))?;
    let thread = word("process")?;
    let thread = thread.parse().map_err(|_| words::is_no(thread, "process"))?;
    let action = word("action")?;
    let letters = if action == "m" { "" } else { word("kind of request")? };
    let base = Event { time_ns, device, thread, ..Event::default() };
    let kind = match action {
        "Q" => EventKind::Queue,
        "D" => EventKind::Issue,
        "C" => EventKind::Complete,
        "R" => EventKind::Requeue,
        "A" => return remap(rest, device, output),
        // Merges, insertions, plugging, splits, messages: the request that results is issued later.
        "M" | "F" | "I" | "G" | "S" | "P" | "U" | "UT" | "T" | "X" | "B" | "W" | "m" => return Ok(()),
        _ => return Err(words::is_no(action, "action of blkparse")),
    };
    request(Event { kind, ..base }, letters, rest, output)
}

/// `223490 + 8 [sqlite3]`, without sectors `[sqlite3]`, a completion `223490 + 8 [0]`; with `-t` a time in round brackets.
fn request(event: Event, letters: &str, rest: &str, output: &mut Output) -> Result<(), LineProblem> {
    let (numbers, in_brackets) =
        rest.split_once('[').ok_or(LineProblem::HasNo("name or error in brackets"))?;
    let in_brackets = in_brackets.trim_end().strip_suffix(']').ok_or(LineProblem::OpenBracket)?;
    let is_command = numbers.contains('(') && !numbers.contains('+');
    let mut numbers = numbers.split('(').next().unwrap_or_default().split_whitespace();
    let mut number = || {
        let word = numbers.next()?;
        Some(word.parse::<u64>().map_err(|_| words::is_no(word, "number of a sector")))
    };
    let sector = number().transpose()?.unwrap_or(0);
    let sectors = match numbers.next() {
        Some("+") => {
            let word = numbers.next().ok_or(LineProblem::EndsBefore("number of sectors"))?;
            word.parse().map_err(|_| words::is_no(word, "number of sectors"))?
        }
        None => 0,
        Some(other) => return Err(LineProblem::Misplaced(words::excerpt(other))),
    };
    let bytes = words::bytes_of(sectors).ok_or(LineProblem::TooManySectors)?;
    // Commands of SG_IO and the like have bytes instead of sectors.
    let (operation, flags) = if is_command {
        (crate::trace::event::Operation::Other, Default::default())
    } else {
        let kind = words::operation_and_flags(letters, bytes);
        kind.ok_or_else(|| words::is_no(letters, "kind of request"))?
    };
    // A flush has no sector; the kernel completes it at -1.
    let sector = if bytes == 0 && sector == u64::MAX { 0 } else { sector };
    let mut event = Event { sector, bytes, operation, flags, ..event };
    if event.kind == EventKind::Complete {
        event.detail = errno(in_brackets)?;
    } else {
        event.command = output.keep(in_brackets);
    }
    Ok(output.push(event)?)
}

/// The kernel keeps the errno in 16 bits without a sign, and blkparse prints them so: 65531 is -5.
fn errno(text: &str) -> Result<i64, LineProblem> {
    let number: i64 = text.trim().parse().map_err(|_| words::is_no(text, "error"))?;
    match number {
        0x8000..=0xffff => Ok(number - 0x1_0000),
        0..0x8000 => Ok(-number),
        -0x8000..0 => Ok(number),
        _ => Err(LineProblem::Errno(number)),
    }
}

/// `8409088 + 8 <- (8,1) 8407040`
fn remap(rest: &str, device: DeviceNumber, output: &mut Output) -> Result<(), LineProblem> {
    let told = || {
        let (to, from) = rest.split_once("<-")?;
        let (from_device, from_sector) = from.trim().split_once(' ')?;
        let to_sector = to.split_whitespace().next()?.parse().ok()?;
        let from_sector = from_sector.split_whitespace().next()?.parse().ok()?;
        Some(((words::device(from_device)?, from_sector), (device, to_sector)))
    };
    let (from, to) = told().ok_or(LineProblem::IsNoRemap("8409088 + 8 <- (8,1) 8407040"))?;
    output.remapped(from, to);
    Ok(())
}
