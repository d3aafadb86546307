//! Traces for other programs: events or requests in, bytes out. No exporter holds more than the present request.
//!
//! ```text
//! FORMATS -> begin (head) -> event | outcome, as they go by -> finish
//!
//! runs         each run of each request as a line of CSV: when, where, what for, which file, why
//! run_fields   what is told of a run, there and in tables for a fleet
//! perfetto     requests and sync calls for ui.perfetto.dev, in protobuf: the wire formats that this needs
//! fio          what was asked of the disks, as fio replays it
//! blkparse     requests as blkparse prints them
//! json_lines   events as JSON, an object on each line
//! csv          events as CSV, a line each
//! fields       an event's fields by name, for the text formats;  quoted: a text as a value of CSV
//! ```

use std::io::{self, Write};

use crate::trace::attribution::attribute::Outcome;
use crate::trace::event::Event;
use crate::trace::header::Header;
use crate::trace::texts::Texts;

pub mod runs;
pub mod run_fields;
pub mod perfetto;
mod protobuf;
pub mod fio;
pub mod blkparse;
pub mod json_lines;
pub mod csv;
mod fields;
mod quoted;

/// Writes a trace in one format while it goes by. What a format has no use for it leaves out.
pub trait Exporter: std::fmt::Debug {
    /// Takes an event.
    /// # Errors
    /// Those of `out`.
    fn event(&mut self, _event: &Event, _texts: &Texts, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    /// Takes what is complete.
    /// # Errors
    /// Those of `out`.
    fn outcome(&mut self, _outcome: &Outcome<'_>, _texts: &Texts, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    /// Writes what still waits. The trace is over.
    /// # Errors
    /// Those of `out`.
    fn finish(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

/// A format to write traces in.
#[derive(Debug)]
pub struct TraceFormat {
    /// As `--export` takes it.
    pub name: &'static str,
    /// What it is, for `--help`.
    pub help: &'static str,
    /// Writes what stands in front of everything.
    pub begin: fn(&Header, &mut dyn Write) -> io::Result<Box<dyn Exporter>>,
}

/// Every format.
pub static FORMATS: [TraceFormat; 6] = [
    TraceFormat {
        name: "runs",
        help: "each run of each request with all that is known of it, comma separated",
        begin: |_, out| Ok(Box::new(runs::Runs::new(out)?)),
    },
    TraceFormat {
        name: "perfetto",
        help: "opens in ui.perfetto.dev: a slice for each request, a track for each file",
        begin: |_, out| Ok(Box::new(perfetto::Perfetto::new(out)?)),
    },
    TraceFormat {
        name: "iolog",
        help: "fio's iolog, version 3, with its flushes",
        begin: |header, out| Ok(Box::new(fio::Iolog::new(header, out)?)),
    },
    TraceFormat {
        name: "blkparse",
        help: "the text of blkparse",
        begin: |header, _| Ok(Box::new(blkparse::Blkparse::new(header.started_ns))),
    },
    TraceFormat {
        name: "csv",
        help: "one line an event, comma separated",
        begin: |_, out| Ok(Box::new(csv::Csv::new(out)?)),
    },
    TraceFormat {
        name: "jsonl",
        help: "one JSON object an event",
        begin: |_, _| Ok(Box::new(json_lines::JsonLines)),
    },
];
