//! `joj record` from its options to its exit code.

use std::process::ExitCode;

use crate::command_line::record::RecordOptions;
use crate::command_line::wrong_usage;
use crate::record::error::RecordError;
use crate::record::{import, live};

/// Runs `joj record`.
/// # Errors
/// What could not be done, where, and how to mend it.
pub fn run(options: &RecordOptions) -> Result<ExitCode, RecordError> {
    if let Some(text) = &options.import {
        return import::run(options, text);
    }
    if options.command.is_empty() && options.pid.is_none() {
        return Ok(wrong_usage(
            "nothing to record: name a COMMAND behind `--`, a `--pid`, or a text with `--import`",
        ));
    }
    match live::run(options) {
        Err(error) => {
            eprintln!("joj: {error}");
            Ok(ExitCode::from(error.exit_code()))
        }
        done => done,
    }
}
