//! `joj trace-header`: what a trace would say of this machine, without a trace.

use std::process::ExitCode;

use joj_analysis::trace::header::Source;

use crate::cli::TraceHeaderOptions;
use crate::machine::{below, trace_header};

/// Prints the header as JSON, notes on standard error.
/// # Errors
/// The path lies on no disk, or the machine does not tell.
pub fn run(options: &TraceHeaderOptions) -> Result<ExitCode, String> {
    let below = options.path.as_ref().map(|path| below::disk_of_path(path)).transpose()?;
    for note in below.iter().flat_map(|below| &below.notes) {
        eprintln!("joj: {note}");
    }
    let disks = below.as_ref().map(|below| below.disks.as_slice());
    let mut header = trace_header::header(disks, &[], Source::default())?;
    let before = trace_header::counters(&header);
    header.ending = Some(trace_header::ending(&header, &before, trace_header::CaptureEnd::default()));
    let text = serde_json::to_string_pretty(&header).map_err(|error| error.to_string())?;
    println!("{text}");
    Ok(ExitCode::SUCCESS)
}
