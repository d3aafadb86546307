//! Recordings of `joj crash`: where they are, and the states of them that a user names.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use joj_device::crash::{CrashStates, Cut, Missing};

use crate::lab::commands::error::LabError;
use crate::lab::commands::parts::lasting_checksum;
use crate::lab::error::{SessionError, ShareError, UnitError};
use crate::lab::host_share::HostShare;
use crate::lab::image::packages::cache_directory;
use crate::lab::job::LabVolume;
use crate::lab::jobs::program_crash::{
    CutState, KeptRun, PROGRAM_RECORDING_ENDS, ProgramCrashJob, ProgramWritten,
};
use crate::lab::life::SessionEnd;
use crate::lab::recorded_log::{
    RECORDINGS_DIRECTORY, RecordedLog, RecordedLogError, is_recorded, recording_file,
};
use crate::lab::turn::turn;

/// End of the name of a file beside a recording's: their checksums.
const SUMS: &str = "sums";
/// Held by who records there.
const LOCK: &str = "lock";

/// Where recordings are.
pub struct Recordings {
    /// The directory.
    pub directory: PathBuf,
    /// Nobody asked for them.
    is_own: bool,
}

impl Recordings {
    /// In `asked`, or in a directory of this process in the cache.
    /// # Errors
    /// It cannot be made.
    pub fn at(asked: Option<&Path>) -> Result<Recordings, LabError> {
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
    pub fn kept_if(&self, kept: bool) -> String {
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

/// Waits for the joj that records there now: shards of one run take the recordings of the first.
/// # Errors
/// A signal, or the directory cannot be locked.
pub fn recording_turn(recordings: &Path) -> Result<File, SessionEnd> {
    let path = recordings.join(RECORDINGS_DIRECTORY).join(LOCK);
    let cannot = |error| SessionError::Turn { path: path.clone(), error };
    turn(&path, cannot, || {
        eprintln!("joj crash: waiting for another joj, which records into {}", recordings.display());
    })
}

/// Takes a recording out of a guest's share. What says that it is whole comes last.
/// # Errors
/// A file is missing, or there is no room.
pub fn keep(volume: usize, share: &HostShare, recordings: &Path) -> Result<(), UnitError> {
    let told = |reason: &dyn std::error::Error| UnitError::Reported(reason.to_string());
    let sums = sums(&share.shared(), volume).map_err(|reason| told(&reason))?;
    let file = recordings.join(recording_file(volume, SUMS));
    fs::write(&file, sums).map_err(|error| told(&ShareError::Write { file, error }))?;
    for end in PROGRAM_RECORDING_ENDS {
        let name = recording_file(volume, end);
        share.take(&name, &recordings.join(&name)).map_err(|reason| told(&reason))?;
    }
    Ok(())
}

/// A line for each file of recording `number` in `directory`: the end of its name, and a checksum.
/// # Errors
/// Which one cannot be read.
fn sums(directory: &Path, number: usize) -> Result<String, LabError> {
    let mut text = String::new();
    for end in PROGRAM_RECORDING_ENDS {
        text += &format!("{end} {}\n", lasting_checksum([directory.join(recording_file(number, end))])?);
    }
    Ok(text)
}

/// Whether recording `number` has the files that were recorded at once, as they were.
/// # Errors
/// Which one is missing, cannot be read, or is another one.
fn check_sums(directory: &Path, number: usize) -> Result<(), RecordedLogError> {
    for end in PROGRAM_RECORDING_ENDS.iter().chain([&SUMS]) {
        let name = recording_file(number, end);
        if !directory.join(&name).exists() {
            return Err(RecordedLogError::Missing(name));
        }
    }
    let recorded = fs::read(directory.join(recording_file(number, SUMS)))?;
    let recorded = String::from_utf8_lossy(&recorded);
    let found = sums(directory, number).map_err(|reason| io::Error::other(reason.to_string()))?;
    let mut lines = recorded.lines();
    for (found, end) in found.lines().zip(PROGRAM_RECORDING_ENDS) {
        if lines.next() != Some(found) {
            return Err(RecordedLogError::Changed(recording_file(number, end)));
        }
    }
    Ok(())
}

/// Recordings of a directory, each read once: a large one takes seconds.
#[derive(Debug)]
pub struct LoadedRecordings<'a> {
    directory: &'a Path,
    lies: bool,
    loaded: RefCell<BTreeMap<usize, Rc<RecordedLog<ProgramWritten>>>>,
}

impl<'a> LoadedRecordings<'a> {
    /// None of them is read yet; the device lies if `lies`.
    pub fn new(directory: &'a Path, lies: bool) -> LoadedRecordings<'a> {
        LoadedRecordings { directory, lies, loaded: RefCell::default() }
    }

    /// The recording of volume `number`.
    /// # Errors
    /// Where it is not whole.
    pub fn of(&self, number: usize) -> Result<Rc<RecordedLog<ProgramWritten>>, RecordedLogError> {
        let known = self.loaded.borrow().get(&number).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let recording = Rc::new(load(self.directory, number, self.lies)?);
        self.loaded.borrow_mut().insert(number, Rc::clone(&recording));
        Ok(recording)
    }
}

/// The recording of volume `number` in `directory`, of a device that lies if it does.
/// # Errors
/// Where it is not whole.
fn load(
    directory: &Path,
    number: usize,
    lies: bool,
) -> Result<RecordedLog<ProgramWritten>, RecordedLogError> {
    let mut recording: RecordedLog<ProgramWritten> = RecordedLog::load(directory, number)?;
    let output = fs::metadata(directory.join(recording_file(number, "output")))?.len();
    let ProgramWritten { begin_ns, settled_ns, lines, journal_bytes: _ } = &recording.written;
    let is_in_order =
        lines.iter().zip(lines.iter().skip(1)).all(|(one, next)| one.0 <= next.0 && one.1 < next.1);
    let ends_within = lines.last().is_none_or(|(at_ns, end)| at_ns <= settled_ns && *end as u64 <= output);
    let asked = recording.logged.iter().map(|one| one.submitted_ns).max();
    if !is_in_order || !ends_within || begin_ns > settled_ns || asked.is_some_and(|asked| asked > *settled_ns)
    {
        return Err(RecordedLogError::Times);
    }
    if lies {
        recording.history = recording.history.without_promises();
    }
    Ok(recording)
}

/// How the program of recording `number` ran.
/// # Errors
/// A file of the recording is missing, or is not the one that was recorded with the others.
pub fn told(directory: &Path, number: usize) -> Result<KeptRun, RecordedLogError> {
    check_sums(directory, number)?;
    Ok(serde_json::from_slice(&fs::read(directory.join(recording_file(number, "run")))?)?)
}

/// The state that `--state` names: the number of its filesystem, the moment, what is missing.
/// # Errors
/// What is wrong with the text.
pub fn named_state(text: &str, volumes: &[LabVolume]) -> Result<CutState, String> {
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

/// Why `state` is none of the recordings, which are to be those of `job`.
/// # Errors
/// The recording cannot be read.
pub fn not_recorded(
    state: &CutState,
    recordings: &LoadedRecordings<'_>,
    job: &ProgramCrashJob,
) -> Result<Option<String>, RecordedLogError> {
    let directory = recordings.directory;
    if !is_recorded(directory, state.volume) {
        return Ok(Some(format!("{} has no recording of it", directory.display())));
    }
    let other = told(directory, state.volume)?.other_than(job, state.volume);
    if other.is_some() {
        return Ok(other);
    }
    let recording = recordings.of(state.volume)?;
    let ProgramWritten { begin_ns, settled_ns, .. } = recording.written;
    if !(begin_ns..=settled_ns).contains(&state.at_ns) {
        return Ok(Some(format!("the recording there goes from {begin_ns} to {settled_ns}")));
    }
    let cut = Cut::at(&recording.logged, state.at_ns);
    let can_be = CrashStates::new(&recording.history, cut).can_lack(&state.missing);
    Ok((!can_be).then(|| "at that moment these writes cannot be missing".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The base directory, and in it the recordings `one` and `other`, each of the same command.
    fn recordings() -> PathBuf {
        let base = std::env::temp_dir().join(format!("joj-sums-{}", std::process::id()));
        for name in ["one", "other"] {
            let directory = base.join(name);
            fs::create_dir_all(directory.join(RECORDINGS_DIRECTORY)).unwrap();
            for end in PROGRAM_RECORDING_ENDS {
                fs::write(directory.join(recording_file(0, end)), format!("{end} of {name}\n")).unwrap();
            }
            let sums = sums(&directory, 0).unwrap();
            fs::write(directory.join(recording_file(0, SUMS)), sums).unwrap();
        }
        base
    }

    #[test]
    fn a_file_that_was_changed_or_is_another_recording_s_is_named() {
        let base = recordings();
        let file = |name: &str, end: &str| base.join(name).join(recording_file(0, end));
        let told = || check_sums(&base.join("one"), 0).map_err(|reason| reason.to_string());
        assert_eq!(told(), Ok(()));
        for end in PROGRAM_RECORDING_ENDS.iter().chain([&SUMS]) {
            let whole = fs::read(file("one", end)).unwrap();
            let mut flipped = whole.clone();
            flipped[3] ^= 1;
            let (shorter, others) = (&whole[..whole.len() - 1], fs::read(file("other", end)).unwrap());
            for bytes in [&flipped[..], shorter, &others] {
                fs::write(file("one", end), bytes).unwrap();
                let said = told();
                // A changed list of checksums names the first file that has another one.
                let named = if *end == SUMS { "recordings/00." } else { &recording_file(0, end) };
                let is_named = said.as_ref().is_err_and(|said| said.contains(named));
                assert!(is_named || shorter == bytes && *end == SUMS, "{end}: {said:?}");
            }
            fs::remove_file(file("one", end)).unwrap();
            let missing = told().unwrap_err();
            assert!(missing.contains(&format!("{} is missing", recording_file(0, end))), "{missing}");
            fs::write(file("one", end), whole).unwrap();
        }
        assert_eq!(told(), Ok(()));
        fs::remove_dir_all(&base).unwrap();
    }
}
