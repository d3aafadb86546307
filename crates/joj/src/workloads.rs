//! The recordings that joj brings: of programs like those of the papers (docs/workloads.md), known by their names.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::machine::files::work_dir::{WorkDir, WorkDirError};

/// How the directory begins in which a command reads one.
const DIRECTORY: &str = "joj-workload";

/// A row of the list below.
macro_rules! shipped {
    ($name:literal, $what:literal) => {
        ($name, include_bytes!(concat!("../../../lab/recordings/", $name, ".joj")), $what)
    };
}

/// Name, recording, and what the program does.
const SHIPPED: [(&str, &[u8], &str); 12] = [
    shipped!("browser", "50 sites over Wi-Fi: a cache, its index, cookies"),
    shipped!("browser-usb", "the same over USB"),
    shipped!("installer", "ten packages, copied, unpacked, listed"),
    shipped!("launch-game", "the start of a game: 25 MB are read"),
    shipped!("launch-weather", "the start of a weather app: 3 MB are read"),
    shipped!("launch-twitter", "the start of a reader of short messages: 20 rows arrive"),
    shipped!("launch-gmail", "the start of a mail reader: 50 rows arrive"),
    shipped!("feed", "stories and pictures, each with a commit"),
    shipped!("mail", "an account is set up, 25 messages arrive"),
    shipped!("maps", "a route and eleven views of tiles"),
    shipped!("sql", "rows one by one, searches, large transactions"),
    shipped!("background", "two hours: six apps and eight widgets keep what they got"),
];

/// Why a recording that joj brings cannot be put where a command reads it.
#[derive(Debug, Error)]
pub enum WorkloadError {
    /// There is no directory for it.
    #[error(transparent)]
    Directory(#[from] WorkDirError),
    /// It cannot be written.
    #[error("cannot write {}: {error}; set TMPDIR to a directory with room", .file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
}

/// A recording of joj's in a file, which goes with the value.
#[derive(Debug)]
pub struct Placed {
    directory: WorkDir,
    name: &'static str,
}

impl Placed {
    /// Puts the recording of this name into a file; `None` where joj brings no such recording.
    /// # Errors
    /// It cannot be written.
    pub fn named(name: &str) -> Result<Option<Placed>, WorkloadError> {
        let Some((name, bytes, _)) = SHIPPED.iter().find(|(shipped, ..)| *shipped == name) else {
            return Ok(None);
        };
        let placed = Placed { directory: WorkDir::named(&std::env::temp_dir(), DIRECTORY)?, name };
        let file = placed.file();
        fs::write(&file, bytes).map_err(|error| WorkloadError::Write { file, error })?;
        Ok(Some(placed))
    }

    /// Where a command names a recording of joj's, and there is no such file, names that recording's file instead. It is there as long as
    /// what is returned.
    /// # Errors
    /// It cannot be written.
    pub fn instead_of(recording: &mut PathBuf) -> Result<Option<Placed>, WorkloadError> {
        let name = recording.to_str().filter(|_| !recording.exists());
        let Some(placed) = name.map(Placed::named).transpose()?.flatten() else { return Ok(None) };
        *recording = placed.file();
        Ok(Some(placed))
    }

    /// Its file.
    pub fn file(&self) -> PathBuf {
        self.directory.path().join(self.name)
    }
}

/// What a result calls a recording: the name of joj's own, else the file as it was given.
pub fn told(recording: &Path) -> String {
    let directory = recording.parent().and_then(Path::file_name).unwrap_or_default();
    let is_placed = directory.to_string_lossy().starts_with(DIRECTORY);
    let name = recording.file_name().filter(|_| is_placed).map(Path::new).unwrap_or(recording);
    name.display().to_string()
}

/// A line for each.
pub fn list() -> String {
    SHIPPED.iter().map(|(name, _, what)| format!("{name:<16} recording  {what}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_recording_where_there_is_no_such_file() {
        for (name, bytes, _) in SHIPPED {
            let mut recording = PathBuf::from(name);
            let placed = Placed::instead_of(&mut recording).unwrap().unwrap();
            assert_eq!(
                (fs::read(&recording).unwrap(), told(&recording)),
                (bytes.to_owned(), name.to_owned())
            );
            drop(placed);
            assert!(!recording.exists());
        }
        for file in ["src", "no-such-recording", "a/browser"] {
            let mut recording = PathBuf::from(file);
            assert!(Placed::instead_of(&mut recording).unwrap().is_none());
            assert_eq!((recording.to_str(), told(&recording).as_str()), (Some(file), file));
        }
    }
}
