//! A saved trace, of joj or of another program, read from its first event to its findings. Memory does not grow with its length.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use joj_analysis::trace::event::Event;
use joj_analysis::trace::file_type::FileTypes;
use joj_analysis::trace::header::Header;
use joj_analysis::trace::import::{ImportError, ImportSink, blkparse, blktrace, ftrace};
use joj_analysis::trace::texts::Texts;

use crate::trace::analysis::{Analysis, AnalysisOptions, Findings};
use crate::trace::error::{Stopped, TraceError};
use crate::trace::input::Input;
use crate::trace::progress::{ProgressLine, go_on};
use crate::trace_file::TraceReader;

/// First bytes of a Parquet file (Apache Parquet format).
const PARQUET: &[u8] = b"PAR1";
/// blktrace's magic in its upper 24 bits (linux/blktrace_api.h), in either order of bytes.
const BLKTRACE: u32 = 0x6561_7400;
/// Where ftrace's text says what it is.
const BEGIN_BYTES: u64 = 4096;

/// Reads a trace and analyses it for what is wanted; `-` is standard input.
/// # Errors
/// The file cannot be read, is no trace, or is damaged: then there are no findings, not those of a part.
pub fn read(
    path: &Path,
    types: FileTypes,
    wanted: &AnalysisOptions<'_>,
) -> Result<(Findings, Texts), TraceError> {
    let input = Input::open(path)?;
    let begin = input.first_bytes(BEGIN_BYTES)?;
    let is_part = path.extension().is_some_and(|extension| extension == "part" || extension == "parquet");
    if begin.starts_with(PARQUET) || is_part {
        return own(input, types, wanted);
    }
    Foreign::new(path, input, &begin)?.analyse(types, wanted)
}

fn own(
    input: Input,
    types: FileTypes,
    wanted: &AnalysisOptions<'_>,
) -> Result<(Findings, Texts), TraceError> {
    let name = input.name().to_owned();
    let mut reader = TraceReader::new(name.clone(), input.into_file())?;
    let mut progress = ProgressLine::begin();
    let mut header = reader.header().clone();
    if header.recording.is_some() {
        return Err(TraceError::Recording(name));
    }
    if wanted.everybody {
        header.command_processes.clear();
    }
    let mut analysis = Analysis::new(&header, types, wanted)?;
    let mut events = Vec::new();
    while reader.next_batch(&mut events)? {
        go_on()?;
        let share = analysis.events() as f64 / reader.rows().max(1) as f64;
        progress.tell(|| reading(&name, share));
        let texts = reader.texts();
        for event in &events {
            analysis.event(event, texts);
        }
    }
    let texts = reader.texts().clone();
    Ok((analysis.finish(&header, &texts)?, texts))
}

fn reading(name: &str, share: f64) -> String {
    format!("reading {name}, {:.0} % done; Ctrl-C gives it up", share * 100.0)
}

/// What another program wrote.
struct Foreign {
    format: Format,
    inputs: Vec<Input>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Blktrace,
    Blkparse,
    Ftrace,
}

impl Foreign {
    fn new(path: &Path, input: Input, begin: &[u8]) -> Result<Self, TraceError> {
        let format = if is_blktrace(begin) {
            Format::Blktrace
        } else if is_ftrace(begin) {
            Format::Ftrace
        } else if begin.contains(&0) {
            return Err(TraceError::UnknownFormat(input.name().to_owned()));
        } else {
            Format::Blkparse
        };
        let others = if format == Format::Blktrace { parts_of(path) } else { Vec::new() };
        let inputs = if others.is_empty() {
            vec![input]
        } else {
            others.iter().map(|path| Input::open(path)).collect::<Result<_, _>>()?
        };
        Ok(Self { format, inputs })
    }

    /// It is read twice: its head is known at its end only, and nothing is made of a damaged one.
    fn analyse(
        &self,
        types: FileTypes,
        wanted: &AnalysisOptions<'_>,
    ) -> Result<(Findings, Texts), TraceError> {
        let mut progress = ProgressLine::begin();
        let header = self.import(&mut progress, 0.0, &mut |_, _| ControlFlow::Continue(()))?;
        let mut analysis = Analysis::new(&header, types, wanted)?;
        let mut names = Texts::default();
        let again = self.import(&mut progress, 0.5, &mut |event: &Event, texts: &Texts| {
            analysis.event(event, texts);
            names.catch_up(texts);
            ControlFlow::Continue(())
        })?;
        if again != header {
            let name = self.inputs.first().map_or("the trace", Input::name);
            return Err(TraceError::Changed(name.to_owned()));
        }
        Ok((analysis.finish(&header, &names)?, names))
    }

    /// How much of it the readers that were given out have taken, from 0 to 1.
    fn share(&self) -> f64 {
        let (read, all) = self
            .inputs
            .iter()
            .map(Input::position)
            .fold((0, 0), |(read, all), of_one| (read + of_one.0, all + of_one.1));
        read as f64 / all.max(1) as f64
    }

    /// One of two passes; the other half is done by `before`.
    fn import(
        &self,
        progress: &mut ProgressLine,
        before: f64,
        sink: &mut ImportSink<'_>,
    ) -> Result<Header, TraceError> {
        let name = self.inputs.first().map(Input::name).unwrap_or_default();
        let mut events = 0_u64;
        let mut sink = |event: &Event, texts: &Texts| {
            events += 1;
            if events.is_multiple_of(1 << 12) {
                if go_on().is_err() {
                    return ControlFlow::Break(());
                }
                progress.tell(|| reading(name, before + self.share() / 2.0));
            }
            sink(event, texts)
        };
        if self.format == Format::Blktrace {
            let files = self.inputs.iter().map(|input| Ok((input.name().to_owned(), input.rewound()?)));
            let files = files.collect::<Result<Vec<_>, TraceError>>()?;
            return blktrace::import(files, &mut sink).map_err(|error| match error {
                ImportError::Stopped => Stopped.into(),
                error => TraceError::Blktrace(error),
            });
        }
        let Some(input) = self.inputs.first() else { return Err(TraceError::NoEvent("no file".to_owned())) };
        let text = input.rewound()?;
        let found = match self.format {
            Format::Ftrace => ftrace::import(text, &mut sink),
            _ => blkparse::import(text, &mut sink),
        };
        let header = found.map_err(|error| match error {
            ImportError::Stopped => TraceError::from(Stopped),
            error => TraceError::Text { name: name.to_owned(), error },
        })?;
        let nothing = header.ending.as_ref().is_none_or(|ending| ending.events == 0);
        if nothing { Err(TraceError::NoEvent(name.to_owned())) } else { Ok(header) }
    }
}

fn is_blktrace(bytes: &[u8]) -> bool {
    let Some(&magic) = bytes.first_chunk::<4>() else { return false };
    [u32::from_le_bytes(magic), u32::from_be_bytes(magic)].iter().any(|magic| magic & !0xff == BLKTRACE)
}

/// ftrace's text says its tracer in the first line, or names events with a colon.
fn is_ftrace(begin: &[u8]) -> bool {
    let start = String::from_utf8_lossy(begin);
    start.starts_with("# tracer:") || start.contains(": block_") || start.contains(": jbd2_")
}

/// The files that blktrace wrote for each processor, this among them: NAME.blktrace.0, .1 .. None where it is not called so.
fn parts_of(path: &Path) -> Vec<PathBuf> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy());
    let Some(stem) = stem.filter(|stem| stem.ends_with(".blktrace")) else { return Vec::new() };
    let numbered = |number: u32| path.with_file_name(format!("{stem}.{number}"));
    (0..4096).map(numbered).filter(|part: &PathBuf| part.exists()).collect()
}
