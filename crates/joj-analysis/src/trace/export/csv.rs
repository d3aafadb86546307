//! Events as comma-separated values, RFC 4180: one line of names, then a line for each event.

use std::io::{self, Write};

use crate::trace::event::Event;
use crate::trace::export::Exporter;
use crate::trace::export::fields::{NAMES, Value, values};
use crate::trace::export::quoted::quoted;
use crate::trace::texts::Texts;

/// Writes the lines.
#[derive(Debug)]
pub struct Csv;

impl Csv {
    /// Writes the names.
    /// # Errors
    /// Those of `out`.
    pub fn new(out: &mut dyn Write) -> io::Result<Self> {
        writeln!(out, "{}", NAMES.join(","))?;
        Ok(Self)
    }
}

impl Exporter for Csv {
    fn event(&mut self, event: &Event, texts: &Texts, out: &mut dyn Write) -> io::Result<()> {
        line(event, texts, out)
    }
}

fn line(event: &Event, texts: &Texts, out: &mut dyn Write) -> io::Result<()> {
    for (index, value) in values(event, texts).iter().enumerate() {
        if index > 0 {
            out.write_all(b",")?;
        }
        match value {
            Value::Number(number) => write!(out, "{number}")?,
            Value::Signed(number) => write!(out, "{number}")?,
            Value::Text(text) => write!(out, "{}", quoted(text))?,
            Value::Made(text) => write!(out, "{}", quoted(text))?,
        }
    }
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::event::{Backing, DeviceNumber, EventKind, FileKey, Operation, RequestFlags};

    #[test]
    fn words_are_spelled_and_odd_names_quoted() {
        let mut texts = Texts::default();
        let queue = Event {
            time_ns: 5,
            device: DeviceNumber::new(8, 1).unwrap(),
            sector: 2048,
            bytes: 4096,
            operation: Operation::Write,
            flags: RequestFlags::SYNC.with(RequestFlags::FUA),
            thread: 7,
            command: texts.keep("a,\"b\""),
            file: FileKey { device: DeviceNumber::new(8, 1).unwrap(), inode: 12, generation: 3 },
            backing: Backing::File,
            ..Event::default()
        };
        let sync =
            Event { kind: EventKind::SyncEnd, detail: -5, name: texts.keep("fsync"), ..Event::default() };
        let mut out = Vec::new();
        Csv::new(&mut out).unwrap();
        line(&queue, &texts, &mut out).unwrap();
        line(&sync, &texts, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0].split(',').count(), 18);
        assert_eq!(
            lines[1],
            "5,queue,8:1,2048,4096,write,sync|fua,7,0,\"a,\"\"b\"\"\",8:1,12,3,0,file,unknown,0,"
        );
        assert_eq!(lines[2], "0,sync-end,,0,0,,,0,0,,,0,0,0,,,-5,fsync");
    }
}
