//! `joj crash` from its options to its exit code. Top to bottom:
//!
//! ```text
//! shard        what a shard leaves for `joj lab merge`
//! session      the program is recorded, its states are looked at, the shortest are found
//! found        what guests found, as the result has it
//! recordings   where recordings are, who makes them, and the states of them that a user names
//! ```

mod shard;
mod session;
mod found;
mod recordings;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use joj_analysis::bench::key::Word;
use joj_analysis::filesystem::Filesystem;
use joj_analysis::lab::program_crash::{
    PROGRAM_CRASH_FORMAT, PROGRAM_CRASH_VERSION, ProgramCrashResult, WordPlace,
};
use joj_analysis::lab::result::LabMachine;
use joj_analysis::lab::shards::program_crash::ProgramCrashPart;

use crate::command_line::lab::program_crash::ProgramCrashOptions;
use crate::command_line::{named_twice, wrong_usage};
use crate::lab::commands::error::LabError;
use crate::lab::commands::host_command::{
    Hidden, HostWords, command, environment, hidden, hidden_in_shell, named_files, program_without_text,
};
use crate::lab::commands::merge::crash_exit_code;
use crate::lab::commands::parts::{self, Needed, contents};
use crate::lab::commands::program_crash::recordings::{
    LoadedRecordings, Recordings, named_state, not_recorded,
};
use crate::lab::commands::program_crash::session::CutSession;
use crate::lab::error::{SessionError, TimeLimit};
use crate::lab::guest_pool;
use crate::lab::image::archive::Contents;
use crate::lab::job::{LabVolume, volumes};
use crate::lab::jobs::program_crash::{CutState, GuestSeconds, ProgramCrashJob};
use crate::lab::life::SessionEnd;
use crate::lab::machine;
use crate::lab::recorded_log::RECORDINGS_DIRECTORY;
use crate::lab::work::program_crash::ProgramCrashWork;
use crate::machine::files::output_file;
use crate::machine::proc::signal;
use crate::show::lab::program_crash as show;

/// Capacity of the device: room for files, and what mkfs.xfs asks for.
const DEVICE_BYTES: u64 = 512 << 20;

/// Runs `joj crash`.
/// # Errors
/// What could not be done, where, and how to mend it. The emulated machines are off, their files are gone; recordings stay where they
/// were asked for.
pub fn run(options: &ProgramCrashOptions) -> Result<ExitCode, LabError> {
    let mut volumes = volumes(&options.device, &options.filesystems);
    for volume in &mut volumes {
        volume.mount_options.clone_from(&options.mount);
        volume.journal_device.clone_from(&options.journal_device);
    }
    if options.check.as_deref().is_some_and(|check| check.trim().is_empty()) {
        return Ok(wrong_usage("`--check` is empty: everything would be kept"));
    }
    if let Some(what) = impossible(options) {
        return Ok(wrong_usage(&what));
    }
    output_file::check_apart(&read_files(options), &options.json)?;
    signal::install().map_err(LabError::Signals)?;
    if let Some(wrong) = parts::unknown_device(device_names(options))? {
        return Ok(wrong);
    }
    let contents = contents(&options.machine, Needed::default())?;
    let job = job(options, volumes, &contents)?;
    let state = match asked_state(options, &job)? {
        Ok(state) => state,
        Err(what) => return Ok(wrong_usage(&what)),
    };
    let limit = TimeLimit { option: "--state-seconds", seconds: options.state_seconds };
    let pool = parts::pool(&options.machine, &options.guests, contents, limit)?;
    let machine = machine::told(&pool)?;
    let recordings = Recordings::at(options.recordings.as_deref())?;
    let work = ProgramCrashWork { job, recordings: &recordings.directory };
    let loaded = LoadedRecordings::new(&recordings.directory, options.lying);
    let mut result = empty_result(options, &work.job, machine);
    let mut session = CutSession::new(options, work, loaded);
    let opened = pool.open(pool.jobs);
    let stop = match opened.and_then(|pool| session.work_off(&pool, state, &mut result.machine.kernel)) {
        Ok(Some(printed)) => {
            let end = if printed.is_empty() || printed.ends_with('\n') { "" } else { "\n" };
            output_file::print(&(printed + end))?;
            None
        }
        Ok(None) => None,
        Err(SessionEnd::Failed(reason)) if session.has_nothing() => return Err(reason.into()),
        Err(stop) => Some(stop),
    };
    if let Some(stop) = &stop {
        session.stopped(stop);
    }
    session.note_changed();
    result.volumes = std::mem::take(&mut session.found);
    let place = recordings.kept_if(result.has_broken() || options.recordings.is_some());
    let part = match options.shard.filter(|_| stop.is_none()) {
        Some(shard) => Some(shard::part(options, shard, &pool.contents, &session, result.clone())?),
        None => None,
    };
    give(options, &result, part, &place)?;
    match stop {
        None => Ok(crash_exit_code(&result)),
        Some(stop) => Ok(guest_pool::exit_code(Some(stop))?),
    }
}

/// Gives what was found. A shard that was stopped leaves no part: it is run again.
fn give(
    options: &ProgramCrashOptions,
    result: &ProgramCrashResult,
    part: Option<ProgramCrashPart>,
    place: &str,
) -> Result<(), LabError> {
    let text = || show::text(result, place);
    let is_any = result.volumes.iter().any(|volume| volume.run.is_some() || volume.failure.is_some());
    match (options.shard, part) {
        (Some(_), Some(part)) => output_file::report(options.json.as_deref(), &part, text)?,
        (Some(shard), None) => {
            if is_any {
                output_file::print(&text())?;
            }
            eprintln!("joj crash: shard {shard} came to no end, and leaves no part; run it again");
        }
        (None, _) if is_any => output_file::report(options.json.as_deref(), result, text)?,
        (None, _) => {}
    }
    Ok(())
}

/// The result before anything is found.
fn empty_result(
    options: &ProgramCrashOptions,
    job: &ProgramCrashJob,
    machine: LabMachine,
) -> ProgramCrashResult {
    ProgramCrashResult {
        format: PROGRAM_CRASH_FORMAT.to_owned(),
        version: PROGRAM_CRASH_VERSION,
        command: options.command.clone(),
        check: options.check.clone().unwrap_or_default(),
        host_words: job.host_words.clone(),
        seed: options.seed,
        planted: options.lying.then(|| "a device that lies".to_owned()),
        machine,
        volumes: Vec::new(),
    }
}

/// What cannot be done as the options have it, if something cannot.
fn impossible(options: &ProgramCrashOptions) -> Option<String> {
    named_twice("--filesystems", options.filesystems.iter().map(|one| one.word()))
        .or_else(|| named_twice("--device", &options.device))
        .or_else(|| hidden_file(options))
        .or_else(|| program_without_text(&options.command))
        .or_else(|| told_commands(options).host_words.impossible)
        .or_else(|| empty_mount(options))
        .or_else(|| impossible_journal(options))
        .or_else(|| json_among_recordings(options))
}

/// What of this machine's files the program or a shell's command names, and the guest does not see; and what to do.
fn hidden_file(options: &ProgramCrashOptions) -> Option<String> {
    let shells = [("--before", &options.before), ("--check", &options.check)];
    let in_shell =
        shells.iter().find_map(|(option, text)| Some((*option, hidden_in_shell(text.as_deref()?)?)));
    let (what, Hidden { file, place }) =
        hidden(&options.command).map(|found| ("PROGRAM", found)).or(in_shell)?;
    Some(format!(
        "{what} names {}, which the emulated machine does not see: it has a {place} of its own. Copy what is needed to \
         a directory outside of {place}, and name that",
        file.display()
    ))
}

/// Files of this machine that are read, as far as the command line names them.
fn read_files(options: &ProgramCrashOptions) -> Vec<PathBuf> {
    let mut files = named_files(&options.command, options.before.iter().chain(&options.check));
    files.extend(device_names(options).map(PathBuf::from));
    files.extend(options.machine.kernel.clone());
    files
}

/// Why the JSON cannot be where the recordings are, if it is to be there.
fn json_among_recordings(options: &ProgramCrashOptions) -> Option<String> {
    let (json, directory) = (options.json.as_ref()?, options.recordings.as_ref()?.join(RECORDINGS_DIRECTORY));
    let place = std::path::absolute(json).ok()?.parent()?.canonicalize().ok()?;
    (directory.canonicalize().ok()? == place).then(|| {
        let directory = directory.display();
        format!("--json {}: {directory} is for recordings alone; give another FILE", json.display())
    })
}

/// What to do where `--mount` has nothing.
fn empty_mount(options: &ProgramCrashOptions) -> Option<String> {
    let is_empty = options.mount.as_ref()?.trim().is_empty();
    is_empty.then(|| "`--mount` has no options; leave it out".to_owned())
}

/// Why the journal cannot be where the options want it, if it cannot.
fn impossible_journal(options: &ProgramCrashOptions) -> Option<String> {
    const OF_MOUNT: [&str; 4] = ["logdev=", "rtdev=", "journal_dev=", "journal_path="];
    let mount = options.mount.iter().flat_map(|text| text.split(','));
    if let Some(other) = mount.map(str::trim).find(|one| OF_MOUNT.iter().any(|begin| one.starts_with(begin)))
    {
        return Some(format!(
            "`--mount {other}`: the emulated machine has no other device; `--journal-device NAME` gives ext4 and XFS one for \
             the journal, and cuts it, too"
        ));
    }
    options.journal_device.as_ref()?;
    let has_none = |one: &&Filesystem| !matches!(one, Filesystem::Ext4 | Filesystem::Xfs);
    let other = options.filesystems.iter().find(has_none)?;
    Some(format!("`--journal-device`: only ext4 and XFS have external journals, not {}", other.word()))
}

/// The devices that a run has.
fn device_names(options: &ProgramCrashOptions) -> impl Iterator<Item = &String> {
    options.device.iter().chain(&options.journal_device)
}

/// The state that is to be looked at, if one is; or why there is no such state.
fn asked_state(
    options: &ProgramCrashOptions,
    job: &ProgramCrashJob,
) -> Result<Result<Option<CutState>, String>, LabError> {
    let (Some(text), Some(directory)) = (&options.state, &options.recordings) else { return Ok(Ok(None)) };
    let state = match named_state(text, &job.volumes) {
        Ok(state) => state,
        Err(what) => return Ok(Err(what)),
    };
    let recordings = LoadedRecordings::new(directory, options.lying);
    let why = not_recorded(&state, &recordings, job).map_err(SessionError::from)?;
    Ok(match why {
        Some(why) => Err(format!("`--state {text}`: {why}; take a state that was named with this DIR")),
        None => Ok(Some(state)),
    })
}

/// What the guest is told to run.
struct ToldCommands {
    program: Vec<String>,
    before: Option<String>,
    check: Option<String>,
    host_words: HostWords,
}

fn told_commands(options: &ProgramCrashOptions) -> ToldCommands {
    let mut program = command(&options.command);
    let mut host_words = HostWords::default();
    for word in &mut program[1..] {
        *word = host_words.argument(WordPlace::Program, word);
    }
    let mut shell = |place, text: &Option<String>| Some(host_words.shell_command(place, text.as_deref()?));
    let (before, check) =
        (shell(WordPlace::Before, &options.before), shell(WordPlace::Check, &options.check));
    ToldCommands { program, before, check, host_words }
}

/// The job, without units.
fn job(
    options: &ProgramCrashOptions,
    volumes: Vec<LabVolume>,
    contents: &Contents,
) -> Result<ProgramCrashJob, LabError> {
    let ToldCommands { program, before, check, host_words } = told_commands(options);
    Ok(ProgramCrashJob {
        setting: machine::setting(contents, device_names(options), DEVICE_BYTES)?,
        volumes,
        command: program,
        before,
        check: check.unwrap_or_default(),
        host_words: host_words.taken,
        environment: environment(),
        seconds: GuestSeconds { program: options.program_seconds, settle: options.settle_seconds },
        ignore_flushes: options.lying,
        units: BTreeMap::new(),
    })
}
