//! `joj whatif` from its options to its exit code.

use std::collections::HashSet;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use joj_analysis::bench::promise::Reservation;
use joj_analysis::recording::Recording;
use joj_analysis::recording::call::RecordedCall;
use joj_analysis::recording::whatif::advice;
use joj_analysis::recording::whatif::commit_calls::ClosesLeftOut;
use joj_analysis::recording::whatif::configuration::Configuration;
use joj_analysis::recording::whatif::forecast;
use joj_analysis::recording::whatif::left_out::left_out;
use joj_analysis::recording::whatif::outcome::{WHATIF_FORMAT, WHATIF_VERSION, WhatifDatabase, WhatifResult};
use joj_analysis::recording::whatif::sync_spans::threads_sync_together;
use joj_analysis::recording::whatif::variants;
use serde::Serialize;

use crate::command_line::record::{MethodChoice, RecordOptions};
use crate::command_line::replay::OrderChoice;
use crate::command_line::whatif::WhatifOptions;
use crate::command_line::wrong_usage;
use crate::machine::files::output_file::{self, OutputError};
use crate::machine::files::place::{self, Place};
use crate::machine::files::standard_output::ToStandardError;
use crate::machine::files::work_dir::WorkDir;
use crate::machine::proc::signal;
use crate::machine::proc::watched_command::keep_descriptors;
use crate::record::error::RecordError;
use crate::record::live;
use crate::replay::error::ReplayError;
use crate::replay::{plan, room};
use crate::show::text::{count, duration};
use crate::show::whatif as shown;
use crate::show::words::counted;
use crate::trace_file::TraceWriter;
use crate::whatif::beside;
use crate::whatif::call_replay::{InMemory, bytes_needed};
use crate::whatif::directory_copy::place::LEVELS;
use crate::whatif::error::WhatifError;
use crate::whatif::left_behind::LeftBehind;
use crate::whatif::rerun::Rerun;
use crate::whatif::rounds::{self, RoundsOutcome};
use crate::whatif::settings::{Commits, WhatifSettings};
use crate::workloads;

/// Room for calls that joj has not fetched yet, where a command is recorded.
const BUFFER_BYTES: u64 = 32 << 20;
/// Runs `joj whatif`.
/// # Errors
/// What could not be done, where, and how to mend it.
pub fn run(options: &WhatifOptions) -> Result<ExitCode, WhatifError> {
    if let Some(wrong) = check(options)? {
        return Ok(wrong);
    }
    if let Some(file) = &options.row.beside_to {
        return leave_beside(options, file).map(|()| ExitCode::SUCCESS).or_else(ended);
    }
    match result(options) {
        Err(error) => ended(error),
        Ok(result) => {
            let forms = Forms { text: shown::text, markdown: shown::markdown, page: shown::page::page };
            report(options, &result, &forms)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Looks whether the results can be written, and catches Ctrl-C. Gives the exit code where the command line is wrong.
/// # Errors
/// A file that cannot be written.
pub fn check(options: &WhatifOptions) -> Result<Option<ExitCode>, WhatifError> {
    if let Some(what) = output_file::both_printed(&options.json, &options.markdown) {
        return Ok(Some(wrong_usage(what)));
    }
    let outputs = [&options.output, &options.json, &options.markdown, &options.html];
    output_file::check_apart(&options.recording, outputs.into_iter().flatten())?;
    signal::install().map_err(ReplayError::Signals)?;
    Ok(None)
}

/// The exit code of what was stopped, or of a command that could not be recorded.
/// # Errors
/// All others.
pub fn ended(error: WhatifError) -> Result<ExitCode, WhatifError> {
    match error {
        WhatifError::Replay(ReplayError::Stopped) => {
            eprintln!("joj: {}", ReplayError::Stopped);
            Ok(ExitCode::from(signal::STOPPED_EXIT_CODE))
        }
        WhatifError::Record(error) => {
            eprintln!("joj: {error}");
            Ok(ExitCode::from(error.exit_code()))
        }
        error => Err(error),
    }
}

/// A result for people.
pub struct Forms<T> {
    /// For a terminal.
    pub text: fn(&T) -> String,
    /// In Markdown.
    pub markdown: fn(&T) -> String,
    /// As an HTML page.
    pub page: fn(&T) -> String,
}

/// Writes and prints a result as the options say.
/// # Errors
/// Where it cannot be written.
pub fn report<T: Serialize>(
    options: &WhatifOptions,
    result: &T,
    forms: &Forms<T>,
) -> Result<(), WhatifError> {
    let written = output_file::write_where(options.html.as_deref(), || (forms.page)(result));
    let reported = output_file::report_with_markdown(
        options.json.as_deref(),
        options.markdown.as_deref(),
        result,
        || (forms.text)(result),
        || (forms.markdown)(result),
    );
    Ok(written.and(reported)?)
}

fn result(options: &WhatifOptions) -> Result<WhatifResult, WhatifError> {
    // Before anything is made in it.
    let origin = options.rerun.then(origin).transpose()?;
    // A directory of joj's own, so that all goes at the end, whatever that is.
    // By its whole name: while the command is recorded in a copy, joj stands there, too.
    let whole = options.directory.canonicalize();
    let work_dir = plan::make_named(whole.as_ref().unwrap_or(&options.directory), "joj-whatif")?;
    place::warn(&options.directory);
    let Some((origin, facts)) = origin else {
        let recorded = recorded(options)?;
        let recording = plan::read(&recorded.file)?;
        return measure(options, &recorded, recording, work_dir.path());
    };
    let words = live::words(&options.command)?;
    let rerun = Rerun { words, origin, facts, directory: work_dir.path() };
    if let Some((word, whole)) = rerun.outside() {
        return Err(WhatifError::Outside { word: word.to_owned(), whole });
    }
    rerun.bytes()?;
    let mut left = LeftBehind::watch();
    let copy = rerun.copy(&mut left)?;
    let recorded = recorded_in(options, copy.path());
    left.clear(&copy);
    let recorded = recorded?;
    let recording = plan::read(&recorded.file)?;
    // The copy goes: people, and their patterns, know the files by the names of the directory itself. So does a recording that is kept.
    let mut named = recording.clone();
    variants::named_below(&mut named, &copy.names(&rerun.origin));
    if options.output.is_some() {
        let writer = TraceWriter::create_recording(&recorded.file).map_err(RecordError::from)?;
        writer.write_recording(&named).map_err(RecordError::from)?;
    }
    if let Some(path) = rerun.written_itself(&recording, &copy) {
        return Err(WhatifError::Original { path, levels: LEVELS });
    }
    let mut result = measure(options, &recorded, named, work_dir.path())?;
    let rows: Vec<Configuration> = result.rows.iter().map(|row| row.configuration).collect();
    let recorded_there = (&copy, recorded.exit_code);
    let found = rerun.run(&rows, &recording, recorded_there, options.rounds, &mut left)?;
    for (row, found) in result.rows.iter_mut().zip(found) {
        row.rerun = Some(found);
    }
    left.remove(copy);
    result.notes.extend(left.notes());
    result.advice = advice::sentences(&result);
    Ok(result)
}

/// The directory in which joj stands. From now on programs get no descriptor of its files.
fn origin() -> Result<(PathBuf, Metadata), ReplayError> {
    // One that joj was started with may be of a file in it.
    keep_descriptors();
    let origin = std::env::current_dir().map_err(ReplayError::WorkingDirectory)?;
    let facts = std::fs::metadata(&origin).map_err(ReplayError::WorkingDirectory)?;
    Ok((origin, facts))
}

/// The recording of the command in another directory than joj's.
fn recorded_in(options: &WhatifOptions, directory: &Path) -> Result<Recorded, WhatifError> {
    let own = std::env::current_dir().map_err(ReplayError::WorkingDirectory)?;
    let output = options.output.as_ref().map(|file| own.join(file));
    std::env::set_current_dir(directory).map_err(ReplayError::WorkingDirectory)?;
    let recorded = command_recorded(options, output);
    std::env::set_current_dir(own).map_err(ReplayError::WorkingDirectory)?;
    recorded
}

/// A recording, and what it is called.
#[derive(Debug)]
pub struct Recorded {
    /// Its file.
    pub file: PathBuf,
    /// The file as it was given, or the command.
    pub name: String,
    /// How the command ended; 0 without one.
    pub exit_code: i32,
    /// Where the file is, if nobody wants it.
    _scratch: Option<WorkDir>,
}

impl Recorded {
    /// A note where the command failed: then it may have done less than it does else.
    pub fn how_it_ended(&self) -> Option<String> {
        let code = self.exit_code;
        (code != 0)
            .then(|| format!("The command ended with exit code {code}: what it did until then is replayed."))
    }
}

/// The recording that is given, or that of the command.
/// # Errors
/// The command cannot be recorded.
pub fn recorded(options: &WhatifOptions) -> Result<Recorded, WhatifError> {
    match &options.recording {
        Some(file) => {
            let name = workloads::told(file);
            Ok(Recorded { file: file.clone(), name, exit_code: 0, _scratch: None })
        }
        None => command_recorded(options, options.output.clone()),
    }
}

fn command_recorded(options: &WhatifOptions, output: Option<PathBuf>) -> Result<Recorded, WhatifError> {
    let scratch = plan::make_named(&std::env::temp_dir(), "joj-whatif")?;
    let file = output.unwrap_or_else(|| scratch.path().join("recording.joj"));
    let exit_code = record(options, &file)?;
    let words: Vec<_> = options.command.iter().map(|word| word.to_string_lossy()).collect();
    Ok(Recorded { file, name: words.join(" "), exit_code, _scratch: Some(scratch) })
}

/// Records the command: its exit code.
fn record(options: &WhatifOptions, file: &Path) -> Result<i32, WhatifError> {
    let recording = RecordOptions {
        import: None,
        pid: None,
        for_ns: None,
        method: MethodChoice::Auto,
        output: file.to_owned(),
        buffer_bytes: BUFFER_BYTES,
        format: None,
        hide_names: false,
        command: options.command.clone(),
    };
    let is_taken = options.json.iter().chain(&options.markdown).any(|file| output_file::is_stdout(file));
    let printed_elsewhere =
        is_taken.then(ToStandardError::begin).transpose().map_err(OutputError::Standard)?;
    let exit_code = live::to_file(&recording)?;
    drop(printed_elsewhere);
    if signal::is_stopped() {
        return Err(ReplayError::Stopped.into());
    }
    Ok(exit_code)
}

fn measure(
    options: &WhatifOptions,
    recorded: &Recorded,
    recording: Recording,
    directory: &Path,
) -> Result<WhatifResult, WhatifError> {
    let mut settings = WhatifSettings::of(recording, options, directory);
    if let Some(file) = &options.row.beside {
        let text =
            std::fs::read(file).map_err(|error| ReplayError::of_file(directory, file.clone(), error))?;
        settings.take_beside(serde_json::from_slice(&text).map_err(OutputError::Json)?);
    }
    let needed_bytes = bytes_needed(&settings.recorded, InMemory::Nothing);
    room::check(directory, needed_bytes, "the files of the recording")
        .map_err(|error| error.where_emulated(settings.alone))?;
    let measured = rounds::run(&settings, options.rounds, directory)?;
    let mut result = told(recorded.name.clone(), &options.directory, &settings, measured);
    result.notes.splice(0..0, recorded.how_it_ended());
    Ok(result)
}

/// Leaves in a file what of a row is measured apart from its commits, or why it cannot be had.
fn leave_beside(options: &WhatifOptions, file: &Path) -> Result<(), WhatifError> {
    let work_dir = plan::make_named(&options.directory, "joj-whatif")?;
    let recorded = recorded(options)?;
    let settings = WhatifSettings::of(plan::read(&recorded.file)?, options, work_dir.path());
    let found = beside::measure(&settings, work_dir.path());
    if signal::is_stopped() {
        return Err(ReplayError::Stopped.into());
    }
    Ok(output_file::write(file, &serde_json::to_string(&found).map_err(OutputError::Json)?)?)
}

/// The result.
fn told(name: String, directory: &Path, settings: &WhatifSettings, measured: RoundsOutcome) -> WhatifResult {
    let recording = &settings.recorded.recording;
    let is_made = |call: &&RecordedCall| call.kind.is_replayed();
    let calls: Vec<&RecordedCall> = recording.calls.iter().filter(is_made).collect();
    let mut threads: Vec<u32> = calls.iter().map(|call| call.thread).collect();
    threads.sort_unstable();
    threads.dedup();
    let databases =
        settings.commits.as_ref().map_or_else(|_| Vec::new(), |all| WhatifDatabase::of(&all.found));
    let sqlite = measured.sqlite.clone();
    let place = Place::of(directory);
    let mut notes = notes(recording, (directory, &place), settings, &measured);
    // Calls and commits have some in common.
    let mut known = HashSet::new();
    notes.retain(|note| known.insert(note.clone()));
    let mut result = WhatifResult {
        format: WHATIF_FORMAT.to_owned(),
        version: WHATIF_VERSION,
        recording: name,
        place: place_line(directory, &place),
        calls: calls.len() as u64,
        threads: threads.len() as u64,
        recorded_ns: forecast::recorded_ns(&recording.calls),
        sqlite,
        rounds: measured.rounds,
        emulated: false,
        left_out: left_out(recording),
        lacks_closes: settings.commits.as_ref().is_ok_and(|commits| commits.calls.left_out.are_many),
        databases,
        rows: measured.rows,
        parts: measured.breakdown.parts(),
        advice: Vec::new(),
        notes,
    };
    result.advice = advice::sentences(&result);
    result
}

fn place_line(directory: &Path, place: &Place) -> String {
    let device = place.device.as_ref().map_or_else(String::new, |device| format!(" on {}", device.name));
    format!("{}, {}{device}", directory.display(), place.filesystem.kind)
}

/// Said where the program's threads waited for each other's locks: who gets one next is chance.
fn waits_for_locks(settings: &WhatifSettings) -> Option<String> {
    let recorded = &settings.recorded;
    let waited_ns: u64 = recorded.order.wakeups.values().map(|wait| wait.asked_ns).sum();
    let recorded_ns = forecast::recorded_ns(&recorded.recording.calls);
    (waited_ns > recorded_ns / 20).then(|| {
        format!(
            "Its threads waited {} in all for locks of files that others of them held. Here they get them in the recorded order. In the \
             program that is chance, so rows without syncs and with WAL may be twice too long (docs/whatif.md).",
            duration(waited_ns)
        )
    })
}

/// Said where the program's threads sleep, or wait until a limit is over: they may keep a rate or a schedule.
fn waits_for_time(settings: &WhatifSettings) -> Option<String> {
    let calls = &settings.recorded.recording.calls;
    let waited_ns: u64 = calls.iter().filter(|call| call.waits_in_vain()).map(|call| call.bytes).sum();
    (waited_ns > forecast::recorded_ns(calls) / 20).then(|| {
        format!(
            "Its threads slept, or waited until a limit was over, for {} in all. Who keeps a rate or a schedule does so for longer where \
             storage takes less: then rows are too short, and may not be faster (docs/whatif.md).",
            duration(waited_ns)
        )
    })
}

/// What to know of the figures.
fn notes(
    recording: &Recording,
    (directory, place): (&Path, &Place),
    settings: &WhatifSettings,
    measured: &RoundsOutcome,
) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(reservation) = Reservation::of(&place.filesystem, place.device.as_ref()) {
        let what = reservation.what(&directory.display().to_string());
        let of_ram = if reservation == Reservation::Memory { " So RAM changes little here." } else { "" };
        notes.push(format!("{what}.{of_ram}"));
    }
    if settings.order == OrderChoice::Fast && threads_sync_together(recording) {
        notes.push(
            "Several threads sync while others do. Here their syncs meet more often than in the program, as nothing waits for think time: \
             --think-time measures with it, for as long as the program takes for each row and round."
                .to_owned(),
        );
    }
    notes.extend(waits_for_locks(settings));
    notes.extend(waits_for_time(settings));
    notes.extend(measured.notes.iter().cloned());
    let header = &recording.header;
    if let Some(facts) = &header.recording {
        let told = facts.not_replayed.iter().map(|(what, calls)| format!("{} {what}", count(*calls)));
        let told: Vec<String> = told.collect();
        if !told.is_empty() {
            notes.push(format!("Not replayed: {}.", told.join("; ")));
        }
    }
    notes.extend(header.inferred.iter().cloned());
    if let (Ok(commits), Some(_)) = (&settings.commits, &measured.sqlite) {
        notes.extend(closes_left_out(commits));
    }
    let (Ok(commits), Some(made)) = (&settings.commits, &measured.commit_syncs) else { return notes };
    notes.extend(commits.found.notes.iter().cloned());
    if cfg!(debug_assertions) {
        notes.push(
            "This joj is a debug build. Its own processor time is in the rows with commits, and makes them too long.".to_owned(),
        );
    }
    let unknown = commits.found.parts().filter(|part| !part.pages_known).count() as u64;
    if unknown > 0 {
        let unknown = count(unknown);
        notes.push(format!("The recording tells of {unknown} commits how many pages they wrote, not which."));
    }
    let recorded = &commits.found.syncs;
    if recorded.fsync > 0 && recorded.fdatasync == 0 && made.fsync == 0 {
        notes.push(
            "The program's SQLite calls fsync, and the one of the rows with commits fdatasync, which may be faster: --sqlite FILE.so takes \
             the program's."
                .to_owned(),
        );
    }
    notes
}

/// What to know of rows with commits that lack closes between them. Where there are many, one that seems faster may be slower.
fn closes_left_out(commits: &Commits) -> Option<String> {
    let ClosesLeftOut { closes, are_many } = commits.calls.left_out;
    let left_out = counted(closes, "close", "closes");
    let commits_in_all = counted(commits.found.commits.len() as u64, "commit", "commits");
    let truth = if are_many {
        "too short, and in truth may be slower than the program as it is"
    } else {
        "too short by that"
    };
    (closes > 0).then(|| {
        format!(
            "The rows with commits are {truth}: they leave out {left_out} of a database with {commits_in_all}, and the syncs and KiB of those. \
             The program opens it again later: with a log each such close copies the log to the database, and the next commit makes the log \
             anew."
        )
    })
}
