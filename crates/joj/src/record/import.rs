//! A text of strace's or MobiGen's becomes a recording.

use std::fs::File;
use std::hash::RandomState;
use std::io::{self, BufReader, Read};
use std::path::PathBuf;
use std::process::ExitCode;

use joj_analysis::recording::hidden_names;
use joj_analysis::recording::import::{TextFormat, mobigen, strace};

use crate::command_line::record::RecordOptions;
use crate::machine::files::output_file;
use crate::machine::proc::signal;
use crate::record::error::RecordError;
use crate::record::told::told;
use crate::trace::error::InputError;
use crate::trace::input::Input;
use crate::trace::progress::{ProgressLine, go_on};
use crate::trace_file::TraceWriter;

/// Where the text says what it is.
const BEGIN_BYTES: u64 = 4096;

/// Imports `text`.
/// # Errors
/// What could not be done, where, and how to mend it.
pub fn run(options: &RecordOptions, text: &PathBuf) -> Result<ExitCode, RecordError> {
    // The text must not be written over.
    output_file::check_apart([text], [&options.output])?;
    signal::install().map_err(RecordError::Signals)?;
    let input = match Input::open(text) {
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
    TraceWriter::create_recording(&options.output)?.write_recording(&recording)?;
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
