//! The files of a replay: those that are there before its first call, and those that are there after its last.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use joj_analysis::recording::file_tree::{Entries, TreeEntry};
use joj_analysis::recording::paths::absolute;

use super::written_bytes::IoMemory;

/// What is written at once.
const PIECE_BYTES: usize = 1 << 20;

/// Where a recorded path is, below the replay's directory.
pub fn place(directory: &Path, path: &str) -> PathBuf {
    directory.join(absolute("/", path).trim_start_matches('/'))
}

/// Makes files, with bytes in them, and has them written to the disk, so that nothing of it happens in the replay. What is below
/// `grows` is made last: filesystems put what is new there beside it, and what the program only reads was often on another disk.
/// `go_on` is asked now and then, and told how many bytes were written.
/// # Errors
/// The file that cannot be made, and why.
pub fn make(
    directory: &Path,
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
        let place = place(directory, path);
        let made = match entry {
            TreeEntry::Directory => fs::create_dir_all(&place).map(|()| true),
            TreeEntry::File(bytes) => fill(&place, *bytes, &mut memory, &mut written, go_on),
            TreeEntry::Symlink(target) => std::os::unix::fs::symlink(target, &place).map(|()| true),
        };
        if !made.map_err(|error| (place, error))? {
            return Ok(false);
        }
    }
    let synced = File::open(directory).and_then(|file| Ok(rustix::fs::syncfs(file.as_fd())?));
    synced.map_err(|error| (directory.to_owned(), error))?;
    Ok(true)
}

/// Bytes of these files.
pub fn bytes(entries: &Entries) -> u64 {
    let sizes = entries.values().map(|entry| if let TreeEntry::File(bytes) = entry { *bytes } else { 0 });
    sizes.fold(0, u64::saturating_add)
}

fn fill(
    place: &Path,
    bytes: u64,
    memory: &mut IoMemory,
    written: &mut u64,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> io::Result<bool> {
    let mut file = File::create(place)?;
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
            let name = format!("{path}/{}", entry.file_name().to_string_lossy());
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
            assert!(make(&directory, &entries, &grows, &mut go_on).unwrap());
            assert_eq!(told, sums, "{grows:?}");
            fs::remove_dir_all(&directory).unwrap();
        }
    }
}
