//! The texts of /proc that a monitor reads again and again: opened once, read from their beginning each time.
//!
//! Opening takes a path walk and an allocation in the kernel, and what counts is what a sample costs.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use joj_analysis::monitor::proc::proc_text::ProcError;
use joj_analysis::monitor::reading::{FILES, Reading};
use thiserror::Error;

use crate::machine::proc::clock::shared_ns;

/// What a text has room for at first; the interrupts of a large server take more.
const TEXT_BYTES: usize = 16 * 1024;
/// A text longer than this is none of the kernel's.
const TEXT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Why the counters of /proc cannot be read.
#[derive(Debug, Error)]
pub enum ProcFileError {
    /// None of the files can be opened.
    #[error("there is nothing to monitor in {}: {why}; mount proc there", .proc.display())]
    Nothing {
        /// The directory.
        proc: PathBuf,
        /// What is said of the first file.
        why: String,
    },
    /// A file that was opened cannot be read.
    #[error("cannot read {}: {error}; run joj where /proc is the running kernel's", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// A file has bytes that are no text.
    #[error("cannot make sense of {}, line {line}: it is not text", .path.display())]
    NoText {
        /// The file.
        path: PathBuf,
        /// The line's number; the first is 1.
        line: usize,
    },
    /// A line is none that joj knows.
    #[error(
        "cannot make sense of {}, line {}: {}; send that text with a bug report",
        .path.display(), .error.line, .error.what
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, and what is wrong with it.
        #[source]
        error: ProcError,
    },
}

/// The open files, in the order of [`FILES`].
#[derive(Debug)]
pub struct ProcFiles {
    files: Vec<ProcFile>,
}

#[derive(Debug)]
struct ProcFile {
    path: PathBuf,
    /// None where it cannot be opened: Android hides some from programs.
    file: Option<File>,
    text: Vec<u8>,
}

impl ProcFiles {
    /// Opens what there is under `proc`; and a warning for each file that cannot be opened.
    /// # Errors
    /// Where there is nothing at all to read.
    pub fn open(proc: &Path) -> Result<(ProcFiles, Vec<String>), ProcFileError> {
        let mut warnings = Vec::new();
        let mut files = Vec::new();
        for name in FILES {
            let path = proc.join(name);
            let file = File::open(&path);
            if let Err(error) = &file {
                let shown = path.display();
                warnings.push(format!(
                    "cannot read {shown}: {error}; what it tells is missing (root may read it)"
                ));
            }
            files.push(ProcFile { path, file: file.ok(), text: Vec::new() });
        }
        if files.iter().all(|file| file.file.is_none()) {
            return Err(ProcFileError::Nothing { proc: proc.to_owned(), why: warnings.swap_remove(0) });
        }
        Ok((ProcFiles { files }, warnings))
    }

    /// Reads all of them now.
    /// # Errors
    /// What could not be read, or the first damaged line, with the file.
    pub fn read(&mut self) -> Result<Reading, ProcFileError> {
        let at_ns = shared_ns();
        let mut texts = [None; FILES.len()];
        for (file, text) in self.files.iter_mut().zip(&mut texts) {
            *text = file.read()?;
        }
        Reading::parse(at_ns, texts).map_err(|error| {
            let file = self.files.iter().find(|file| file.path.ends_with(error.file));
            let directory =
                file.and_then(|file| file.path.ancestors().nth(Path::new(error.file).iter().count()));
            let path = directory.unwrap_or(Path::new("/proc")).join(error.file);
            ProcFileError::Line { path, error }
        })
    }
}

impl ProcFile {
    fn read(&mut self) -> Result<Option<&str>, ProcFileError> {
        let ProcFile { path, file: Some(file), text } = self else { return Ok(None) };
        let length =
            read_all(file, text).map_err(|error| ProcFileError::Unreadable { path: path.clone(), error })?;
        match std::str::from_utf8(&text[..length]) {
            Ok(text) => Ok(Some(text)),
            Err(error) => {
                let lines = text[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
                Err(ProcFileError::NoText { path: path.clone(), line: lines + 1 })
            }
        }
    }
}

/// Reads a file from its beginning into `text`, which grows as needed; how long it is.
fn read_all(file: &File, text: &mut Vec<u8>) -> io::Result<usize> {
    let mut length = 0;
    loop {
        if length == text.len() {
            text.resize((length * 2).max(TEXT_BYTES), 0);
        }
        let read = match file.read_at(&mut text[length..], u64::try_from(length).unwrap_or(0)) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if read == 0 {
            return Ok(length);
        }
        length += read;
        if length > TEXT_BYTES_MAX {
            return Err(io::Error::other("it has no end"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_running_kernel_is_read_again_and_again() {
        let (mut files, _) = ProcFiles::open(Path::new("/proc")).unwrap();
        let first = files.read().unwrap();
        let second = files.read().unwrap();
        assert!(second.at_ns > first.at_ns);
        assert_eq!(first.disks.len(), second.disks.len());
        if let (Some(first), Some(second)) = (first.stat, second.stat) {
            assert!(second.context_switches >= first.context_switches);
        }
    }

    #[test]
    fn damage_and_absence_name_the_file() {
        let place = std::env::temp_dir().join(format!("joj-proc-{}", std::process::id()));
        let error = ProcFiles::open(&place).unwrap_err().to_string();
        assert!(error.contains("there is nothing to monitor in") && error.contains("stat"), "{error}");
        fs::create_dir_all(place.join("net")).unwrap();
        fs::write(place.join("diskstats"), "8 0 sda 1 2\n").unwrap();
        let (mut files, warnings) = ProcFiles::open(&place).unwrap();
        assert_eq!(warnings.len(), 4, "{warnings:?}");
        let error = files.read().unwrap_err().to_string();
        let path = place.join("diskstats");
        assert!(error.contains(&format!("{}, line 1: it has 5 fields", path.display())), "{error}");
        fs::write(place.join("net/dev"), "a\nb\n").unwrap();
        fs::write(&path, "").unwrap();
        let error = ProcFiles::open(&place).unwrap().0.read().unwrap_err().to_string();
        assert!(error.contains(&format!("{}, line 1: ", place.join("net/dev").display())), "{error}");
        fs::write(place.join("net/dev"), b"Inter-|\n\xff\n").unwrap();
        let error = ProcFiles::open(&place).unwrap().0.read().unwrap_err().to_string();
        assert!(error.contains("net/dev, line 2: it is not text"), "{error}");
        let _ = fs::remove_dir_all(&place);
    }

    #[test]
    fn texts_longer_than_the_room_are_read_whole() {
        let path = std::env::temp_dir().join(format!("joj-long-{}", std::process::id()));
        let written = "line\n".repeat(10_000);
        fs::write(&path, &written).unwrap();
        let mut text = Vec::new();
        let length = read_all(&File::open(&path).unwrap(), &mut text).unwrap();
        let _ = fs::remove_file(&path);
        assert_eq!(text[..length], *written.as_bytes());
    }
}
