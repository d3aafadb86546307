//! Requests as blkparse prints them by default: for programs that read its text.
//!
//! The processor is 0 throughout, and only the actions Q, D, C and R are there.

use std::io::{self, Write};

use crate::trace::event::{Event, EventKind, Operation, RequestFlags, SECTOR_BYTES};
use crate::trace::export::Exporter;
use crate::trace::texts::Texts;

/// Writes blkparse's text.
#[derive(Debug)]
pub struct Blkparse {
    started_ns: u64,
    lines: u64,
}

impl Blkparse {
    /// For a trace that starts at `started_ns`: blkparse's times start at 0.
    pub fn new(started_ns: u64) -> Self {
        Self { started_ns, lines: 0 }
    }
}

impl Exporter for Blkparse {
    /// Writes an event, if it is one that blkparse knows.
    fn event(&mut self, event: &Event, texts: &Texts, out: &mut dyn Write) -> io::Result<()> {
        let action = match event.kind {
            EventKind::Queue => 'Q',
            EventKind::Issue => 'D',
            EventKind::Complete => 'C',
            EventKind::Requeue => 'R',
            _ => return Ok(()),
        };
        self.lines += 1;
        let (major, minor) = event.device.major_minor();
        let time_ns = event.time_ns.saturating_sub(self.started_ns);
        write!(
            out,
            "{major:3},{minor:<3} {:2} {:8} {:5}.{:09} {:5} {action:>2} {:>3} ",
            0,
            self.lines,
            time_ns / 1_000_000_000,
            time_ns % 1_000_000_000,
            event.thread,
            letters(event)
        )?;
        // Most of what is no such request is a driver's command, which moves bytes without a place.
        let has_place = event.operation != Operation::Other;
        let sectors = event.bytes.div_ceil(SECTOR_BYTES);
        if has_place && sectors > 0 {
            write!(out, "{} + {sectors} ", event.sector)?;
        } else if action == 'C' {
            write!(out, "{} ", if has_place { event.sector } else { 0 })?;
        }
        match action {
            'C' => writeln!(out, "[{}]", event.detail),
            // A thread may call itself anything: the end of a line would make two of this one.
            _ => writeln!(out, "[{}]", texts.get(event.command).replace(char::is_control, "?")),
        }
    }
}

/// As blkparse has them: an F before the operation is PREFLUSH, one behind it FUA.
fn letters(event: &Event) -> String {
    let wants_flush = event.flags.has(RequestFlags::PREFLUSH) && event.operation != Operation::Other;
    let mut letters = String::new();
    if wants_flush || event.operation == Operation::Flush {
        letters.push('F');
    }
    letters.push_str(match event.operation {
        Operation::Read => "R",
        Operation::Write => "W",
        Operation::WriteZeroes => "WZ",
        Operation::Discard => "D",
        Operation::Flush | Operation::Other => "N",
    });
    for (flag, letter) in [
        (RequestFlags::FUA, 'F'),
        (RequestFlags::READ_AHEAD, 'A'),
        (RequestFlags::SYNC, 'S'),
        (RequestFlags::METADATA, 'M'),
    ] {
        if event.flags.has(flag) {
            letters.push(letter);
        }
    }
    letters
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::event::DeviceNumber;
    use crate::trace::ftrace::rwbs;

    #[test]
    fn whatever_a_thread_is_called_its_line_is_one() {
        for (name, told) in [("x\ny", "x?y"), ("\r\t\u{1b}\u{85}", "????"), ("a]b [c", "a]b [c"), ("", "")] {
            let mut texts = Texts::default();
            let event = Event {
                device: DeviceNumber::new(8, 0).unwrap(),
                bytes: 4096,
                operation: Operation::Write,
                command: texts.keep(name),
                ..Event::default()
            };
            let mut text = Vec::new();
            Blkparse::new(0).event(&event, &texts, &mut text).unwrap();
            let text = String::from_utf8(text).unwrap();
            assert!(text.ends_with(&format!(" + 8 [{told}]\n")), "{text:?}");
            assert_eq!(text.chars().filter(|letter| letter.is_control()).count(), 1, "{text:?}");
        }
    }

    #[test]
    fn letters_are_read_back_as_what_they_stand_for() {
        for &operation in Operation::ALL {
            for bits in [0, 1, 2, 4, 8, 16, 31] {
                let event = Event { operation, flags: RequestFlags(bits), ..Event::default() };
                let letters = letters(&event);
                let bytes = if matches!(operation, Operation::Flush | Operation::Other) { 0 } else { 4096 };
                let (found, flags, is_known) = rwbs::read(letters.as_bytes(), bytes);
                // FN is a flush in front of nothing.
                let (wanted, extra) = match operation {
                    Operation::Flush => (Operation::Other, RequestFlags::PREFLUSH),
                    other => (other, RequestFlags::default()),
                };
                assert_eq!((found, is_known), (wanted, true), "{operation:?}: {letters}");
                let told = event.flags.with(extra);
                let told =
                    if operation == Operation::Other { told.without(RequestFlags::PREFLUSH) } else { told };
                assert_eq!(flags, told, "{operation:?}: {letters}");
            }
        }
    }

    #[test]
    fn lines_look_like_blkparses() {
        let mut texts = Texts::default();
        let device = DeviceNumber::new(8, 0).unwrap();
        let write = Event {
            time_ns: 1_000_000_500,
            device,
            sector: 223_490,
            bytes: 4096,
            operation: Operation::Write,
            flags: RequestFlags::PREFLUSH.with(RequestFlags::FUA).with(RequestFlags::SYNC),
            thread: 697,
            command: texts.keep("jbd2/sda1-8"),
            ..Event::default()
        };
        let flush = Event {
            kind: EventKind::Issue,
            operation: Operation::Flush,
            bytes: 0,
            flags: RequestFlags::PREFLUSH,
            ..write
        };
        let failed = Event { kind: EventKind::Complete, detail: -5, ..write };
        let (mut text, mut blkparse) = (Vec::new(), Blkparse::new(1_000_000_000));
        for event in [write, flush, failed, Event { kind: EventKind::SyncBegin, ..write }] {
            blkparse.event(&event, &texts, &mut text).unwrap();
        }
        let wanted = "  8,0    0        1     0.000000500   697  Q FWFS 223490 + 8 [jbd2/sda1-8]\n  \
                      8,0    0        2     0.000000500   697  D  FN [jbd2/sda1-8]\n  \
                      8,0    0        3     0.000000500   697  C FWFS 223490 + 8 [-5]\n";
        assert_eq!(String::from_utf8(text).unwrap(), wanted);
    }
}
