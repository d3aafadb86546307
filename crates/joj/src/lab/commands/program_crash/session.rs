//! A run of `joj crash`: the program is recorded, its states are looked at, and of each way to break the shortest state is found.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;

use joj_analysis::lab::program_crash::{
    BrokenStates, Checked, Finding, LeftOut, ProgramRun, ProgramState, ProgramVolume, broken, found_again,
};
use joj_analysis::lab::shards::shard::Shard;
use joj_device::crash::Missing;
use joj_device::crash::moments::Span;
use joj_device::crash::plan::{Plan, Planned, Wanted, plan};

use crate::bench::forecast::rough;
use crate::bench::progress::Progress;
use crate::command_line::lab::program_crash::ProgramCrashOptions;
use crate::lab::commands::program_crash::found::{OTHER_REPORT, looked, spelled, told_state, unlooked};
use crate::lab::commands::program_crash::recordings::{LoadedRecordings, keep, kept_in, told};
use crate::lab::guest_pool::{self, OpenPool, Work};
use crate::lab::job::Setting;
use crate::lab::jobs::program_crash::{
    CutState, ProgramCrashJob, ProgramReport, ProgramUnit, ProgramWritten, UsedFile,
};
use crate::lab::life::SessionEnd;
use crate::lab::recorded_log::{RecordedLog, RecordedLogError, recording_file};
use crate::lab::work::program_crash::ProgramCrashWork;
use crate::lab::written_for::{LoggedDisk, WrittenFor};
use crate::machine::proc::signal::is_stopped;

/// Seconds that a recording takes, for the first forecast.
const RECORDING_SECONDS: f64 = 20.0;
/// Bytes of a block, by which what is missing is counted.
const BLOCK_BYTES: u64 = 4096;

/// What is waited for before a unit begins.
const STARTING: &str = "an emulated machine starts";

/// A run of `joj crash`.
pub struct CutSession<'a> {
    options: &'a ProgramCrashOptions,
    work: ProgramCrashWork<'a>,
    loaded: LoadedRecordings<'a>,
    /// What came of each filesystem.
    pub found: Vec<ProgramVolume>,
    next_unit: usize,
    /// States that each filesystem has, those of other shards too; none where it has no plan.
    pub planned: Vec<Option<usize>>,
    /// Which of them are looked at.
    shard: Shard,
    /// What the program and the check used of this machine's files, for each filesystem.
    used: Vec<Vec<UsedFile>>,
}

impl<'a> CutSession<'a> {
    /// Before anything is recorded.
    pub fn new(
        options: &'a ProgramCrashOptions,
        work: ProgramCrashWork<'a>,
        loaded: LoadedRecordings<'a>,
    ) -> CutSession<'a> {
        let found = work.job.volumes.iter().map(unlooked).collect();
        let planned = vec![None; work.job.volumes.len()];
        let used = vec![Vec::new(); work.job.volumes.len()];
        let shard = options.shard.unwrap_or(Shard::WHOLE);
        CutSession { options, work, loaded, found, next_unit: 0, planned, shard, used }
    }

    /// What guests have of SQLite and devices.
    pub fn setting(&self) -> &Setting {
        &self.work.job.setting
    }

    /// The directory of the recordings.
    pub fn recordings(&self) -> &Path {
        self.work.recordings
    }

    /// Records, looks, and finds out which writes it takes. With one state to look at it gives what the check prints.
    /// # Errors
    /// [`SessionEnd`]; what was found stands.
    pub fn work_off(
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
            self.found[state.volume].entries = asked(&recording);
            return self.look_at(pool, state).map(Some);
        }
        self.look(pool)?;
        self.shrink(pool)?;
        Ok(None)
    }

    /// Notes of each filesystem whose states were not all looked at why that is.
    pub fn stopped(&mut self, stop: &SessionEnd) {
        for (volume, planned) in self.found.iter_mut().zip(&self.planned) {
            let own = planned.map(|states| self.shard.indices(states).len());
            if volume.failure.is_none() && own.is_none_or(|own| volume.states.len() < own) {
                volume.failure = Some(format!("not all states: {}", guest_pool::unmeasured(Some(stop))));
            }
        }
    }

    /// Notes of each filesystem which files of this machine are others now than when they were used.
    pub fn note_changed(&mut self) {
        for (volume, used) in self.found.iter_mut().zip(&self.used) {
            let changed = used.iter().filter(|file| file.is_changed());
            let names: BTreeSet<String> =
                changed.map(|file| spelled(file.path.as_os_str().as_bytes())).collect();
            volume.changed_files = names.into_iter().collect();
        }
    }

    /// True where nothing is known of any filesystem.
    pub fn has_nothing(&self) -> bool {
        self.found.iter().all(|volume| volume.states.is_empty() && volume.failure.is_none())
    }

    /// Units of these pieces of work, and their numbers.
    fn units(&mut self, work: impl IntoIterator<Item = ProgramUnit>) -> Vec<usize> {
        let begin = self.next_unit;
        self.work.job.units = (begin..).zip(work).collect();
        self.next_unit = begin + self.work.job.units.len();
        (begin..self.next_unit).collect()
    }

    fn load(&self, volume: usize) -> Result<Rc<RecordedLog<ProgramWritten>>, RecordedLogError> {
        self.loaded.of(volume)
    }

    fn record(&mut self, pool: &OpenPool<'_>, kernel: &mut String) -> Result<(), SessionEnd> {
        let recordings = self.work.recordings;
        let kept = kept_in(recordings);
        let volumes = 0..self.work.job.volumes.len();
        // Until it is known what the recordings are: who fails takes them back.
        let turn = kept.turn(volumes.clone())?;
        let (there, missing): (Vec<usize>, Vec<usize>) = volumes.partition(|volume| kept.is_any(*volume));
        if !there.is_empty() {
            eprintln!(
                "joj crash: recordings are taken from {}: the program runs again there only to see what the check says where \
                 nothing is cut",
                recordings.display()
            );
        }
        // Who records nothing keeps nobody waiting.
        let _turn = turn.filter(|_| !missing.is_empty());
        let advise = |reason: &dyn fmt::Display| format!("{reason}; name an empty DIR, to record anew");
        let told =
            |job: &ProgramCrashJob, number| told(recordings, number, job).map_err(|reason| advise(&reason));
        let (mut uncut, mut runs) = (BTreeMap::new(), BTreeMap::new());
        for number in there {
            match told(&self.work.job, number) {
                Ok((run, used)) => {
                    uncut.insert(number, None);
                    runs.insert(number, run);
                    self.used[number] = used;
                }
                Err(reason) => self.found[number].failure = Some(reason),
            }
        }
        *kernel = self.run_programs(pool, &missing, &mut uncut)?.unwrap_or_else(|| std::mem::take(kernel));
        for number in missing {
            if self.found[number].failure.is_none() {
                match told(&self.work.job, number) {
                    Ok((run, _)) => drop(runs.insert(number, run)),
                    Err(reason) => self.found[number].failure = Some(reason),
                }
            }
        }
        for (number, run) in runs {
            let volume = &mut self.found[number];
            if volume.failure.is_some() {
                continue;
            }
            let again: Option<ProgramRun> = uncut.remove(&number).flatten();
            volume.failure = why_not_cut(again.as_ref().unwrap_or(&run));
            if volume.failure.is_some() && again.is_none() {
                // Another check may take these files, and a program that was mended leaves others.
                kept.remove(number);
            }
            let uncut = again.map_or_else(|| run.uncut.clone(), |again| again.uncut);
            volume.run = Some(ProgramRun { uncut, ..run });
        }
        Ok(())
    }

    /// Records the program on the volumes that are `missing`, and runs it on those of `uncut`, whose runs it leaves there. Gives the
    /// kernel's version where a guest ran.
    fn run_programs(
        &mut self,
        pool: &OpenPool<'_>,
        missing: &[usize],
        uncut: &mut BTreeMap<usize, Option<ProgramRun>>,
    ) -> Result<Option<String>, SessionEnd> {
        let volumes: Vec<usize> = missing.iter().chain(uncut.keys()).copied().collect();
        if volumes.is_empty() {
            return Ok(None);
        }
        let record = missing.iter().copied().map(ProgramUnit::Record);
        let units = self.units(record.chain(uncut.keys().copied().map(ProgramUnit::Uncut)));
        let mut progress =
            Progress::new(units.len(), RECORDING_SECONDS * units.len() as f64).waiting(STARTING);
        let (found, work, all_used) = (&mut self.found, &self.work, &mut self.used);
        let batches = units.iter().map(|unit| vec![*unit]).collect();
        let ended = pool.work_off(batches, work, &mut progress, &mut |unit, report, share| {
            let volume = volumes[unit - units[0]];
            let failed = match (report, uncut.get_mut(&volume)) {
                (Ok(ProgramReport::Ran(run, used)), Some(again)) => {
                    *again = Some(run);
                    all_used[volume].extend(used);
                    Ok(())
                }
                (Ok(ProgramReport::Ran(_, used)), None) => {
                    all_used[volume].extend(used);
                    keep(&work.job, work.recordings, volume, share).map_err(|reason| reason.to_string())
                }
                (Ok(ProgramReport::Ambiguous(what)), _) => Err(what),
                (Ok(_), _) => Err(OTHER_REPORT.to_owned()),
                (Err(reason), _) => Err(reason.to_string()),
            };
            found[volume].failure = failed.err();
        });
        progress.clear();
        ended.map(Some)
    }

    fn look(&mut self, pool: &OpenPool<'_>) -> Result<(), SessionEnd> {
        let progress = RefCell::new(Progress::of_steps(0.0).waiting("reading the recording"));
        let chosen = self.choose(&progress);
        progress.into_inner().clear();
        let states = chosen?;
        if states.is_empty() {
            return Ok(());
        }
        let units = self.units(states.iter().map(|(_, state)| ProgramUnit::Look(state.clone())));
        let batches = batches(&units, states.iter().map(|(volume, _)| *volume), pool.lanes());
        let guests = pool.lanes().min(batches.len());
        let expected_s: f64 = units.iter().filter_map(|unit| self.work.expected_s(*unit)).sum();
        self.tell_states(states.len(), expected_s / guests as f64);
        let mut progress = Progress::of_unknown_steps(expected_s / guests as f64, guests).waiting(STARTING);
        let mut found: Vec<Option<(Checked, Option<Checked>)>> = vec![None; states.len()];
        let mut ambiguous: BTreeMap<usize, String> = BTreeMap::new();
        let ended = pool.work_off(batches, &self.work, &mut progress, &mut |unit, report, _| match report {
            Ok(ProgramReport::Ambiguous(what)) => {
                ambiguous.entry(states[unit - units[0]].0).or_insert(what);
            }
            report => {
                let (checked, _, again) = looked(report);
                found[unit - units[0]] = Some((checked, again));
            }
        });
        progress.clear();
        // In the order of the plan, whichever guest was first: of states that are as short as each other the first one is shrunk.
        for ((volume, state), checked) in states.into_iter().zip(found) {
            self.found[volume].states.extend(checked.map(|found| told_state(&state, found)));
        }
        // The check read a file of this machine in the others: what it says of them is no answer.
        for (volume, what) in ambiguous {
            self.found[volume].states.clear();
            self.found[volume].failure = Some(what);
            self.planned[volume] = None;
        }
        ended.map(drop)
    }

    /// The states that are looked at, each with the number of its filesystem. A long log takes minutes.
    fn choose(&mut self, progress: &RefCell<Progress>) -> Result<Vec<(usize, CutState)>, SessionEnd> {
        let mut states: Vec<(usize, CutState)> = Vec::new();
        let go_on = || {
            progress.borrow_mut().tick();
            !is_stopped()
        };
        for number in 0..self.found.len() {
            if self.found[number].failure.is_some() {
                continue;
            }
            let name = self.work.job.volumes[number].name();
            progress.borrow_mut().doing(&format!("{name}: reading the recording"));
            let recording = self.load(number)?;
            progress.borrow_mut().doing(&format!("{name}: choosing states"));
            let promises: Vec<u64> = recording.written.lines.iter().map(|(at_ns, _)| *at_ns).collect();
            let within = Span { begin_ns: recording.written.begin_ns, end_ns: recording.written.settled_ns };
            let wanted = Wanted {
                within,
                promises_ns: &promises,
                count: self.options.states as usize,
                seed: self.options.seed,
                torn: self.options.torn,
            };
            let chosen = plan(&recording.logged, &recording.history, wanted, &go_on);
            let Plan { states: planned, is_systematic, same } = chosen.ok_or(SessionEnd::Signal)?;
            let volume = &mut self.found[number];
            (volume.entries, volume.is_systematic, volume.same) = (asked(&recording), is_systematic, same);
            self.planned[number] = Some(planned.len());
            states.extend(self.shard.indices(planned.len()).map(|index| {
                let Planned { at_ns, missing, promised, cut: _ } = planned[index].clone();
                (number, CutState { volume: number, at_ns, missing, promised })
            }));
        }
        Ok(states)
    }

    /// Says how many states there are; and how long they take, where that is long.
    fn tell_states(&self, states: usize, expected_s: f64) {
        const LONG_S: f64 = 60.0;
        let cost = if expected_s < LONG_S {
            String::new()
        } else {
            format!(", about {} with a quick check; `--states N` asks for fewer", rough(expected_s))
        };
        match self.options.shard {
            Some(shard) => {
                let all: usize = self.planned.iter().flatten().sum();
                eprintln!("joj crash: shard {shard}: {states} states of {all}{cost}");
            }
            None => eprintln!("joj crash: {states} states{cost}"),
        }
    }

    /// One state, and what the check printed.
    fn look_at(&mut self, pool: &OpenPool<'_>, state: CutState) -> Result<String, SessionEnd> {
        let number = state.volume;
        let units = self.units([ProgramUnit::Look(state.clone())]);
        let mut progress = Progress::new(1, 1.0).waiting(STARTING);
        let mut found = (Checked { finding: Finding::Ended, said: String::new() }, String::new(), None);
        let mut ambiguous = None;
        pool.work_off(vec![units], &self.work, &mut progress, &mut |_, report, _| match report {
            Ok(ProgramReport::Ambiguous(what)) => ambiguous = Some(what),
            report => found = looked(report),
        })?;
        progress.clear();
        if ambiguous.is_some() {
            self.found[number].failure = ambiguous;
            return Ok(String::new());
        }
        let (checked, printed, again) = found;
        let told = told_state(&state, (checked, again));
        if told.checked.finding != Finding::Kept {
            let broken = self.tell(number, 1, told.clone())?;
            self.found[number].broken.push(BrokenStates { again: told.again.clone(), ..broken });
        }
        self.found[number].states.push(told);
        Ok(printed)
    }

    /// Of each way to break the state with the fewest missing writes, and which they are.
    fn shrink(&mut self, pool: &OpenPool<'_>) -> Result<(), SessionEnd> {
        let mut shortest: Vec<(usize, usize, ProgramState)> = Vec::new();
        let mut again: BTreeMap<usize, Checked> = BTreeMap::new();
        for (number, volume) in self.found.iter().enumerate() {
            for way in broken(&volume.states) {
                again.extend(found_again(&volume.states, &way).map(|other| (shortest.len(), other)));
                shortest.push((number, way.len(), volume.states[way[0]].clone()));
            }
        }
        let unit = |(volume, _, state): &(usize, usize, ProgramState)| {
            let missing = state.missing.parse().unwrap_or_default();
            let cut = CutState { volume: *volume, at_ns: state.at_ns, missing, promised: state.promised };
            ProgramUnit::Shrink(cut, state.checked.finding, state.checked.said.clone())
        };
        // Each look at a state that ends its guest costs a guest.
        let can_shrink = |one: &&(usize, usize, ProgramState)| one.2.checked.finding != Finding::Ended;
        let which: Vec<usize> = (0..shortest.len()).filter(|one| can_shrink(&&shortest[*one])).collect();
        let units = self.units(which.iter().map(|one| unit(&shortest[*one])));
        if !units.is_empty() {
            let batches = batches(&units, which.iter().map(|one| shortest[*one].0), pool.lanes());
            let mut progress = Progress::new(units.len(), 5.0 * units.len() as f64).waiting(STARTING);
            let ended = pool.work_off(batches, &self.work, &mut progress, &mut |unit, report, _| {
                if let Ok(ProgramReport::Shrunk(missing, _, other)) = report {
                    let number = which[unit - units[0]];
                    let state = &mut shortest[number].2;
                    (state.missing, state.missing_writes) = (missing.to_string(), missing.writes());
                    if let Some(other) = other {
                        again.entry(number).or_insert(other);
                    }
                }
            });
            progress.clear();
            ended?;
        }
        for (way, (number, states, state)) in shortest.into_iter().enumerate() {
            let told = self.tell(number, states, state)?;
            self.found[number].broken.push(BrokenStates { again: again.remove(&way), ..told });
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
            let journal = recording.written.journal_bytes.and_then(|begin| offset_bytes.checked_sub(begin));
            let (disk, name, at) = match journal {
                Some(at) => (LoggedDisk::Journal, "the journal's device", at),
                None => (LoggedDisk::Filesystem, "the device", offset_bytes),
            };
            let known = written_for.last(disk, at, state.at_ns);
            let what = known.unwrap_or_else(|| format!("{BLOCK_BYTES} bytes of {name} at {at}"));
            LeftOut { offset_bytes, what }
        });
        let left_out = left_out.collect();
        let since_start_ns = state.at_ns.saturating_sub(recording.written.begin_ns);
        Ok(BrokenStates { states, shortest: state, since_start_ns, last_line, left_out, again: None })
    }
}

/// Units of each filesystem in as few batches as keep all guests busy: a guest starts, reads a recording and brings what the check uses
/// into memory once for each batch.
fn batches(units: &[usize], volumes: impl Iterator<Item = usize>, lanes: usize) -> Vec<Vec<usize>> {
    let mut own: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (unit, volume) in units.iter().zip(volumes) {
        own.entry(volume).or_default().push(*unit);
    }
    let parts = lanes.div_ceil(own.len().max(1)).max(1);
    let parted = |units: &Vec<usize>| units.len().div_ceil(parts).max(1);
    own.values().flat_map(|units| units.chunks(parted(units)).map(<[usize]>::to_vec)).collect()
}

/// Why a program that ran so is not cut, if it is not.
fn why_not_cut(run: &ProgramRun) -> Option<String> {
    if run.failed_at_once() {
        let end = run.failure().unwrap_or_default();
        return Some(format!("the program failed before it printed a line, and promised nothing: it {end}"));
    }
    let uncut = &run.uncut;
    (uncut.finding != Finding::Kept)
        .then(|| format!("the check fails though nothing was cut ({}): {}", uncut.finding.word(), uncut.said))
}

/// Requests from the program's start on.
fn asked(recording: &RecordedLog<ProgramWritten>) -> usize {
    recording.logged.iter().filter(|one| one.submitted_ns >= recording.written.begin_ns).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filesystem_has_one_guest_where_there_are_as_many_filesystems_as_guests() {
        let units = [10, 11, 12, 13, 14];
        let volumes = || [0, 0, 3, 0, 3].into_iter();
        assert_eq!(batches(&units, volumes(), 2), [vec![10, 11, 13], vec![12, 14]]);
        assert_eq!(batches(&units, volumes(), 1), [vec![10, 11, 13], vec![12, 14]]);
        assert_eq!(batches(&units, volumes(), 4), [vec![10, 11], vec![13], vec![12], vec![14]]);
        assert!(batches(&[], std::iter::empty(), 2).is_empty());
    }
}
