//! Each run of each request as a line of comma-separated values: when, where, how much, what for, which file, and why.

use std::io::{self, Write};

use crate::trace::attribution::attribute::Outcome;
use crate::trace::attribution::request::{BlockRun, Evidence, Request};
use crate::trace::event::RequestFlags;
use crate::trace::export::Exporter;
use crate::trace::export::quoted::quoted;
use crate::trace::texts::Texts;

/// The columns. Times are of the trace's clock; `-1` and empty texts stand for what is not known.
const HEAD: &str = "queued_ns,issued_ns,completed_ns,disk,first_sector,byte_length,operation,\
                    waits,wanted_preflush,wanted_fua,issued_fua,error_code,class,part,evidence,\
                    file_device,file_inode,file_generation,file_path,file_type,file_deleted,file_offset,\
                    changed_bytes,sync_call,sqlite_work,journal_of_journal,process_id,queued_by,issued_by";

/// Writes the lines.
#[derive(Debug)]
pub struct Runs;

impl Runs {
    /// Writes the line of column names.
    /// # Errors
    /// Those of `out`.
    pub fn new(out: &mut dyn Write) -> io::Result<Self> {
        writeln!(out, "{HEAD}")?;
        Ok(Self)
    }
}

impl Exporter for Runs {
    fn outcome(&mut self, outcome: &Outcome<'_>, texts: &Texts, out: &mut dyn Write) -> io::Result<()> {
        if let Outcome::Request(request) = outcome { self::request(request, texts, out) } else { Ok(()) }
    }
}

/// Writes the runs of a request, a line each; a flush of which nobody knows for whom it is has one too.
fn request(request: &Request, texts: &Texts, out: &mut dyn Write) -> io::Result<()> {
    if request.runs.is_empty() {
        let run = BlockRun {
            queued_ns: request.issued_ns,
            sector: request.sector,
            bytes: request.bytes,
            ..BlockRun::default()
        };
        return line(request, &run, texts, out);
    }
    request.runs.iter().try_for_each(|run| line(request, run, texts, out))
}

fn line(request: &Request, run: &BlockRun, texts: &Texts, out: &mut dyn Write) -> io::Result<()> {
    let number = |value: Option<u64>| value.map_or_else(|| "-1".to_owned(), |value| value.to_string());
    let wanted = |flag: RequestFlags| u8::from(run.intended.has(flag));
    write!(
        out,
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},",
        run.queued_ns,
        if request.unissued { "-1".to_owned() } else { request.issued_ns.to_string() },
        number(request.completed_ns),
        request.disk,
        run.sector,
        run.bytes,
        request.operation.text(),
        wanted(RequestFlags::SYNC),
        wanted(RequestFlags::PREFLUSH),
        wanted(RequestFlags::FUA),
        u8::from(request.issued.has(RequestFlags::FUA)),
        request.error,
        run.class.text(),
        run.part.text(),
        match run.evidence {
            Evidence::Seen => "seen",
            Evidence::Extent => "extent",
            Evidence::None => "none",
        },
    )?;
    let has_file = run.file.is_some();
    writeln!(
        out,
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
        if has_file { run.file.device.to_string() } else { String::new() },
        run.file.inode,
        run.file.generation,
        quoted(texts.get(run.name)),
        if has_file { run.file_type.text() } else { "" },
        u8::from(run.deleted),
        if has_file { run.offset.to_string() } else { "-1".to_owned() },
        number(run.changed_bytes.map(u64::from)),
        number(run.cause.map(|sync| sync.0)),
        number(run.transaction.map(|transaction| transaction.0)),
        u8::from(run.journal_of_journal),
        run.process,
        quoted(texts.get(run.command)),
        quoted(texts.get(request.command)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filesystem::class::{Class, Part};
    use crate::trace::attribution::request::{SyncId, TransactionId};
    use crate::trace::event::{DeviceNumber, FileKey, Operation};

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
