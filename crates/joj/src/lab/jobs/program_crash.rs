//! What the host tells the guest about a program whose storage is cut, and what the guest leaves for guests after it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use joj_analysis::lab::program_crash::{Checked, Finding, HostWord, ProgramRun};
use joj_device::crash::Missing;
use serde::{Deserialize, Serialize};

use crate::lab::job::{LabVolume, Setting};
use crate::lab::recorded_log::Written;

/// The job, below the shared directory.
pub const PROGRAM_CRASH_JOB_FILE: &str = "program_crash.json";

/// What the guest shall do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramCrashJob {
    /// The devices of the guest.
    pub setting: Setting,
    /// Where the program runs.
    pub volumes: Vec<LabVolume>,
    /// The program, by its path on the host or its name, and its arguments.
    pub command: Vec<String>,
    /// What a shell runs in front of the program: what it leaves is there in every state.
    pub before: Option<String>,
    /// What a shell runs in the recovered directory.
    pub check: String,
    /// Words of all three that stand for files of the host.
    pub host_words: Vec<HostWord>,
    /// The environment of all three.
    pub environment: Vec<(String, String)>,
    /// How long the program may take, and then how long the log goes on.
    pub seconds: GuestSeconds,
    /// Cut a device that acknowledges flushes without effect.
    pub ignore_flushes: bool,
    /// What this guest does.
    pub units: BTreeMap<usize, ProgramUnit>,
}

/// Times of the guest's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestSeconds {
    /// The program is ended after so many.
    pub program: u64,
    /// The log goes on for so many when the program has ended: the kernel writes what nobody synced.
    pub settle: u64,
}

/// A piece of work with a report of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProgramUnit {
    /// Run the program on the volume of this number, and keep the log of its device.
    Record(usize),
    /// Run it again, without a recording: a recording that is there tells nothing of another check where nothing is cut.
    Uncut(usize),
    /// Look at a state.
    Look(CutState),
    /// Find out which of the missing writes it takes to break the state in the same way.
    Shrink(CutState, Finding, String),
}

/// A state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutState {
    /// The number of its volume.
    pub volume: usize,
    /// When the power is cut, nanoseconds of the guest's clock in the recording.
    pub at_ns: u64,
    /// What the cut takes.
    pub missing: Missing,
    /// Lines that had been printed.
    pub promised: usize,
}

/// What came of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProgramReport {
    /// The program ran; where it was to be recorded, the recording is there. And what it and the check used of the host's files.
    Ran(ProgramRun, Vec<UsedFile>),
    /// What the check found, the end of what it printed, and what it found when it looked at the same bytes again, where that is something
    /// else. What is kept is looked at once.
    Looked(Checked, String, Option<Checked>),
    /// A word of the command line has two meanings: which, and what to write instead.
    Ambiguous(String),
    /// The writes that have to be missing, and how many states were looked at to know it; and what the check found there later, where that
    /// is something else.
    Shrunk(Missing, u64, Option<Checked>),
}

/// Ends of the names of a recording's files; the last one is written last, and says that it is whole. `output`: all that the program
/// printed; `trace`: what each request was for (the export `runs` of `joj trace`), empty where it is not known; `run`: how it
/// ran ([`ProgramRun`]); `files`: what it used of the host's files ([`UsedFile`]).
pub const PROGRAM_RECORDING_ENDS: [&str; 7] = ["log", "requests", "output", "trace", "run", "files", "json"];

/// What was read or looked for on the host, as it was then.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UsedFile {
    /// Its whole path on the host. As JSON it is a list of bytes where it is no UTF-8.
    #[serde(with = "path_text")]
    pub path: PathBuf,
    /// It was opened, listed or followed, and not only looked for.
    is_read: bool,
    /// None where nothing was there.
    facts: Option<UsedFacts>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct UsedFacts {
    mode: u32,
    owner: (u32, u32),
    /// Bytes, and the time of the last change of the inode: no change of bytes, mode, owner, names or attributes leaves it. None for a
    /// directory that was only looked for: it lies on the way to many files, and changes with any of them.
    changed: Option<(u64, i64, i64)>,
}

mod path_text {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum TextOrBytes {
        Text(String),
        Bytes(Vec<u8>),
    }

    pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        match path.to_str() {
            Some(text) => serializer.serialize_str(text),
            None => path.as_os_str().as_bytes().serialize(serializer),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        Ok(match TextOrBytes::deserialize(deserializer)? {
            TextOrBytes::Text(text) => text.into(),
            TextOrBytes::Bytes(bytes) => OsString::from_vec(bytes).into(),
        })
    }
}

impl UsedFile {
    /// What is at `at` now, and is the host's `path`.
    pub fn of(path: &Path, at: &Path, is_read: bool) -> UsedFile {
        let facts = fs::symlink_metadata(at).ok().map(|facts| UsedFacts {
            mode: facts.mode(),
            owner: (facts.uid(), facts.gid()),
            changed: (is_read || !facts.is_dir()).then(|| (facts.len(), facts.ctime(), facts.ctime_nsec())),
        });
        UsedFile { path: path.to_owned(), is_read, facts }
    }

    /// True on the host where something else is there now.
    pub fn is_changed(&self) -> bool {
        UsedFile::of(&self.path, &self.path, self.is_read) != *self
    }
}

/// What a program did, by the clock that the log has. Beside it is a file with all that it printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramWritten {
    /// It was started.
    pub begin_ns: u64,
    /// The log was closed.
    pub settled_ns: u64,
    /// The end of each line that it printed: when it was read, and where it is in the output, in bytes.
    pub lines: Vec<(u64, usize)>,
    /// Where the journal is on a device of its own: from this byte of the log on it is that one's.
    #[serde(default)]
    pub journal_bytes: Option<u64>,
}

impl Written for ProgramWritten {
    fn ready_ns(&self) -> u64 {
        self.begin_ns
    }

    fn second_bytes(&self) -> Option<u64> {
        self.journal_bytes
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs::{File, Permissions};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;
    use std::time::UNIX_EPOCH;

    use super::*;

    /// The time of a file's inode is one of the kernel's ticks.
    fn tick() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }

    #[test]
    fn a_file_is_another_one_after_each_change_even_with_its_bytes_and_time_as_before() {
        let directory = std::env::temp_dir().join(format!("joj-used-file-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join(OsStr::from_bytes(b"no\xffutf8"));
        let used = |path: &Path, is_read| UsedFile::of(path, path, is_read);
        let write = |path: &Path, text: &str| {
            fs::write(path, text).unwrap();
            File::options().write(true).open(path).unwrap().set_modified(UNIX_EPOCH).unwrap();
        };
        write(&path, "one");
        let changes: [&dyn Fn(); 5] = [
            &|| write(&path, "two"),
            &|| {
                write(&directory.join("new"), "new");
                fs::rename(directory.join("new"), &path).unwrap();
            },
            &|| fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap(),
            &|| fs::hard_link(&path, directory.join("second")).unwrap(),
            &|| fs::remove_file(&path).unwrap(),
        ];
        for (number, change) in changes.iter().enumerate() {
            let before = [true, false].map(|is_read| used(&path, is_read));
            let text = serde_json::to_string(&before[0]).unwrap();
            assert_eq!(serde_json::from_str::<UsedFile>(&text).unwrap(), before[0], "{text}");
            assert!(!before.iter().any(UsedFile::is_changed));
            tick();
            change();
            assert!(before.iter().all(UsedFile::is_changed), "change {number}");
        }
        let missing = used(&path, false);
        let (listed, passed) = (used(&directory, true), used(&directory, false));
        tick();
        write(&path, "here");
        assert!(missing.is_changed() && listed.is_changed() && !passed.is_changed());
        fs::remove_dir_all(&directory).unwrap();
        assert!(passed.is_changed());
    }
}
