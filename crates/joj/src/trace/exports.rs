//! Traces in other formats, written while events go by.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use joj_analysis::trace::attribution::attribute::Outcome;
use joj_analysis::trace::attribution::request::{Request, Sync};
use joj_analysis::trace::event::{Event, Operation};
use joj_analysis::trace::export::blkparse::Blkparse;
use joj_analysis::trace::export::fio::Iolog;
use joj_analysis::trace::export::perfetto::{AttributedRun, Perfetto, SyncCall};
use joj_analysis::trace::export::{csv, json_lines, runs};
use joj_analysis::trace::header::Header;
use joj_analysis::trace::texts::Texts;

use crate::command_line::trace::ExportFormat;

enum Kind {
    Runs,
    Perfetto(Box<Perfetto>),
    Iolog(Box<Iolog>),
    Blkparse(Blkparse),
    Csv,
    Jsonl,
}

struct Export {
    kind: Kind,
    path: PathBuf,
    out: BufWriter<File>,
}

/// The files that were asked for. The first error ends all: a part is not shown as the whole, so the files of a trace that was
/// not read or captured to its end are removed.
#[derive(Default)]
pub struct Exports {
    files: Vec<Export>,
    problem: Option<String>,
}

impl Drop for Exports {
    fn drop(&mut self) {
        for file in &self.files {
            // Devices and pipes are not ours to remove; and the problem matters more than what is left of a file.
            if std::fs::symlink_metadata(&file.path).is_ok_and(|metadata| metadata.is_file()) {
                let _ = std::fs::remove_file(&file.path);
            }
        }
    }
}

impl Export {
    fn create(format: ExportFormat, path: &Path, header: &Header) -> io::Result<Self> {
        let mut out = BufWriter::new(File::create(path)?);
        let kind = match format {
            ExportFormat::Runs => {
                runs::head(&mut out)?;
                Kind::Runs
            }
            ExportFormat::Perfetto => Kind::Perfetto(Box::new(Perfetto::new(&mut out)?)),
            ExportFormat::Iolog => Kind::Iolog(Box::new(Iolog::new(header, &mut out)?)),
            ExportFormat::Blkparse => Kind::Blkparse(Blkparse::new(header.started_ns)),
            ExportFormat::Csv => {
                csv::head(&mut out)?;
                Kind::Csv
            }
            ExportFormat::Jsonl => Kind::Jsonl,
        };
        Ok(Self { kind, path: path.to_owned(), out })
    }

    fn event(&mut self, event: &Event, texts: &Texts) -> io::Result<()> {
        let out = &mut self.out;
        match &mut self.kind {
            Kind::Runs | Kind::Perfetto(_) => Ok(()),
            Kind::Iolog(log) => log.event(event, out),
            Kind::Blkparse(text) => text.event(event, texts, out),
            Kind::Csv => csv::event(event, texts, out),
            Kind::Jsonl => json_lines::event(event, texts, out),
        }
    }

    fn outcome(&mut self, outcome: &Outcome<'_>, texts: &Texts) -> io::Result<()> {
        if let (Kind::Runs, Outcome::Request(request)) = (&self.kind, outcome) {
            return runs::request(request, texts, &mut self.out);
        }
        let Kind::Perfetto(perfetto) = &mut self.kind else { return Ok(()) };
        match outcome {
            Outcome::Request(request) => slices(perfetto, request, texts, &mut self.out),
            Outcome::Sync(sync) => call(perfetto, sync, texts, &mut self.out),
            Outcome::Work(_) | Outcome::Note(..) => Ok(()),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        if let Kind::Iolog(log) = &mut self.kind {
            log.finish(&mut self.out)?;
        }
        self.out.flush()
    }
}

fn slices(perfetto: &mut Perfetto, request: &Request, texts: &Texts, out: &mut dyn Write) -> io::Result<()> {
    let slice = |at: usize| {
        let run = request.runs.get(at);
        AttributedRun {
            issued_ns: request.issued_ns,
            completed_ns: request.completed_ns.unwrap_or(request.issued_ns),
            device: request.disk,
            sector: run.map_or(request.sector, |run| run.sector),
            bytes: run.map_or(request.bytes, |run| run.bytes),
            operation: request.operation,
            flags: run.map_or(request.issued, |run| run.intended),
            class: run.map_or_else(Default::default, |run| run.class),
            part: run.map_or_else(Default::default, |run| run.part),
            file_name: run.map_or("", |run| texts.get(run.name)),
            file_offset: run.map_or(0, |run| run.offset),
            thread_name: texts.get(request.command),
            sync_call: run.and_then(|run| run.cause).map_or(0, |sync| sync.0 + 1),
        }
    };
    // A flush without a known cause has no run, and is a slice all the same.
    (0..request.runs.len().max(usize::from(request.operation == Operation::Flush)))
        .try_for_each(|at| perfetto.run(&slice(at), out))
}

fn call(perfetto: &mut Perfetto, sync: &Sync, texts: &Texts, out: &mut dyn Write) -> io::Result<()> {
    let call = SyncCall {
        number: sync.id.0 + 1,
        begin_ns: sync.begun_ns,
        end_ns: sync.ended_ns.unwrap_or(sync.begun_ns),
        call: texts.get(sync.call),
        file_name: texts.get(sync.name),
        thread: sync.thread,
        thread_name: "thread",
    };
    perfetto.sync_call(&call, out)
}

impl Exports {
    /// Begins the files.
    /// # Errors
    /// One cannot be made.
    pub fn create(wanted: &[(ExportFormat, PathBuf)], header: &Header) -> Result<Self, String> {
        let mut exports = Self::default();
        for (format, path) in wanted {
            let file = Export::create(*format, path, header)
                .map_err(|error| format!("cannot create {}: {error}", path.display()))?;
            exports.files.push(file);
        }
        Ok(exports)
    }

    /// An event goes by.
    pub fn event(&mut self, event: &Event, texts: &Texts) {
        self.each(|file| file.event(event, texts));
    }

    /// Something is complete.
    pub fn outcome(&mut self, outcome: &Outcome<'_>, texts: &Texts) {
        self.each(|file| file.outcome(outcome, texts));
    }

    fn each(&mut self, mut write: impl FnMut(&mut Export) -> io::Result<()>) {
        if self.problem.is_some() {
            return;
        }
        for file in &mut self.files {
            if let Err(error) = write(file) {
                self.problem = Some(format!("cannot write {}: {error}", file.path.display()));
                return;
            }
        }
    }

    /// The trace is over.
    /// # Errors
    /// A file could not be written; then all of them are removed.
    pub fn finish(mut self) -> Result<(), String> {
        self.each(Export::finish);
        if let Some(problem) = self.problem.take() {
            return Err(problem);
        }
        // Whole now: nothing is removed.
        self.files.clear();
        Ok(())
    }
}
