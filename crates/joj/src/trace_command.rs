//! `joj trace` from its options to its exit code.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use joj_analysis::trace::file_type::FileTypes;

use crate::machine::signal;
use crate::show::{trace_steps, trace_text};
use crate::trace::live::{self, STORIES};
use crate::trace::saved;
use crate::trace_options::TraceOptions;

/// Exit code of a program that SIGINT ended, by the shell's convention.
const STOPPED_EXIT_CODE: u8 = 130;

/// Runs `joj trace`.
/// # Errors
/// What could not be done, where, and how to mend it.
pub fn run(options: &TraceOptions) -> Result<ExitCode, String> {
    if options.read.is_none() && options.command.is_empty() && options.pid.is_none() && options.for_ns.is_none() {
        return Err("nothing to trace: name a COMMAND behind `--`, a `--pid`, a time with `--for`, or a trace with `--read`"
            .to_owned());
    }
    let types = file_types(options.file_types.as_deref())?;
    signal::install().map_err(|error| format!("cannot catch Ctrl-C: {error}"))?;
    let stories = (options.skip, options.steps.unwrap_or(STORIES));
    let (findings, texts, exit_code) = match &options.read {
        Some(path) => {
            let (findings, texts) = saved::read(path, types, stories, &mut |_, _, _| Ok(()))?;
            (findings, texts, 0)
        }
        None => {
            let captured = live::run(options, types)?;
            let stopped = options.command.is_empty() && options.for_ns.is_some() && signal::is_stopped();
            (captured.findings, captured.texts, if stopped { STOPPED_EXIT_CODE } else { captured.exit_code })
        }
    };
    let to_stdout = options.json.as_deref() == Some(Path::new("-"));
    if let Some(path) = &options.json {
        let text = serde_json::to_string_pretty(&findings.summary).map_err(|error| error.to_string())?;
        if to_stdout {
            println!("{text}");
        } else {
            fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
    }
    if !to_stdout {
        print!("{}", trace_text::summary(&findings.summary));
        if options.steps.is_some() {
            print!("\n{}", trace_steps::stories(&findings.stories, &texts, &findings.summary.header));
        }
    }
    Ok(ExitCode::from(exit_code))
}

fn file_types(path: Option<&Path>) -> Result<FileTypes, String> {
    let Some(path) = path else { return Ok(FileTypes::default()) };
    let text = fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    FileTypes::with(&text).map_err(|error| format!("{}: {error}", path.display()))
}
