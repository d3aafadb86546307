//! Recordings of `joj crash`: where they are, and the states of them that a user names.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use joj_analysis::bench::key::Word;
use joj_analysis::lab::program_crash::ProgramRun;
use joj_device::crash::{CrashStates, Cut, Missing};
use joj_device::description::DescriptionError;

use crate::lab::commands::error::LabError;
use crate::lab::error::UnitError;
use crate::lab::host_share::HostShare;
use crate::lab::image::packages::cache_directory;
use crate::lab::job::LabVolume;
use crate::lab::jobs::program_crash::{
    CutState, PROGRAM_RECORDING_ENDS, ProgramCrashJob, ProgramWritten, UsedFile,
};
use crate::lab::kept::made_with::MadeWith;
use crate::lab::kept::recordings::KeptRecordings;
use crate::lab::recorded_log::{RECORDINGS_DIRECTORY, RecordedLog, RecordedLogError, recording_file};

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

/// The recordings in `directory`, as programs have them.
pub fn kept_in(directory: &Path) -> KeptRecordings<'_> {
    KeptRecordings::of(directory, &PROGRAM_RECORDING_ENDS)
}

/// What the recording of volume `number` is made with.
/// # Errors
/// The job does not have one of its devices.
pub fn made_with(job: &ProgramCrashJob, number: usize) -> Result<MadeWith, DescriptionError> {
    let ProgramCrashJob { setting, command, before, seconds, .. } = job;
    let volume = &job.volumes[number];
    let mut made = MadeWith::by("joj crash")
        .with("PROGRAM", format!("{command:?}"))
        .with("--filesystems", volume.filesystem.word())
        .with_device("--device", &volume.device, setting)?
        .with("--program-seconds", seconds.program)
        .with("--settle-seconds", seconds.settle);
    if let Some(journal) = &volume.journal_device {
        made = made.with_device("--journal-device", journal, setting)?;
    }
    for (option, value) in [("--mount", &volume.mount_options), ("--before", before)] {
        if let Some(value) = value {
            made = made.with(option, value);
        }
    }
    Ok(made)
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

/// How the program of recording `number` ran, which is to be the one that `job` makes, and what it used of this machine's files.
/// # Errors
/// The recording is not whole, or is of another command.
pub fn told(
    directory: &Path,
    number: usize,
    job: &ProgramCrashJob,
) -> Result<(ProgramRun, Vec<UsedFile>), RecordedLogError> {
    kept_in(directory).check(number, &made_with(job, number)?)?;
    let read = |end| fs::read(directory.join(recording_file(number, end)));
    Ok((serde_json::from_slice(&read("run")?)?, serde_json::from_slice(&read("files")?)?))
}

/// Takes the recording of volume `number` out of a guest's share.
/// # Errors
/// A file is missing, or there is no room.
pub fn keep(
    job: &ProgramCrashJob,
    recordings: &Path,
    number: usize,
    share: &HostShare,
) -> Result<(), UnitError> {
    let made = made_with(job, number).map_err(|reason| UnitError::Reported(reason.to_string()))?;
    kept_in(recordings).keep(number, share, &made)
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
    if !kept_in(directory).is_any(state.volume) {
        return Ok(Some(format!("{} has no recording of it", directory.display())));
    }
    match told(directory, state.volume, job) {
        Err(other @ RecordedLogError::OtherCommand(_)) => return Ok(Some(other.to_string())),
        told => drop(told?),
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
    use joj_analysis::filesystem::Filesystem;

    use super::*;
    use crate::lab::job::{Setting, volumes};
    use crate::lab::jobs::program_crash::GuestSeconds;

    fn job() -> ProgramCrashJob {
        let texts =
            ["galaxy-s5-emmc", "ufs3"].map(|name| joj_device::shipped::text(name).unwrap().to_owned());
        let devices = ["dev.toml", "journal.toml"].map(str::to_owned).into_iter().zip(texts).collect();
        ProgramCrashJob {
            setting: Setting { sqlite: String::new(), devices, device_bytes: 1 },
            volumes: volumes(&["dev.toml".to_owned()], &[Filesystem::Ext4]),
            command: vec!["a".to_owned(), "b c".to_owned()],
            before: None,
            check: "true".to_owned(),
            host_words: Vec::new(),
            environment: Vec::new(),
            seconds: GuestSeconds { program: 60, settle: 40 },
            ignore_flushes: false,
            units: BTreeMap::new(),
        }
    }

    type Change = fn(&mut ProgramCrashJob);

    #[test]
    fn a_recording_belongs_to_all_that_the_program_ran_with_and_to_no_check() {
        let changed = |change: Change| {
            let mut other = job();
            change(&mut other);
            made_with(&job(), 0).unwrap().other_than(&made_with(&other, 0).unwrap()).unwrap_or_default()
        };
        let cases: [(Change, &str); 8] = [
            (|job| job.command = vec!["a".to_owned(), "b".to_owned(), "c".to_owned()], "PROGRAM"),
            (|job| job.volumes[0].filesystem = Filesystem::Xfs, "--filesystems"),
            (|job| job.volumes[0].mount_options = Some("nodelalloc".to_owned()), "--mount"),
            (|job| job.volumes[0].journal_device = Some("journal.toml".to_owned()), "--journal-device"),
            (|job| job.before = Some("true".to_owned()), "--before"),
            (|job| job.seconds.program = 61, "--program-seconds"),
            (|job| job.seconds.settle = 7, "--settle-seconds"),
            // The file has the same name, and another description.
            (
                |job| {
                    let other = job.setting.devices["journal.toml"].clone();
                    job.setting.devices.insert("dev.toml".to_owned(), other);
                },
                "--device",
            ),
        ];
        for (change, option) in cases {
            let said = changed(change);
            assert!(said.starts_with(&format!("another {option} (")) && !said.contains("), "), "{said}");
        }
        let same = |job: &mut ProgramCrashJob| {
            job.check = "false".to_owned();
            job.ignore_flushes = true;
            job.setting.devices.remove("journal.toml");
        };
        assert_eq!(changed(same), "");
    }
}
