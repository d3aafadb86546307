//! `joj replay` from its options to its exit code.

use std::path::Path;
use std::process::ExitCode;

use joj_analysis::recording::file_tree::TreeEntry;
use joj_analysis::recording::outcome::ReplayOutcome;

use crate::command_line::replay::ReplayOptions;
use crate::command_line::wrong_usage;
use crate::machine::files::output_file;
use crate::machine::files::place;
use crate::machine::files::work_dir::WorkDir;
use crate::machine::proc::signal;
use crate::machine::replayer::trees::{self, Roots};
use crate::replay::apart::Apart;
use crate::replay::check;
use crate::replay::error::ReplayError;
use crate::replay::files;
use crate::replay::page_transactions;
use crate::replay::plan::{self, Plan};
use crate::replay::room;
use crate::replay::run;
use crate::show::replay as replay_text;

/// Runs `joj replay`.
/// # Errors
/// What could not be done, where, and how to mend it.
pub fn run(options: &ReplayOptions) -> Result<ExitCode, ReplayError> {
    output_file::check_apart([&options.recording], options.json.iter().chain(&options.record))?;
    signal::install().map_err(ReplayError::Signals)?;
    let Some(directory) = options.directory.as_deref() else { return Ok(wrong_usage("DIR is missing")) };
    place::warn(directory);
    if let Some(mode) = options.mode {
        return match page_transactions::run(options, directory, mode) {
            Err(ReplayError::Stopped) => Ok(stopped()),
            outcome => outcome,
        };
    }
    let outcome = match replay(options, directory) {
        Err(ReplayError::Stopped) => return Ok(stopped()),
        outcome => outcome?,
    };
    output_file::report(options.json.as_deref(), &outcome, || replay_text::outcome(&outcome))?;
    let differs = outcome.differences.as_ref().is_some_and(|differences| !differences.is_empty());
    Ok(if differs { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Reads the recording as a replay does. Gives how many bytes its files have before the first call, or its databases with `--as`.
/// # Errors
/// Why it cannot be replayed so.
pub fn bytes_needed(options: &ReplayOptions) -> Result<u64, ReplayError> {
    if options.mode.is_some() {
        return page_transactions::bytes_needed(options);
    }
    bytes_before(&options.recording, options.compat)
}

/// Reads a recording for a replay of its calls. Gives how many bytes its files have before the first one.
/// # Errors
/// Why it cannot be replayed so.
pub fn bytes_before(recording: &Path, is_compat: bool) -> Result<u64, ReplayError> {
    let plan = Plan::read(recording, is_compat)?;
    Ok(trees::bytes(&plan.before, |_| true).saturating_add(plan::nameless_bytes(&plan.recording)))
}

fn stopped() -> ExitCode {
    eprintln!("joj: {}", ReplayError::Stopped);
    ExitCode::from(signal::STOPPED_EXIT_CODE)
}

/// What is made goes at the end, whatever that is, unless it was asked to stay.
fn replay(options: &ReplayOptions, directory: &Path) -> Result<ReplayOutcome, ReplayError> {
    let plan = Plan::read(&options.recording, options.compat)?;
    // Where the files stay they are together.
    let mut apart = if options.keep { Apart::default() } else { Apart::of(&plan.recording, &plan.before) };
    let size = |is_apart: bool| trees::bytes(&plan.before, |path| apart.has(path) == is_apart);
    let (here_bytes, other_bytes) = (size(false), size(true));
    // Mostly memory: it is not filled up.
    let temporary = std::env::temp_dir();
    let has_room = room::check(&temporary, other_bytes.saturating_mul(2), "").is_ok();
    let other_dir = if has_room && other_bytes > 0 { plan::make_directory(&temporary).ok() } else { None };
    if other_dir.is_none() {
        apart = Apart::default();
    }
    let needed_bytes = if other_dir.is_some() { here_bytes } else { here_bytes + other_bytes };
    let needed_bytes = needed_bytes.saturating_add(plan::nameless_bytes(&plan.recording));
    room::check(directory, needed_bytes, "the files that were there before")?;
    let work_dir = plan::make_directory(directory)?;
    let other = other_dir.as_ref().map_or(work_dir.path(), WorkDir::path);
    let is_other = |path: &str| apart.has(path);
    let roots = Roots { directory: work_dir.path(), other, is_other: &is_other };
    files::make(&plan, roots, directory)?;
    let mut outcome = run::run(&plan, roots, options.order)?.outcome;
    let is_apart =
        |(path, entry): &(&String, &TreeEntry)| matches!(entry, TreeEntry::File(_)) && apart.has(path);
    outcome.files_apart = plan.before.iter().filter(is_apart).count() as u64;
    if options.check {
        let problem = |(path, error)| ReplayError::of_file(directory, path, error);
        let mut found = trees::list(work_dir.path()).map_err(problem)?;
        if let Some(other_dir) = &other_dir {
            found.extend(trees::list(other_dir.path()).map_err(problem)?);
        }
        outcome.differences = Some(check::differences(&plan.after, &found));
    }
    if options.keep {
        outcome.kept = Some(work_dir.keep().display().to_string());
    }
    Ok(outcome)
}
