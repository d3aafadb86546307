//! A saved trace, read from its first event to its findings.

use std::path::Path;

use joj_analysis::trace::event::Event;
use joj_analysis::trace::file_type::FileTypes;
use joj_analysis::trace::header::Header;
use joj_analysis::trace::texts::Texts;

use crate::trace::analysis::{Analysis, Findings};
use crate::trace_file::reader::TraceReader;

/// Reads a trace and analyses it; `stories`: how many transactions to skip and to keep. `also` sees each event first.
/// # Errors
/// The file cannot be read, is no trace, or is damaged: then there are no findings, not those of a part.
pub fn read(
    path: &Path,
    types: FileTypes,
    stories: (usize, usize),
    also: &mut dyn FnMut(&Header, &Event, &Texts) -> Result<(), String>,
) -> Result<(Findings, Texts), String> {
    let mut reader = TraceReader::open(path)?;
    let header = reader.header().clone();
    let mut analysis = Analysis::new(&header, types, stories);
    let mut events = Vec::new();
    while reader.next_batch(&mut events)? {
        let texts = reader.texts();
        for event in &events {
            also(&header, event, texts)?;
            analysis.event(event, texts);
        }
    }
    let texts = reader.texts().clone();
    Ok((analysis.finish(&header, &texts), texts))
}
