//! The names in directories of an overlay, held in the kernel's memory.
//!
//! Overlayfs remembers the names of a directory that is in both layers, until the directory changes. It does so only while a file that
//! listed them is open (fs/overlayfs/readdir.c, `ovl_cache_get`). So each directory, once it is in both, is listed and held open.

use std::io;
use std::mem;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, Mode, OFlags};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What is over one of these limits stays in the lower layer: names of all directories together, and directories.
const NAMES_MAX: usize = 300_000;
const DIRECTORIES_MAX: usize = 10_000;
/// The directories have descriptors from here on. Those below are for all else, and what a program may open is as it was.
const DESCRIPTORS_BEGIN: u32 = 10_000;

/// The directories that are held open.
#[derive(Debug, Default)]
pub struct KeptNames {
    held: Vec<Dir>,
}

impl KeptNames {
    /// Lists `new`, and again those of before that have changed since. Where one cannot be listed any more, it is not held.
    /// # Errors
    /// As setrlimit(2).
    pub fn hold(&mut self, new: &[PathBuf]) -> io::Result<()> {
        let limit = getrlimit(Resource::Nofile);
        let most = u64::from(DESCRIPTORS_BEGIN) + DIRECTORIES_MAX as u64;
        setrlimit(
            Resource::Nofile,
            Rlimit { current: Some(most), maximum: limit.maximum.map(|now| now.max(most)) },
        )?;
        let room = DIRECTORIES_MAX.saturating_sub(self.held.len());
        self.held.extend(new.iter().take(room).filter_map(|path| open(path).ok()));
        setrlimit(Resource::Nofile, limit)?;
        let mut names_left = NAMES_MAX;
        for mut directory in mem::take(&mut self.held) {
            let Ok(names) = count(&mut directory) else { continue };
            if let Some(left) = names_left.checked_sub(names) {
                names_left = left;
                self.held.push(directory);
            }
        }
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<Dir> {
    let low = rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let begin = DESCRIPTORS_BEGIN.cast_signed();
    Ok(Dir::new(rustix::io::fcntl_dupfd_cloexec(low.as_fd(), begin)?)?)
}

/// Lists a directory, and says how many names it has.
fn count(directory: &mut Dir) -> io::Result<usize> {
    directory.rewind();
    let mut names = 0;
    while let Some(entry) = directory.read() {
        entry?;
        names += 1;
    }
    Ok(names)
}
