//! Each run of each request as a line of comma-separated values: when, where, how much, what for, which file, and why.

use std::io::{self, Write};

use super::run_fields::{RUN_FIELDS, RunValue, each_run, run_values};
use crate::trace::attribution::attribute::Outcome;
use crate::trace::attribution::request::{BlockRun, Request};
use crate::trace::export::Exporter;
use crate::trace::export::quoted::quoted;
use crate::trace::texts::Texts;

/// In front of this column stands `file_device`, which tables for a fleet do not have.
const FILE_INODE: &str = "file_inode";

/// Writes the lines.
#[derive(Debug)]
pub struct Runs;

impl Runs {
    /// Writes the line of column names. Times are of the trace's clock; `-1` and empty texts stand for what is not known.
    /// # Errors
    /// Those of `out`.
    pub fn new(out: &mut dyn Write) -> io::Result<Self> {
        for (number, (name, _)) in RUN_FIELDS.iter().enumerate() {
            let before = if *name == FILE_INODE { "file_device," } else { "" };
            write!(out, "{}{before}{name}", if number == 0 { "" } else { "," })?;
        }
        writeln!(out)?;
        Ok(Self)
    }
}

impl Exporter for Runs {
    fn outcome(&mut self, outcome: &Outcome<'_>, texts: &Texts, out: &mut dyn Write) -> io::Result<()> {
        if let Outcome::Request(request) = outcome { self::request(request, texts, out) } else { Ok(()) }
    }
}

/// Writes the runs of a request, a line each.
fn request(request: &Request, texts: &Texts, out: &mut dyn Write) -> io::Result<()> {
    each_run(request, |run| line(request, run, texts, out))
}

fn line(request: &Request, run: &BlockRun, texts: &Texts, out: &mut dyn Write) -> io::Result<()> {
    let values = run_values(request, run, texts);
    for (number, ((name, _), value)) in RUN_FIELDS.iter().zip(values).enumerate() {
        if number > 0 {
            out.write_all(b",")?;
        }
        if *name == FILE_INODE {
            let has_file = run.file.is_some();
            write!(out, "{},", if has_file { run.file.device.to_string() } else { String::new() })?;
        }
        match value {
            RunValue::Number(value) => write!(out, "{value}")?,
            RunValue::Signed(value) => write!(out, "{value}")?,
            RunValue::Unknown => out.write_all(b"-1")?,
            RunValue::Text(text) => out.write_all(quoted(&text).as_bytes())?,
        }
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filesystem::class::{Class, Part};
    use crate::trace::attribution::request::{SyncId, TransactionId};
    use crate::trace::event::{DeviceNumber, FileKey, Operation, RequestFlags};

    #[test]
    fn each_run_is_a_line_with_as_many_values_as_there_are_names() {
        let mut texts = Texts::default();
        let [name, command] = ["/a,\"b\".db", "app"].map(|text| texts.keep(text));
        let file = FileKey { device: DeviceNumber(1 << 20), inode: 12, generation: 7 };
        let data = BlockRun {
            queued_ns: 5,
            sector: 8,
            bytes: 4096,
            class: Class::Data,
            file,
            name,
            command,
            ..BlockRun::default()
        };
        let log = BlockRun {
            class: Class::Journal,
            part: Part::Commit,
            cause: Some(SyncId(3)),
            transaction: Some(TransactionId(0)),
            intended: RequestFlags::FUA.with(RequestFlags::PREFLUSH),
            ..BlockRun::default()
        };
        let whole = Request {
            issued_ns: 6,
            completed_ns: Some(9),
            disk: DeviceNumber(7 << 20),
            operation: Operation::Write,
            runs: vec![data, log],
            ..Request::default()
        };
        let mut out = Vec::new();
        let mut runs = Runs::new(&mut out).expect("memory");
        runs.outcome(&Outcome::Request(&whole), &texts, &mut out).expect("memory");
        let text = String::from_utf8(out).expect("text");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[1],
            "5,6,9,7:0,8,4096,write,0,0,0,0,0,data,,none,1:0,12,7,\"/a,\"\"b\"\".db\",other,0,0,-1,-1,-1,0,0,app,"
        );
        assert_eq!(lines[2], "0,6,9,7:0,0,0,write,0,1,1,0,0,journal,commit,none,,0,0,,,0,-1,-1,3,0,0,0,,");
        assert_eq!(lines[0].split(',').count(), lines[2].split(',').count());
    }

    #[test]
    fn a_flush_for_nobody_known_has_a_line() {
        let mut out = Vec::new();
        let flush = Request { operation: Operation::Flush, ..Request::default() };
        request(&flush, &Texts::default(), &mut out).expect("memory");
        assert!(String::from_utf8(out).expect("text").starts_with("0,0,-1,0:0,0,0,flush,"));
    }
}
