//! A saved trace, of joj or of another program, read from its first event to its findings.

use std::fs;
use std::path::{Path, PathBuf};

use joj_analysis::trace::event::Event;
use joj_analysis::trace::file_type::FileTypes;
use joj_analysis::trace::header::Header;
use joj_analysis::trace::import::{Sink, blkparse, blktrace, ftrace};
use joj_analysis::trace::texts::Texts;

use crate::trace::analysis::{Analysis, Findings, Wanted};
use crate::trace_file::TraceReader;

/// First bytes of a Parquet file (Apache Parquet format).
const PARQUET: &[u8] = b"PAR1";
/// blktrace's magic in its upper 24 bits (linux/blktrace_api.h), in either order of bytes.
const BLKTRACE: u32 = 0x6561_7400;

/// Reads a trace and analyses it for what is wanted.
/// # Errors
/// The file cannot be read, is no trace, or is damaged: then there are no findings, not those of a part.
pub fn read(path: &Path, types: FileTypes, wanted: &Wanted<'_>) -> Result<(Findings, Texts), String> {
    let begin = first_bytes(path)?;
    let is_part = path.extension().is_some_and(|extension| extension == "part" || extension == "parquet");
    if begin.starts_with(PARQUET) || is_part {
        return own(path, types, wanted);
    }
    foreign(path, &begin, types, wanted)
}

fn first_bytes(path: &Path) -> Result<Vec<u8>, String> {
    use std::io::Read;
    let problem = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    let mut bytes = Vec::new();
    fs::File::open(path).map_err(problem)?.take(8).read_to_end(&mut bytes).map_err(problem)?;
    Ok(bytes)
}

fn own(path: &Path, types: FileTypes, wanted: &Wanted<'_>) -> Result<(Findings, Texts), String> {
    let mut reader = TraceReader::open(path)?;
    let header = reader.header().clone();
    let mut analysis = Analysis::new(&header, types, wanted)?;
    let mut events = Vec::new();
    while reader.next_batch(&mut events)? {
        let texts = reader.texts();
        for event in &events {
            analysis.event(event, texts);
        }
    }
    let texts = reader.texts().clone();
    Ok((analysis.finish(&header, &texts)?, texts))
}

/// What another program wrote is read twice: its head is known at its end only.
fn foreign(
    path: &Path,
    begin: &[u8],
    types: FileTypes,
    wanted: &Wanted<'_>,
) -> Result<(Findings, Texts), String> {
    let files = parts_of(path, begin)?;
    let header = import(&files, &mut |_, _| Ok(()))?;
    let mut analysis = Analysis::new(&header, types, wanted)?;
    let mut names = Texts::default();
    import(&files, &mut |event: &Event, texts: &Texts| {
        analysis.event(event, texts);
        names.catch_up(texts);
        Ok(())
    })?;
    Ok((analysis.finish(&header, &names)?, names))
}

fn import(files: &[(String, Vec<u8>)], sink: &mut Sink<'_>) -> Result<Header, String> {
    let Some((name, bytes)) = files.first() else { return Err("no file".to_owned()) };
    if is_blktrace(bytes) {
        let files: Vec<(&str, &[u8])> =
            files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
        return blktrace::import(&files, sink);
    }
    let found = if is_ftrace(bytes) { ftrace::import(bytes, sink) } else { blkparse::import(bytes, sink) };
    let header = found.map_err(|error| format!("{name}: {error}"))?;
    let nothing = header.ending.as_ref().is_none_or(|ending| ending.events == 0);
    if nothing { Err(format!("{name}: no event in it; is it a trace?")) } else { Ok(header) }
}

fn is_blktrace(bytes: &[u8]) -> bool {
    let Some(&magic) = bytes.first_chunk::<4>() else { return false };
    [u32::from_le_bytes(magic), u32::from_be_bytes(magic)].iter().any(|magic| magic & !0xff == BLKTRACE)
}

/// ftrace's text says its tracer in the first line, or names events with a colon.
fn is_ftrace(bytes: &[u8]) -> bool {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]).into_owned();
    start.starts_with("# tracer:") || start.contains(": block_") || start.contains(": jbd2_")
}

/// The file, and for blktrace the files of the other processors beside it: NAME.blktrace.0, .1 ..
fn parts_of(path: &Path, begin: &[u8]) -> Result<Vec<(String, Vec<u8>)>, String> {
    let mut paths = vec![path.to_owned()];
    let stem = path.file_stem().filter(|stem| stem.to_string_lossy().ends_with(".blktrace"));
    if is_blktrace(begin)
        && let Some(stem) = stem
    {
        let numbered = |number: u32| path.with_file_name(format!("{}.{number}", stem.to_string_lossy()));
        paths = (0..4096).map(numbered).filter(|part: &PathBuf| part.exists()).collect();
    }
    let read = |path: &PathBuf| match fs::read(path) {
        Ok(bytes) => Ok((path.display().to_string(), bytes)),
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
    };
    paths.iter().map(read).collect()
}
