//! The files of a replay: those that are there before its first call, and those that are there after its last.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use joj_analysis::recording::file_tree::{Entries, TreeEntry};
use joj_analysis::recording::paths::{absolute, bytes_of, text_of};

use super::written_bytes::IoMemory;

/// Files and directories are made with these permissions, as far as umask lets it. Programs ask whether a file can be executed
/// (access, X_OK). A call that failed for want of a right is not made.
pub(super) const MODE: u32 = 0o777;

/// What is written at once.
const PIECE_BYTES: usize = 1 << 20;

/// Where a replay has its files.
#[derive(Clone, Copy)]
pub struct Roots<'replay> {
    /// On the disk that is measured.
    pub directory: &'replay Path,
    /// Elsewhere.
    pub other: &'replay Path,
    /// True for a recorded path that lies in `other`.
    pub is_other: &'replay dyn Fn(&str) -> bool,
}

impl<'replay> Roots<'replay> {
    /// All in one directory.
    pub fn one(directory: &'replay Path) -> Roots<'replay> {
        Roots { directory, other: directory, is_other: &|_| false }
    }

    /// Where a recorded path is. One that somebody made by hand may have `..`: no call shall leave the directory.
    pub fn place(&self, path: &str) -> PathBuf {
        let path = absolute("/", path);
        let root = if (self.is_other)(&path) { self.other } else { self.directory };
        root.join(OsStr::from_bytes(&bytes_of(path.trim_start_matches('/'))))
    }
}

/// Makes files, with bytes in them, and has them written to the disk, so that nothing of it happens in the replay. What is below
/// `grows` is made last: filesystems put what is new there beside it. `go_on` is asked now and then, and told how many bytes were written.
/// # Errors
/// The file that cannot be made, and why.
pub fn make(
    roots: Roots<'_>,
    entries: &Entries,
    grows: &HashSet<String>,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<bool, (PathBuf, io::Error)> {
    let mut memory = IoMemory::new(u64::MAX);
    let mut written = 0;
    let is_last =
        |path: &str| Path::new(path).ancestors().any(|above| grows.contains(&*above.to_string_lossy()));
    let (last, first): (Vec<_>, Vec<_>) = entries.iter().partition(|(path, _)| is_last(path));
    for (path, entry) in first.into_iter().chain(last) {
        let place = roots.place(path);
        let made = match entry {
            TreeEntry::Directory => fs::create_dir_all(&place).map(|()| true),
            TreeEntry::File(bytes) => {
                let how = File::options().write(true).create(true).truncate(true).mode(MODE).clone();
                how.open(&place).and_then(|file| fill(file, *bytes, &mut memory, &mut written, go_on))
            }
            TreeEntry::Symlink(target) => std::os::unix::fs::symlink(target, &place).map(|()| true),
            TreeEntry::HardLink(_) => continue,
        };
        if !made.map_err(|error| (place, error))? {
            return Ok(false);
        }
    }
    for (path, entry) in entries {
        if let TreeEntry::HardLink(first) = entry {
            let place = roots.place(path);
            fs::hard_link(roots.place(first), &place).map_err(|error| (place, error))?;
        }
    }
    for root in [roots.other, roots.directory] {
        let synced = File::open(root).and_then(|file| Ok(rustix::fs::syncfs(file.as_fd())?));
        synced.map_err(|error| (root.to_owned(), error))?;
    }
    Ok(true)
}

/// Bytes of the files whose paths are `wanted`.
pub fn bytes(entries: &Entries, wanted: impl Fn(&str) -> bool) -> u64 {
    let size = |(path, entry): (&String, &TreeEntry)| match entry {
        TreeEntry::File(bytes) if wanted(path) => *bytes,
        _ => 0,
    };
    entries.iter().map(size).fold(0, u64::saturating_add)
}

/// Writes bytes to a file; false where `go_on` says no.
pub(super) fn fill(
    mut file: impl Write,
    bytes: u64,
    memory: &mut IoMemory,
    written: &mut u64,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> io::Result<bool> {
    let mut left = bytes;
    while left > 0 {
        let piece = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_BYTES);
        file.write_all(memory.fresh(piece))?;
        left -= piece as u64;
        *written += piece as u64;
        if !go_on(*written) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The files that are there.
/// # Errors
/// The directory that cannot be read, and why.
pub fn list(directory: &Path) -> Result<Entries, (PathBuf, io::Error)> {
    let mut entries = Entries::new();
    let mut open = vec![(directory.to_owned(), String::new())];
    while let Some((place, path)) = open.pop() {
        let problem = |error| (place.clone(), error);
        for entry in fs::read_dir(&place).map_err(problem)? {
            let entry = entry.map_err(problem)?;
            let status = entry.metadata().map_err(problem)?;
            let name = format!("{path}/{}", text_of(entry.file_name().as_bytes()));
            let found = if status.is_dir() {
                open.push((entry.path(), name.clone()));
                TreeEntry::Directory
            } else if status.is_symlink() {
                TreeEntry::Symlink(
                    fs::read_link(entry.path()).map_err(problem)?.to_string_lossy().into_owned(),
                )
            } else {
                TreeEntry::File(status.len())
            };
            entries.insert(name, found);
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_a_directory_that_grows_is_made_last() {
        let directory = std::env::temp_dir().join(format!("joj-replay-trees-{}", std::process::id()));
        let file = |path: &str, bytes| (path.to_owned(), TreeEntry::File(bytes));
        let below = |path: &str| (path.to_owned(), TreeEntry::Directory);
        let entries = Entries::from([
            below("/a"),
            file("/a/grows", 3),
            below("/a/b"),
            file("/a/b/c", 10),
            below("/d"),
            file("/d/e", 5),
        ]);
        for (grows, sums) in [(None, [10, 13, 18]), (Some("/a"), [5, 15, 18]), (Some("/a/b"), [3, 8, 18])] {
            fs::create_dir_all(&directory).unwrap();
            let grows = grows.into_iter().map(str::to_owned).collect();
            let mut told = Vec::new();
            let mut go_on = |written| {
                told.push(written);
                true
            };
            assert!(make(Roots::one(&directory), &entries, &grows, &mut go_on).unwrap());
            assert_eq!(told, sums, "{grows:?}");
            fs::remove_dir_all(&directory).unwrap();
        }
    }
}
