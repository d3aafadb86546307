//! The bytes of a saved trace: a file, standard input, a pipe. Whatever it is, it can be read from its begin more than once.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek, Write};
use std::os::fd::AsFd;
use std::path::Path;

use crate::machine::files::unnamed_file;
use crate::trace::error::InputError;
use crate::trace::progress::{ProgressLine, go_on};

/// What is read with one call of the kernel's.
const BUFFER_BYTES: usize = 256 << 10;

/// An open input.
pub struct Input {
    name: String,
    file: File,
}

impl Input {
    /// Opens it; `-` is standard input. What comes through a pipe is kept in a temporary file without a name.
    /// # Errors
    /// It cannot be opened, or not be kept.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        let is_standard = path == Path::new("-");
        let name = if is_standard { "standard input".to_owned() } else { path.display().to_string() };
        let problem = |error: io::Error| InputError::Unreadable { name: name.clone(), error };
        let file = if is_standard {
            File::from(io::stdin().as_fd().try_clone_to_owned().map_err(problem)?)
        } else {
            File::open(path).map_err(problem)?
        };
        let kind = file.metadata().map_err(problem)?.file_type();
        if kind.is_dir() {
            return Err(InputError::Directory(name));
        }
        let file = if kind.is_file() { file } else { kept(&name, file)? };
        Ok(Self { name, file })
    }

    /// What messages call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its first bytes, so many or all.
    /// # Errors
    /// It cannot be read.
    pub fn first_bytes(&self, most: u64) -> Result<Vec<u8>, InputError> {
        let mut bytes = Vec::new();
        self.rewound()?.take(most).read_to_end(&mut bytes).map_err(|error| self.problem(error))?;
        Ok(bytes)
    }

    /// All of it. A reader that was given out before must not be used any more.
    /// # Errors
    /// It cannot be read from its begin.
    pub fn rewound(&self) -> Result<BufReader<&File>, InputError> {
        let mut file = &self.file;
        file.rewind().map_err(|error| self.problem(error))?;
        Ok(BufReader::with_capacity(BUFFER_BYTES, file))
    }

    /// So many bytes of so many are read. What cannot be known counts as none.
    pub fn position(&self) -> (u64, u64) {
        let mut file = &self.file;
        (file.stream_position().unwrap_or(0), file.metadata().map_or(0, |metadata| metadata.len()))
    }

    /// The file itself.
    pub fn into_file(self) -> File {
        self.file
    }

    fn problem(&self, error: io::Error) -> InputError {
        InputError::Unreadable { name: self.name.clone(), error }
    }
}

fn kept(name: &str, mut pipe: File) -> Result<File, InputError> {
    let directory = std::env::temp_dir();
    let problem =
        |error: io::Error| InputError::NotKept { name: name.to_owned(), directory: directory.clone(), error };
    let mut file = unnamed_file::create(&directory, "joj-input").map_err(problem)?;
    let mut progress = ProgressLine::begin();
    let (mut bytes, mut kept) = (vec![0; BUFFER_BYTES], 0_u64);
    loop {
        // Not io::copy: it goes on behind a signal, or calls it an error of the pipe.
        go_on()?;
        let read = match pipe.read(&mut bytes) {
            Ok(0) => return Ok(file),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(InputError::Unreadable { name: name.to_owned(), error }),
        };
        file.write_all(&bytes[..read]).map_err(problem)?;
        kept += read as u64;
        progress.tell(|| format!("{} MiB came from {name} so far; Ctrl-C gives it up", kept >> 20));
    }
}
