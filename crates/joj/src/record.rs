//! `joj record`: a text of strace's or MobiGen's becomes a recording.

use std::collections::BTreeMap;
use std::fs::File;
use std::hash::RandomState;
use std::io::{self, BufReader, Read};
use std::process::ExitCode;

use joj_analysis::recording::Recording;
use joj_analysis::recording::call::CallKind;
use joj_analysis::recording::hidden_names;
use joj_analysis::recording::import::{ImportError, TextFormat, mobigen, strace};
use thiserror::Error;

use crate::command_line::record::RecordOptions;
use crate::machine::files::output_file::{self, OutputError};
use crate::machine::proc::signal;
use crate::show::text::{count, duration};
use crate::trace::error::InputError;
use crate::trace::input::Input;
use crate::trace::progress::{ProgressLine, go_on};
use crate::trace_file::{TraceWriteError, TraceWriter};

/// Where the text says what it is.
const BEGIN_BYTES: u64 = 4096;

/// Why there is no recording. Nothing is written then.
#[derive(Debug, Error)]
pub enum RecordError {
    /// Ctrl-C would end joj without cleaning up.
    #[error("cannot catch Ctrl-C: {0}")]
    Signals(#[source] io::Error),
    /// The text cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A line of the text is wrong.
    #[error("{name}: {error}; nothing was written")]
    Text {
        /// The text's name.
        name: String,
        /// What is wrong in which line.
        #[source]
        error: ImportError,
    },
    /// There is nothing to replay in it.
    #[error("{0}: no call on a file in it; is it text of strace or MobiGen?")]
    NoCall(String),
    /// The recording cannot be written.
    #[error(transparent)]
    Write(#[from] TraceWriteError),
    /// The result cannot be printed.
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Runs `joj record`.
/// # Errors
/// What could not be done, where, and how to mend it.
pub fn run(options: &RecordOptions) -> Result<ExitCode, RecordError> {
    // The text must not be written over.
    output_file::check_writable([&options.import, &options.output])?;
    signal::install().map_err(RecordError::Signals)?;
    let input = match Input::open(&options.import) {
        Err(InputError::Stopped(stopped)) => return Ok(was_stopped(&stopped)),
        input => input?,
    };
    let begin = input.first_bytes(BEGIN_BYTES)?;
    let format = options.format.map(TextFormat::from);
    let format = format.unwrap_or_else(|| TextFormat::of(&String::from_utf8_lossy(&begin)));
    let text = WatchedText {
        progress: ProgressLine::begin(),
        name: input.name(),
        input: &input,
        text: input.rewound()?,
    };
    let text = BufReader::with_capacity(BUFFER_BYTES, text);
    let imported = match format {
        TextFormat::Strace => strace::import(text),
        TextFormat::Mobigen => mobigen::import(text),
    };
    if let Err(stopped) = go_on() {
        return Ok(was_stopped(&stopped));
    }
    let named = |error| RecordError::Text { name: input.name().to_owned(), error };
    let mut recording = imported.map_err(named)?;
    if !recording.calls.iter().any(|call| call.kind.is_replayed()) {
        return Err(RecordError::NoCall(input.name().to_owned()));
    }
    recording.header.writer = concat!("joj ", env!("CARGO_PKG_VERSION")).to_owned();
    if options.hide_names {
        // The key is random, and gone when this returns.
        hidden_names::hide(&mut recording, &RandomState::new());
    }
    TraceWriter::write_recording(&options.output, &recording)?;
    output_file::print(&told(&recording, &options.output.display().to_string()))?;
    Ok(ExitCode::SUCCESS)
}

fn was_stopped(stopped: &crate::trace::error::Stopped) -> ExitCode {
    eprintln!("joj: {stopped}");
    ExitCode::from(signal::STOPPED_EXIT_CODE)
}

/// What is read with one call of the kernel's.
const BUFFER_BYTES: usize = 256 << 10;

/// A text that shows how far it was read, and ends where a signal asks for that.
struct WatchedText<'a> {
    progress: ProgressLine,
    name: &'a str,
    input: &'a Input,
    text: BufReader<&'a File>,
}

impl Read for WatchedText<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        go_on().map_err(io::Error::other)?;
        let (name, input) = (self.name, self.input);
        self.progress.tell(|| {
            let (read, all) = input.position();
            let share = read as f64 / all.max(1) as f64 * 100.0;
            format!("reading {name}, {share:.0} % done; Ctrl-C gives it up")
        });
        self.text.read(room)
    }
}

/// What is in the recording, and what is not.
fn told(recording: &Recording, path: &str) -> String {
    let mut kinds: BTreeMap<CallKind, u64> = BTreeMap::new();
    let mut threads: Vec<u32> = Vec::new();
    for call in recording.calls.iter().filter(|call| call.kind.is_replayed()) {
        *kinds.entry(call.kind).or_default() += 1;
        threads.push(call.thread);
    }
    threads.sort_unstable();
    threads.dedup();
    let header = &recording.header;
    let length = duration(header.ending.as_ref().map_or(0, |ending| ending.ended_ns));
    let calls = count(kinds.values().sum());
    let mut text = format!("{path}: {calls} calls of {} threads in {length}\n", count(threads.len() as u64));
    let words: Vec<String> =
        kinds.iter().map(|(kind, calls)| format!("{} {}", count(*calls), kind.text())).collect();
    text += &format!("  {}\n", words.join(", "));
    if let Some(facts) = header.recording.as_ref().filter(|facts| !facts.not_replayed.is_empty()) {
        text += "not in it, because no replay can make them:\n";
        for (what, calls) in &facts.not_replayed {
            text += &format!("  {} {what}\n", count(*calls));
        }
    }
    for sentence in &header.inferred {
        text += &format!("{sentence}\n");
    }
    text
}
