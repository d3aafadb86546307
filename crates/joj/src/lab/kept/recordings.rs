//! Recordings below `DIR/recordings`. A recording has the files of the log and what else its command knows of it, and beside them
//!
//! ```text
//! NN.made   what it was made with
//! NN.sums   a line for each file: the end of its name, and a checksum
//! ```

use std::fs::{self, File};
use std::hash::Hasher;
use std::io;
use std::path::{Path, PathBuf};

use fnv::FnvHasher;

use crate::lab::error::{SessionError, ShareError, UnitError};
use crate::lab::file_hash::add_file;
use crate::lab::host_share::HostShare;
use crate::lab::kept::made_with::MadeWith;
use crate::lab::life::SessionEnd;
use crate::lab::recorded_log::{RECORDINGS_DIRECTORY, RecordedLogError, is_recorded, recording_file};
use crate::lab::turn::turn;

/// End of the name of the file with what a recording was made with.
const MADE: &str = "made";
/// End of the name of the file with the checksums of the others.
const SUMS: &str = "sums";
/// Held by who records there.
const LOCK: &str = "lock";

/// The recordings of a directory.
#[derive(Debug, Clone, Copy)]
pub struct KeptRecordings<'a> {
    /// The directory that `--recordings` names.
    pub directory: &'a Path,
    /// Ends of the names of the files that a guest leaves; the last one is written last.
    ends: &'static [&'static str],
}

impl<'a> KeptRecordings<'a> {
    /// Those in `directory`, of which each has files with these ends. The last one says that it is whole.
    pub fn of(directory: &'a Path, ends: &'static [&'static str]) -> KeptRecordings<'a> {
        KeptRecordings { directory, ends }
    }

    /// Waits for the joj that records there now, where one of the recordings `numbers` is not whole: a joj that records nothing
    /// waits for no other. Until the value is gone no other joj records there.
    /// # Errors
    /// A signal, or the directory cannot be locked.
    pub fn turn(&self, mut numbers: impl Iterator<Item = usize>) -> Result<Option<File>, SessionEnd> {
        if numbers.all(|number| is_recorded(self.directory, number)) {
            return Ok(None);
        }
        let path = self.directory.join(RECORDINGS_DIRECTORY).join(LOCK);
        let cannot = |error| SessionError::Turn { path: path.clone(), error };
        turn(&path, cannot, || {
            eprintln!("joj crash: waiting for another joj, which records into {}", self.directory.display());
        })
        .map(Some)
    }

    /// True where a file of recording `number` is there. Whether it is whole is another question: to record over the rest of one would
    /// give the states that were named with it another meaning.
    pub fn is_any(&self, number: usize) -> bool {
        self.files(number).any(|(_, file)| file.exists())
    }

    /// Keeps a recording that a guest left in `share` and that was made with `made`. What says that it is whole comes last.
    /// # Errors
    /// A file is missing, or there is no room; nothing is kept then.
    pub fn keep(&self, number: usize, share: &HostShare, made: &MadeWith) -> Result<(), UnitError> {
        let kept = self.take(number, share, made).map_err(|reason| UnitError::Reported(reason.to_string()));
        if kept.is_err() {
            self.remove(number);
        }
        kept
    }

    fn take(&self, number: usize, share: &HostShare, made: &MadeWith) -> Result<(), ShareError> {
        let put = |directory: &Path, end: &str, text: String| {
            let file = directory.join(recording_file(number, end));
            fs::write(&file, text).map_err(|error| ShareError::Write { file, error })
        };
        let here = share.shared();
        put(&here, MADE, serde_json::to_string(made)?)?;
        let unreadable = |(file, error): (PathBuf, io::Error)| ShareError::Take {
            name: file.display().to_string(),
            to: self.directory.to_owned(),
            error,
        };
        let sums = self.sums(&here, number).map_err(unreadable)?;
        put(self.directory, SUMS, sums)?;
        let names = || [MADE].iter().chain(self.ends).map(|end| recording_file(number, end));
        for name in names() {
            share.copy(&name, &self.directory.join(&name))?;
        }
        // Not before all are there: without them the next guest has nothing to make states of. Now they would take room twice.
        for name in names() {
            let _ = fs::remove_file(here.join(name));
        }
        Ok(())
    }

    /// Whether recording `number` has the files that were recorded at once, as they were, and is the one that is made with `wanted`.
    /// # Errors
    /// Which file is missing, cannot be read, or is another one; or what it was made with instead.
    pub fn check(&self, number: usize, wanted: &MadeWith) -> Result<(), RecordedLogError> {
        let text = |end| fs::read(self.directory.join(recording_file(number, end)));
        // Another command's has other files; so this comes before what is said of files.
        let made = text(MADE).ok().and_then(|text| serde_json::from_slice::<MadeWith>(&text).ok());
        if let Some(other) = made.and_then(|made| made.by_other_than(wanted)) {
            return Err(RecordedLogError::OtherCommand(other));
        }
        if let Some((end, _)) = self.files(number).find(|(_, file)| !file.exists()) {
            let name = recording_file(number, end);
            return Err(match end {
                MADE => RecordedLogError::MadeWithout(name),
                _ => RecordedLogError::Missing(name),
            });
        }
        let found = self
            .sums(self.directory, number)
            .map_err(|(file, error)| io::Error::new(error.kind(), format!("{}: {error}", file.display())))?;
        let recorded = text(SUMS)?;
        let recorded = String::from_utf8_lossy(&recorded);
        let mut lines = recorded.lines();
        for line in found.lines() {
            if lines.next() != Some(line) {
                let end = line.split(' ').next().unwrap_or_default();
                return Err(RecordedLogError::Changed(recording_file(number, end)));
            }
        }
        let made: MadeWith = serde_json::from_slice(&text(MADE)?)?;
        made.other_than(wanted).map_or(Ok(()), |other| Err(RecordedLogError::OtherCommand(other)))
    }

    /// Removes what there is of recording `number`.
    pub fn remove(&self, number: usize) {
        for (_, file) in self.files(number) {
            let _ = fs::remove_file(file);
        }
    }

    /// All files of recording `number`, with the ends of their names; the one that says that it is whole is the first.
    fn files(&self, number: usize) -> impl Iterator<Item = (&'static str, PathBuf)> + '_ {
        let ends = self.ends.iter().rev().chain(&[MADE, SUMS]);
        ends.map(move |end| (*end, self.directory.join(recording_file(number, end))))
    }

    /// A line for each file of recording `number` in `directory` but for this one.
    fn sums(&self, directory: &Path, number: usize) -> Result<String, (PathBuf, io::Error)> {
        let mut text = String::new();
        for end in self.ends.iter().chain(&[MADE]) {
            let file = directory.join(recording_file(number, end));
            let mut hasher = FnvHasher::default();
            add_file(&file, &mut hasher).map_err(|error| (file, error))?;
            text += &format!("{end} {:016x}\n", hasher.finish());
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDS: [&str; 3] = ["log", "run", "json"];

    fn made(mode: &str) -> MadeWith {
        MadeWith::by("joj crash sqlite").with("--mode", mode)
    }

    /// The base directory, and in it the recordings `one` and `other`, which share all but their bytes.
    fn recordings(name: &str) -> PathBuf {
        let base = std::env::temp_dir().join(format!("joj-kept-{name}-{}", std::process::id()));
        for name in ["one", "other"] {
            let directory = base.join(name);
            fs::create_dir_all(directory.join(RECORDINGS_DIRECTORY)).unwrap();
            let share = HostShare::create().unwrap();
            for end in ENDS {
                fs::write(share.shared().join(recording_file(0, end)), format!("{end} of {name}\n")).unwrap();
            }
            KeptRecordings::of(&directory, &ENDS).keep(0, &share, &made("wal")).unwrap();
        }
        base
    }

    #[test]
    fn a_file_that_was_changed_or_is_another_recording_s_is_named() {
        let base = recordings("changed");
        let directory = base.join("one");
        let kept = KeptRecordings::of(&directory, &ENDS);
        let file = |name: &str, end: &str| base.join(name).join(recording_file(0, end));
        let told = || kept.check(0, &made("wal")).map_err(|reason| reason.to_string());
        assert_eq!(told(), Ok(()));
        for end in ENDS.iter().chain(&[MADE, SUMS]) {
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
                let is_same = bytes == whole || bytes == shorter && *end == SUMS;
                assert!(is_named || is_same, "{end}: {said:?}");
            }
            fs::remove_file(file("one", end)).unwrap();
            let missing = told().unwrap_err();
            assert!(missing.contains(&format!("{} is missing", recording_file(0, end))), "{missing}");
            assert!(kept.is_any(0), "without its {end} it counts as none, and is recorded over");
            fs::write(file("one", end), whole).unwrap();
        }
        assert_eq!(told(), Ok(()));
        kept.remove(0);
        assert!(!kept.is_any(0));
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn a_recording_of_other_options_is_none_of_these() {
        let base = recordings("options");
        let directory = base.join("one");
        let said = KeptRecordings::of(&directory, &ENDS).check(0, &made("delete")).unwrap_err().to_string();
        assert_eq!(said, "the recording there was made with another --mode (`wal`, not `delete`)");
        let other = MadeWith::by("joj crash").with("PROGRAM", "p");
        let said =
            KeptRecordings::of(&directory, &["output", "json"]).check(0, &other).unwrap_err().to_string();
        assert_eq!(
            said,
            "the recording there was made with another command (`joj crash sqlite`, not `joj crash`)"
        );
        fs::remove_dir_all(&base).unwrap();
    }
}
