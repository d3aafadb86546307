//! `joj crash` from its options to its exit code.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use joj_analysis::lab::program_crash::{
    BrokenStates, Checked, Finding, LeftOut, PROGRAM_CRASH_FORMAT, PROGRAM_CRASH_VERSION, ProgramCrashResult,
    ProgramState, ProgramVolume, broken,
};
use joj_device::crash::Missing;
use joj_device::crash::moments::Span;
use joj_device::crash::plan::{Plan, Wanted, plan};

use crate::bench::progress::Progress;
use crate::command_line::lab::program_crash::ProgramCrashOptions;
use crate::command_line::wrong_usage;
use crate::lab::commands::error::LabError;
use crate::lab::commands::host_command::{command, environment, shell_command, whole_path};
use crate::lab::commands::parts::{Needed, contents, jobs, packages};
use crate::lab::error::UnitError;
use crate::lab::guest_pool::{self, GuestPool, OpenPool};
use crate::lab::host_share::HostShare;
use crate::lab::image::archive::Contents;
use crate::lab::image::packages::cache_directory;
use crate::lab::job::{LabVolume, volumes};
use crate::lab::jobs::program_crash::{
    CutState, GuestSeconds, KeptRun, PROGRAM_RECORDING_ENDS, ProgramCrashJob, ProgramReport, ProgramUnit,
    ProgramWritten,
};
use crate::lab::life::SessionEnd;
use crate::lab::machine;
use crate::lab::recorded_log::{RECORDINGS_DIRECTORY, RecordedLog, RecordedLogError, recording_file};
use crate::lab::shipped::devices;
use crate::lab::work::program_crash::ProgramCrashWork;
use crate::lab::written_for::WrittenFor;
use crate::machine::files::output_file;
use crate::machine::proc::signal;
use crate::machine::qemu::process;
use crate::show::lab::program_crash as show;

/// Seconds that a recording and a state take, for the first forecast.
const RECORDING_SECONDS: f64 = 20.0;
const STATE_SECONDS: f64 = 0.4;
/// Capacity of the device: room for files, and what mkfs.xfs asks for.
const DEVICE_BYTES: u64 = 512 << 20;
/// Bytes of a block, by which what is missing is counted.
const BLOCK_BYTES: u64 = 4096;

/// Runs `joj crash`.
/// # Errors
/// What could not be done, where, and how to mend it. The emulated machines are off, their files are gone; recordings stay where they
/// were asked for.
pub fn run(options: &ProgramCrashOptions) -> Result<ExitCode, LabError> {
    let mut volumes = volumes(&options.device, &options.filesystems);
    for volume in &mut volumes {
        volume.mount_options.clone_from(&options.mount);
    }
    let state = match options.state.as_deref().map(|text| state(text, &volumes)).transpose() {
        Ok(state) => state,
        Err(what) => return Ok(wrong_usage(&what)),
    };
    output_file::check_writable(&options.json)?;
    signal::install().map_err(LabError::Signals)?;
    devices::of(options.device.iter())?;
    let contents = contents(&options.machine, Needed::default())?;
    let qemu = process::version()?;
    let packages = packages(&options.machine)?;
    let pool = GuestPool {
        packages: &packages,
        contents: &contents,
        qemu: &qemu,
        jobs: jobs(&options.guests),
        unit_seconds: options.state_seconds,
    };
    let job = job(options, volumes, &contents)?;
    let machine = machine::told(&pool)?;
    let recordings = Recordings::at(options.recordings.as_deref())?;
    let mut session = CutSession {
        options,
        work: ProgramCrashWork { job, recordings: &recordings.directory },
        found: Vec::new(),
        next_unit: 0,
    };
    session.found = session.work.job.volumes.iter().map(unlooked).collect();
    let mut result = ProgramCrashResult {
        format: PROGRAM_CRASH_FORMAT.to_owned(),
        version: PROGRAM_CRASH_VERSION,
        command: options.command.clone(),
        check: options.check.clone().unwrap_or_default(),
        seed: options.seed,
        planted: options.lying.then(|| "a device that lies".to_owned()),
        machine,
        volumes: Vec::new(),
    };
    let opened = pool.open(pool.jobs);
    let stop = match opened.and_then(|pool| session.work_off(&pool, state, &mut result.machine.kernel)) {
        Ok(Some(printed)) => {
            output_file::print(&printed)?;
            None
        }
        Ok(None) => None,
        Err(SessionEnd::Failed(reason)) if session.has_nothing() => return Err(reason.into()),
        Err(stop) => Some(stop),
    };
    if stop.is_some() {
        for volume in session.found.iter_mut().filter(|volume| volume.failure.is_none()) {
            volume.failure = Some(format!("not all states: {}", guest_pool::unmeasured(stop.as_ref())));
        }
    }
    result.volumes = session.found;
    let is_broken = result.volumes.iter().any(|volume| !volume.broken.is_empty());
    let place = recordings.kept_if(is_broken || options.recordings.is_some());
    if result.volumes.iter().any(|volume| volume.run.is_some() || volume.failure.is_some()) {
        output_file::report(options.json.as_deref(), &result, || show::text(&result, &place))?;
    }
    if stop.is_some() {
        return Ok(guest_pool::exit_code(stop)?);
    }
    let is_kept = result.volumes.iter().all(ProgramVolume::is_kept);
    Ok(if is_kept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The job, without units.
fn job(
    options: &ProgramCrashOptions,
    volumes: Vec<LabVolume>,
    contents: &Contents,
) -> Result<ProgramCrashJob, LabError> {
    let mut words = command(&options.command);
    for word in &mut words[1..] {
        if let Some(whole) = whole_path(word) {
            *word = whole;
        }
    }
    Ok(ProgramCrashJob {
        setting: machine::setting(contents, options.device.iter(), DEVICE_BYTES)?,
        volumes,
        command: words,
        before: options.before.as_deref().map(shell_command),
        check: options.check.as_deref().map(shell_command).unwrap_or_default(),
        environment: environment(),
        seconds: GuestSeconds { program: options.program_seconds, settle: options.settle_seconds },
        ignore_flushes: options.lying,
        units: BTreeMap::new(),
    })
}

/// The state that `--state` names: the number of its filesystem, the moment, what is missing.
fn state(text: &str, volumes: &[LabVolume]) -> Result<CutState, String> {
    let mut words = text.splitn(3, '/');
    let mut next = || words.next();
    let parsed = (|| {
        let volume = next()?.parse::<usize>().ok()?.checked_sub(1).filter(|one| *one < volumes.len())?;
        let at_ns = next()?.parse().ok()?;
        let missing: Missing = next()?.parse().ok()?;
        Some(CutState { volume, at_ns, missing, promised: 0 })
    })();
    parsed.ok_or_else(|| {
        format!("`--state {text}`: give a state as `joj crash` named it, with the same filesystems")
    })
}

fn unlooked(volume: &LabVolume) -> ProgramVolume {
    ProgramVolume {
        filesystem: volume.filesystem,
        device: volume.device.clone(),
        mount_options: volume.mount_options.clone(),
        failure: None,
        run: None,
        entries: 0,
        is_systematic: false,
        same: 0,
        states: Vec::new(),
        broken: Vec::new(),
    }
}

/// Where recordings are.
struct Recordings {
    directory: PathBuf,
    /// Nobody asked for them.
    is_own: bool,
}

impl Recordings {
    /// In `asked`, or in a directory of this process in the cache.
    fn at(asked: Option<&Path>) -> Result<Recordings, LabError> {
        let (directory, is_own) = match asked {
            Some(directory) => (directory.to_owned(), false),
            None => {
                let all = cache_directory()?.join("crash");
                keep_newest(&all);
                (all.join(std::process::id().to_string()), true)
            }
        };
        let inner = directory.join(RECORDINGS_DIRECTORY);
        fs::create_dir_all(&inner).map_err(|error| LabError::Directory { directory: inner, error })?;
        Ok(Recordings { directory, is_own })
    }

    /// Their place; those that nobody asked for go, unless they are to be kept.
    fn kept_if(&self, kept: bool) -> String {
        if self.is_own && !kept {
            let _ = fs::remove_dir_all(&self.directory);
        }
        self.directory.display().to_string()
    }
}

/// Recordings that nobody asked for: those of the last few runs stay.
fn keep_newest(directory: &Path) {
    const KEPT: usize = 4;
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let time = |entry: &fs::DirEntry| entry.metadata().and_then(|facts| facts.modified()).ok();
    let mut all: Vec<_> = entries.map(|entry| (time(&entry), entry.path())).collect();
    all.sort();
    for (_, old) in all.iter().rev().skip(KEPT) {
        let _ = fs::remove_dir_all(old);
    }
}

/// A run of `joj crash`.
struct CutSession<'a> {
    options: &'a ProgramCrashOptions,
    work: ProgramCrashWork<'a>,
    found: Vec<ProgramVolume>,
    next_unit: usize,
}

impl CutSession<'_> {
    /// Records, looks, and finds out which writes it takes. With one state to look at it gives what the check prints.
    fn work_off(
        &mut self,
        pool: &OpenPool<'_>,
        state: Option<CutState>,
        kernel: &mut String,
    ) -> Result<Option<String>, SessionEnd> {
        self.record(pool, kernel)?;
        if let Some(mut state) = state {
            let recording = self.load(state.volume)?;
            let lines = &recording.written.lines;
            state.promised = lines.partition_point(|(at_ns, _)| *at_ns <= state.at_ns);
            return self.look_at(pool, state).map(Some);
        }
        self.look(pool)?;
        self.shrink(pool)?;
        Ok(None)
    }

    fn has_nothing(&self) -> bool {
        self.found.iter().all(|volume| volume.states.is_empty() && volume.failure.is_none())
    }

    /// Units of these pieces of work, and their numbers.
    fn units(&mut self, work: impl IntoIterator<Item = ProgramUnit>) -> Vec<usize> {
        let begin = self.next_unit;
        self.work.job.units = (begin..).zip(work).collect();
        self.next_unit = begin + self.work.job.units.len();
        (begin..self.next_unit).collect()
    }

    fn load(&self, volume: usize) -> Result<RecordedLog<ProgramWritten>, RecordedLogError> {
        let mut recording: RecordedLog<ProgramWritten> = RecordedLog::load(self.work.recordings, volume)?;
        if self.options.lying {
            recording.history = recording.history.without_promises();
        }
        Ok(recording)
    }

    fn record(&mut self, pool: &OpenPool<'_>, kernel: &mut String) -> Result<(), SessionEnd> {
        let recordings = self.work.recordings;
        let is_there = |volume: &usize| recordings.join(recording_file(*volume, "json")).exists();
        let volumes = 0..self.work.job.volumes.len();
        let missing: Vec<usize> = volumes.filter(|volume| !is_there(volume)).collect();
        let units = self.units(missing.iter().copied().map(ProgramUnit::Record));
        let all = units.len();
        let mut progress = Progress::new(all, RECORDING_SECONDS * all as f64);
        let (found, work) = (&mut self.found, &self.work);
        if all > 0 {
            let batches = units.iter().map(|unit| vec![*unit]).collect();
            let ended = pool.work_off(batches, work, &mut progress, &mut |unit, report, share| {
                let volume = missing[unit - units[0]];
                let kept = report.and_then(|_| keep(volume, share, recordings));
                if let Err(reason) = kept {
                    found[volume].failure = Some(reason.to_string());
                }
            });
            progress.clear();
            *kernel = ended?;
        }
        for (number, volume) in found.iter_mut().enumerate().filter(|(_, volume)| volume.failure.is_none()) {
            let told = fs::read(recordings.join(recording_file(number, "run")));
            let told: Result<KeptRun, String> = told
                .map_err(|error| error.to_string())
                .and_then(|text| serde_json::from_slice(&text).map_err(|error| error.to_string()));
            match told {
                Ok(told) if told.volume == work.job.volumes[number] && told.command == work.job.command => {
                    let uncut = &told.run.uncut;
                    if uncut.finding != Finding::Kept {
                        volume.failure = Some(format!(
                            "the check fails though nothing was cut ({}): {}",
                            uncut.finding.word(),
                            uncut.said
                        ));
                    }
                    volume.run = Some(told.run);
                }
                Ok(told) => {
                    let other = format!("{} on {}", told.command.join(" "), told.volume.name());
                    volume.failure = Some(format!("the recording there is of `{other}`; name an empty DIR"));
                }
                Err(reason) => volume.failure = Some(format!("cannot read the recording: {reason}")),
            }
        }
        Ok(())
    }

    fn look(&mut self, pool: &OpenPool<'_>) -> Result<(), SessionEnd> {
        let mut states: Vec<(usize, CutState)> = Vec::new();
        for number in 0..self.found.len() {
            if self.found[number].failure.is_some() {
                continue;
            }
            let recording = self.load(number)?;
            let promises: Vec<u64> = recording.written.lines.iter().map(|(at_ns, _)| *at_ns).collect();
            let within = Span { begin_ns: recording.written.begin_ns, end_ns: recording.written.settled_ns };
            let wanted = Wanted {
                within,
                promises_ns: &promises,
                count: self.options.states as usize,
                seed: self.options.seed,
                torn: self.options.torn,
            };
            let Plan { states: planned, is_systematic, same } =
                plan(&recording.logged, &recording.history, wanted);
            let volume = &mut self.found[number];
            (volume.entries, volume.is_systematic, volume.same) =
                (recording.logged.len(), is_systematic, same);
            states.extend(planned.into_iter().map(|state| {
                let cut = CutState {
                    volume: number,
                    at_ns: state.at_ns,
                    missing: state.missing,
                    promised: state.promised,
                };
                (number, cut)
            }));
        }
        if states.is_empty() {
            return Ok(());
        }
        let units = self.units(states.iter().map(|(_, state)| ProgramUnit::Look(state.clone())));
        let jobs = pool.lanes();
        eprintln!(
            "joj crash: {} states, about {} s",
            states.len(),
            (STATE_SECONDS * states.len() as f64 / jobs as f64).ceil()
        );
        let mut batches: Vec<Vec<usize>> = Vec::new();
        for number in 0..self.found.len() {
            let own: Vec<usize> =
                units.iter().copied().filter(|unit| states[unit - units[0]].0 == number).collect();
            let parts = jobs.div_ceil(self.found.len()).max(1);
            batches.extend(own.chunks(own.len().div_ceil(parts).max(1)).map(<[usize]>::to_vec));
        }
        let mut progress = Progress::new(units.len(), STATE_SECONDS * units.len() as f64 / jobs as f64);
        let found = &mut self.found;
        let ended = pool.work_off(batches, &self.work, &mut progress, &mut |unit, report, _| {
            let (volume, state) = &states[unit - units[0]];
            found[*volume].states.push(ProgramState {
                at_ns: state.at_ns,
                missing: state.missing.to_string(),
                missing_writes: state.missing.writes(),
                promised: state.promised,
                checked: looked(report).0,
            });
        });
        progress.clear();
        for volume in &mut self.found {
            volume.states.sort_by_key(|state| (state.at_ns, state.missing_writes));
        }
        ended.map(drop)
    }

    /// One state, and what the check printed.
    fn look_at(&mut self, pool: &OpenPool<'_>, state: CutState) -> Result<String, SessionEnd> {
        let number = state.volume;
        let told = ProgramState {
            at_ns: state.at_ns,
            missing: state.missing.to_string(),
            missing_writes: state.missing.writes(),
            promised: state.promised,
            checked: Checked { finding: Finding::Ended, said: String::new() },
        };
        let units = self.units([ProgramUnit::Look(state)]);
        let mut progress = Progress::new(1, 1.0);
        let mut printed = (told.checked.clone(), String::new());
        pool.work_off(vec![units], &self.work, &mut progress, &mut |_, report, _| printed = looked(report))?;
        progress.clear();
        self.found[number].states.push(ProgramState { checked: printed.0, ..told });
        Ok(printed.1)
    }

    /// Of each way to break the state with the fewest missing writes, and which they are.
    fn shrink(&mut self, pool: &OpenPool<'_>) -> Result<(), SessionEnd> {
        let mut shortest: Vec<(usize, usize, ProgramState)> = Vec::new();
        for (number, volume) in self.found.iter().enumerate() {
            for way in broken(&volume.states) {
                shortest.push((number, way.len(), volume.states[way[0]].clone()));
            }
        }
        let unit = |(volume, _, state): &(usize, usize, ProgramState)| {
            let missing = state.missing.parse().unwrap_or_default();
            let cut = CutState { volume: *volume, at_ns: state.at_ns, missing, promised: state.promised };
            ProgramUnit::Shrink(cut, state.checked.finding, state.checked.said.clone())
        };
        let units = self.units(shortest.iter().map(unit));
        if !units.is_empty() {
            let batches = units.iter().map(|unit| vec![*unit]).collect();
            let mut progress = Progress::new(units.len(), 5.0 * units.len() as f64);
            let ended = pool.work_off(batches, &self.work, &mut progress, &mut |unit, report, _| {
                if let Ok(ProgramReport::Shrunk(missing, _)) = report {
                    let state = &mut shortest[unit - units[0]].2;
                    (state.missing, state.missing_writes) = (missing.to_string(), missing.writes());
                }
            });
            progress.clear();
            ended?;
        }
        for (number, states, state) in shortest {
            let told = self.tell(number, states, state)?;
            self.found[number].broken.push(told);
        }
        Ok(())
    }

    fn tell(
        &self,
        number: usize,
        states: usize,
        state: ProgramState,
    ) -> Result<BrokenStates, RecordedLogError> {
        let directory = self.work.recordings;
        let recording = self.load(number)?;
        let output = fs::read(directory.join(recording_file(number, "output")))?;
        let trace = fs::read_to_string(directory.join(recording_file(number, "trace"))).unwrap_or_default();
        let written_for = WrittenFor::read(&trace);
        let lines = &recording.written.lines;
        let last_line = state.promised.checked_sub(1).map(|last| {
            let begin = last.checked_sub(1).map_or(0, |before| lines[before].1);
            String::from_utf8_lossy(&output[begin..lines[last].1]).trim_end().to_owned()
        });
        let missing: Missing = state.missing.parse().unwrap_or_default();
        let left_out = missing.blocks().map(|block| {
            let offset_bytes = block * BLOCK_BYTES;
            let known = written_for.last(offset_bytes, state.at_ns);
            let what =
                known.unwrap_or_else(|| format!("{BLOCK_BYTES} bytes of the device at {offset_bytes}"));
            LeftOut { offset_bytes, what }
        });
        let left_out = left_out.collect();
        let since_start_ns = state.at_ns.saturating_sub(recording.written.begin_ns);
        Ok(BrokenStates { states, shortest: state, since_start_ns, last_line, left_out })
    }
}

/// Takes a recording out of a guest's share. What says that it is whole comes last.
fn keep(volume: usize, share: &HostShare, recordings: &Path) -> Result<(), UnitError> {
    for end in PROGRAM_RECORDING_ENDS {
        let name = recording_file(volume, end);
        share
            .take(&name, &recordings.join(&name))
            .map_err(|reason| UnitError::Reported(reason.to_string()))?;
    }
    Ok(())
}

fn looked(report: Result<ProgramReport, UnitError>) -> (Checked, String) {
    let ended = |said: String| (Checked { finding: Finding::Ended, said }, String::new());
    match report {
        Ok(ProgramReport::Looked(checked, output)) => (checked, output),
        Ok(_) => ended("its report is another one's".to_owned()),
        Err(reason) => ended(reason.to_string()),
    }
}
