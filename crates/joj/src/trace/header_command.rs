//! `joj trace-header`: what a trace would say of this machine, without a trace.

use std::path::Path;
use std::process::ExitCode;

use joj_analysis::trace::event::SECTOR_BYTES;
use joj_analysis::trace::header::{Header, Source};
use serde_json::{Value, json};

use crate::command_line::TraceHeaderOptions;
use crate::machine::capture::below;
use crate::machine::capture::trace_header;
use crate::machine::files::extents;
use crate::machine::files::output_file;
use crate::trace::error::TraceError;

/// Prints the header, or a file's extents, as JSON; notes on standard error.
/// # Errors
/// The path lies on no disk, or the machine does not tell.
pub fn run(options: &TraceHeaderOptions) -> Result<ExitCode, TraceError> {
    let below = options.path.as_ref().map(|path| below::disk_of_path(path)).transpose()?;
    for note in below.iter().flat_map(|below| &below.notes) {
        eprintln!("joj: {note}");
    }
    let disks = below.as_ref().map(|below| below.disks.as_slice());
    let mut header = trace_header::header(disks, &[], Source::default())?;
    let text = match (&options.path, &below) {
        (Some(path), Some(below)) if options.extents => {
            serde_json::to_string_pretty(&places(path, below, &header)?)
        }
        _ => {
            let now = trace_header::counters(&header);
            header.ending = Some(trace_header::ending(&now, &now, trace_header::CaptureEnd::default()));
            serde_json::to_string_pretty(&header)
        }
    };
    output_file::print(&format!("{}\n", text?))?;
    Ok(ExitCode::SUCCESS)
}

/// The file's extents; without a sector where the filesystem names no place on one disk.
fn places(path: &Path, below: &below::Below, header: &Header) -> Result<Vec<Value>, TraceError> {
    let found =
        extents::extents_of(path).map_err(|error| TraceError::Extents { path: path.to_owned(), error })?;
    // Btrfs's extents are in an address space of its own.
    let is_btrfs = header.filesystem(below.filesystem).is_some_and(|filesystem| filesystem.kind == "btrfs");
    let disk = below.devices.first().filter(|_| !is_btrfs).and_then(|number| header.disk(*number));
    let place = |extent: &extents::FileExtent| {
        let disk = disk.filter(|_| extent.flags.has_place());
        let sector = disk.map(|disk| disk.start_sector + extent.physical_byte / SECTOR_BYTES);
        json!({ "offset": extent.offset, "bytes": extent.bytes, "disk": disk.map(|disk| disk.whole), "sector": sector })
    };
    Ok(found.iter().map(place).collect())
}
