//! `joj lab merge`: the parts of all shards become the result of one run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use joj_analysis::lab::program_crash::ProgramCrashResult;
use joj_analysis::lab::result::LabResult;
use joj_analysis::lab::shards::error::MergeError;
use joj_analysis::lab::shards::merge::{Merged, merge};
use thiserror::Error;

use crate::command_line::lab::MergeOptions;
use crate::machine::files::output_file::{self, OutputError};
use crate::show::lab::program_crash as crash_text;
use crate::show::lab::table;

/// Exit code where a promise was broken: a program that could not be cut has another one.
const BROKEN_EXIT_CODE: u8 = 3;

/// Why parts do not become a result.
#[derive(Debug, Error)]
pub enum JoinError {
    /// A part cannot be read.
    #[error("cannot read {}: {error}; give the files that `--shard I/N --json PART` wrote", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// They are no whole.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// The result cannot be printed or written.
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Runs `joj lab merge`.
/// # Errors
/// Which file is no part of one whole, and why; nothing is written then. Or what could not be written.
pub fn run(options: &MergeOptions) -> Result<ExitCode, JoinError> {
    output_file::check_apart(&options.parts, &options.json)?;
    let files = options.parts.iter().map(|file| read(file)).collect::<Result<Vec<_>, JoinError>>()?;
    let json = options.json.as_deref();
    match merge(&files)? {
        Merged::Plan(result) => {
            output_file::report(json, &result, || table::table(&result))?;
            Ok(plan_exit_code(&result))
        }
        Merged::ProgramCrash(result, recordings) => {
            output_file::report(json, &result, || crash_text::text(&result, &recordings))?;
            Ok(crash_exit_code(&result))
        }
    }
}

/// Name and text of a part.
fn read(file: &Path) -> Result<(String, String), JoinError> {
    let unreadable = |error| JoinError::Unreadable { file: file.to_owned(), error };
    // Where the bytes are no text, the parser says what is wrong with them.
    let bytes = fs::read(file).map_err(unreadable)?;
    Ok((file.display().to_string(), String::from_utf8_lossy(&bytes).into_owned()))
}

/// The exit code of a plan that came to its end.
pub fn plan_exit_code(result: &LabResult) -> ExitCode {
    if result.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The exit code of `joj crash` that came to its end.
pub fn crash_exit_code(result: &ProgramCrashResult) -> ExitCode {
    match (result.is_broken(), result.is_kept()) {
        (true, _) => ExitCode::from(BROKEN_EXIT_CODE),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::FAILURE,
    }
}
