//! Parts of either kind, as their files have them, become a result.

use std::cmp::Ordering;

use serde::Deserialize;

use crate::lab::program_crash::{PROGRAM_CRASH_FORMAT, ProgramCrashResult};
use crate::lab::result::{LabResult, RESULT_FORMAT};
use crate::lab::shards::error::MergeError;
use crate::lab::shards::plan::LabPart;
use crate::lab::shards::program_crash::ProgramCrashPart;
use crate::lab::shards::whole::{Part, whole};

/// The result of a run that was shared out.
#[derive(Debug, Clone, PartialEq)]
pub enum Merged {
    /// Of `joj lab run`.
    Plan(LabResult),
    /// Of `joj crash`, and the directory of its recordings.
    ProgramCrash(ProgramCrashResult, String),
}

/// What says which format a file is.
#[derive(Deserialize)]
struct PartHead {
    format: String,
    version: u32,
}

/// The result of which these are the parts. `files`: name and text of each, in any order.
/// # Errors
/// Where they are not one of each shard of one run.
pub fn merge(files: &[(String, String)]) -> Result<Merged, MergeError> {
    let mut formats = Vec::new();
    for (file, text) in files {
        formats.push(checked_format(file, text)?);
    }
    let Some(format) = formats.first() else { return Err(MergeError::Nothing) };
    if let Some(other) = formats.iter().position(|other| other != format) {
        return Err(MergeError::Mixed { first: files[0].0.clone(), file: files[other].0.clone() });
    }
    if *format == LabPart::FORMAT {
        return Ok(Merged::Plan(LabPart::join(whole(files)?)));
    }
    let (result, recordings) = ProgramCrashPart::join(whole(files)?);
    Ok(Merged::ProgramCrash(result, recordings))
}

/// The format of a file, whose version this joj reads.
fn checked_format(file: &str, text: &str) -> Result<&'static str, MergeError> {
    let head: PartHead =
        serde_json::from_str(text).map_err(|error| MergeError::NoHead { file: file.to_owned(), error })?;
    let known = [(LabPart::FORMAT, LabPart::VERSION), (ProgramCrashPart::FORMAT, ProgramCrashPart::VERSION)];
    let Some((format, newest)) = known.into_iter().find(|(format, _)| *format == head.format) else {
        return Err(match head.format.as_str() {
            RESULT_FORMAT | PROGRAM_CRASH_FORMAT => MergeError::Whole { file: file.to_owned() },
            _ => MergeError::Format { file: file.to_owned(), format: head.format },
        });
    };
    let (file, version) = (file.to_owned(), head.version);
    match version.cmp(&newest) {
        Ordering::Less => Err(MergeError::Old { file, version, newest }),
        Ordering::Equal => Ok(format),
        Ordering::Greater => Err(MergeError::Version { file, version, newest }),
    }
}
