//! Directories of joj's that a killed joj left: told from those in use by a lock beside each, and removed.
//!
//! ```text
//! joj-lab-4711-0        the directory
//! joj-lab-4711-0.lock   an empty file; its joj holds flock(2) on it, and the kernel lets go of it also where that joj is killed
//! ```
//!
//! Invariants: 1. who removes a directory of another joj's, or makes one, holds the lock that is at its name then. 2. The lock's name
//! goes after the directory. 3. A directory without a lock is not touched: its user may have made it, or asked to keep it. 4. Nothing is
//! removed through a mount: what lies behind it is no file of joj's.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{CWD, Dir, FileType, FlockOperation, Mode, OFlags, chmod, flock, fstat, openat};
use rustix::io::Errno;
use rustix::path::Arg;
use rustix::process::geteuid;
use thiserror::Error;

use crate::machine::files::mounts::{self, MountError};
use crate::machine::proc::clock::pause;

/// What follows the directory's name in its lock's.
const SUFFIX: &str = ".lock";

/// The right to a directory's name, as long as the value lives.
#[derive(Debug)]
pub(in crate::machine) struct NameLock {
    path: PathBuf,
    _file: File,
}

impl NameLock {
    /// Takes the lock of the name `directory`, whether there is such a directory or not; `None` where another joj has it.
    /// # Errors
    /// No file can be made there, or the filesystem has no locks; nothing is left behind.
    pub(in crate::machine) fn take(directory: &Path) -> io::Result<Option<NameLock>> {
        let path = path(directory);
        // Another user's file, a pipe or a link at this name is not opened: whoever made it shall not decide what joj waits for.
        let file = match File::options().write(true).create_new(true).mode(0o600).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
            made => made?,
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            // Who looks for what was left was faster.
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => {
                let _ = fs::remove_file(&path);
                return Err(error.into());
            }
        }
        Ok(Self::held(path, file))
    }

    /// The lock of the name where the locked file is still there; else it is another joj's, and stays.
    fn held(path: PathBuf, file: File) -> Option<NameLock> {
        // Made only then: a value that is dropped removes the file at its name.
        leads_to(&path, &file).then(|| NameLock { path, _file: file })
    }
}

impl Drop for NameLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn path(directory: &Path) -> PathBuf {
    let mut path = directory.as_os_str().to_owned();
    path.push(SUFFIX);
    path.into()
}

/// Whether the file at `path` is the one that is open.
fn leads_to(path: &Path, file: &File) -> bool {
    let facts = fs::symlink_metadata(path).and_then(|there| Ok((there, file.metadata()?)));
    facts.is_ok_and(|(there, open)| (there.dev(), there.ino()) == (open.dev(), open.ino()))
}

/// Places where this joj has removed what others left.
static SEEN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Removes the directories in `place` whose joj was killed; the second time in a process it does nothing.
pub(in crate::machine) fn remove_left_once(place: &Path) {
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    if seen.insert(place.to_owned()) {
        remove_left(place);
    }
}

fn remove_left(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let lock = entry.file_name();
        let directory = lock.to_str().and_then(|lock| lock.strip_suffix(SUFFIX)).filter(|name| is_ours(name));
        let is_lock = directory.is_some() && is_lock(&entry.path());
        let file = is_lock.then(|| File::options().write(true).open(entry.path()).ok()).flatten();
        if let Some((directory, file)) = directory.zip(file) {
            remove_if_left(&place.join(directory), file);
        }
    }
}

/// Whether a file is such a directory, or its lock. Its user's own may have such a name, without a lock.
pub(in crate::machine) fn is_own(file: &Path) -> bool {
    let Some(name) = file.file_name().and_then(OsStr::to_str) else { return false };
    match name.strip_suffix(SUFFIX) {
        Some(name) => is_ours(name) && is_lock(file),
        None => is_ours(name) && is_lock(&path(file)),
    }
}

/// Anybody may make a name: a file with something in it is not joj's, and to open a pipe would wait.
fn is_lock(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|facts| facts.is_file() && facts.len() == 0)
}

/// `joj-<what for>-<process>-<number>`.
fn is_ours(name: &str) -> bool {
    let mut parts = name.rsplitn(3, '-');
    let is_number = |part: Option<&str>| part.is_some_and(|part| part.parse::<u32>().is_ok());
    is_number(parts.next())
        && is_number(parts.next())
        && parts.next().is_some_and(|name| name.starts_with("joj-"))
}

/// Removes the directory unless its joj runs; `lock` was at its lock's name a moment ago.
fn remove_if_left(directory: &Path, lock: File) {
    let path = path(directory);
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        return;
    }
    // Before that another joj may have removed both, and one with the same process number made them anew.
    if !leads_to(&path, &lock) {
        return;
    }
    match remove(directory) {
        Ok(()) => drop(NameLock { path, _file: lock }),
        // Another user's stays, without a word.
        Err(RemoveError::System(_)) => {}
        Err(error) => eprintln!("joj: {} of a joj that was killed stays: {error}", directory.display()),
    }
}

/// Why a directory of joj's is still there, and what to do.
#[derive(Debug, Error)]
pub enum RemoveError {
    /// Removing would delete files of others.
    #[error(
        "something is mounted on {}, and what lies behind it is not joj's to delete; unmount that first (`umount`), then remove the \
         directory by hand", .0.display()
    )]
    Mounted(PathBuf),
    /// Nobody knows what is mounted in it.
    #[error("cannot find out what is mounted in it: {0}; unmount all that is, then remove it by hand")]
    Unknown(#[from] MountError),
    /// As unlink(2).
    #[error("{0}; {remedy}", remedy = remedy(.0))]
    System(#[from] io::Error),
}

fn remedy(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM) => {
            "where files in it are immutable, `chattr -R -i` on it lets them go; then remove it by hand"
        }
        Some(libc::EACCES) => "files in it are another user's; remove it by hand as root",
        _ => "remove it by hand",
    }
}

/// Removes a directory, if it is there, with all that is in it and what its databases have in memory.
/// # Errors
/// Something is mounted in it: nothing is removed then. Or as unlink(2); a part is there then.
pub(in crate::machine) fn remove(directory: &Path) -> Result<(), RemoveError> {
    if let Some(mount) = mounts::within(directory)?.into_iter().next() {
        return Err(RemoveError::Mounted(mount.mount_point));
    }
    let pages = shared_pages(directory);
    let mut removed = fs::remove_dir_all(directory);
    if removed.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
        let _ = make_accessible(CWD, directory);
        removed = fs::remove_dir_all(directory);
    }
    // Writing processes that a signal ended may be in the middle of making a file.
    for _ in 0..50 {
        match &removed {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            _ => break,
        }
        pause(Duration::from_millis(20));
        removed = fs::remove_dir_all(directory);
    }
    // Last: whoever made one until now is gone, or finds no database any more.
    remove_all(&pages);
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => Ok(removed?),
    }
}

/// Lets this user see and remove what is in a directory and below it, as far as it is this user's: a program may have taken that right
/// from itself. No link is followed.
fn make_accessible(above: impl AsFd, name: impl Arg) -> io::Result<()> {
    let here = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = openat(above, name, here | OFlags::PATH | OFlags::NOFOLLOW, Mode::empty())?;
    let facts = fstat(&directory)?;
    if facts.st_uid == geteuid().as_raw() && facts.st_mode & 0o700 != 0o700 {
        // The descriptor of a directory that may not be read is good for nothing else.
        chmod(
            format!("/proc/self/fd/{}", directory.as_raw_fd()),
            Mode::from_raw_mode(facts.st_mode | 0o700),
        )?;
    }
    let inside = openat(&directory, ".", here, Mode::empty())?;
    for entry in Dir::read_from(&inside)? {
        let entry = entry?;
        let is_below = !matches!(entry.file_name().to_bytes(), b"." | b"..");
        if is_below && matches!(entry.file_type(), FileType::Directory | FileType::Unknown) {
            // Others are made accessible all the same.
            let _ = make_accessible(&inside, entry.file_name());
        }
    }
    Ok(())
}

/// Where writing processes that were killed leave the page that waldio has them share (docs/log_format.md): one for each database below a
/// directory, by its inode.
pub(in crate::machine) fn shared_pages(directory: &Path) -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for file in fs::read_dir(directory).into_iter().flatten().flatten() {
        match file.metadata() {
            Ok(status) if status.is_dir() => pages.extend(shared_pages(&file.path())),
            Ok(status) if status.is_file() => {
                pages.push(format!("/dev/shm/waldio-line-{:x}-{}", status.dev(), status.ino()).into());
            }
            _ => {}
        }
    }
    pages
}

/// Most are not there.
pub(in crate::machine) fn remove_all(pages: &[PathBuf]) {
    for page in pages {
        let _ = fs::remove_file(page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> PathBuf {
        let place = std::env::temp_dir().join(format!("joj-left-{name}-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        place
    }

    /// What a killed process leaves: its locks go with it, their files stay.
    fn leave(directory: &Path) {
        fs::create_dir_all(directory).unwrap();
        fs::write(directory.join("image"), "").unwrap();
        fs::write(path(directory), "").unwrap();
    }

    #[test]
    fn what_a_killed_joj_left_is_removed_and_what_one_uses_is_not() {
        let place = place("removed");
        let [used, left, without, other, written] =
            ["joj-lab-1-0", "joj-bench-2-0", "joj-lab-3-0", "joj-results-2026", "joj-lab-4-0"]
                .map(|name| place.join(name));
        let lock = NameLock::take(&used).unwrap().unwrap();
        for directory in [&used, &without] {
            fs::create_dir(directory).unwrap();
        }
        for directory in [&left, &other, &written] {
            leave(directory);
        }
        fs::write(path(&written), "not joj's").unwrap();
        let own = [&used, &left, &without, &other, &written].map(|one| (is_own(one), is_own(&path(one))));
        assert_eq!(own, [(true, true), (true, true), (false, false), (false, false), (false, false)]);
        remove_left(&place);
        let there = [&used, &left, &without, &other, &written].map(|one| (one.exists(), path(one).exists()));
        assert_eq!(there, [(true, true), (false, false), (true, false), (true, true), (true, true)]);
        drop(lock);
        assert!(!path(&used).exists());
        leave(&left);
        remove_left_once(&place);
        leave(&used);
        remove_left_once(&place);
        assert_eq!([&used, &left].map(|one| one.exists()), [true, false], "each place is looked at once");
        fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn what_databases_deep_below_have_in_memory_goes_with_them() {
        let place = place("pages");
        let database = place.join("a/b/app.db");
        fs::create_dir_all(place.join("a/b")).unwrap();
        fs::write(&database, "").unwrap();
        let status = fs::metadata(&database).unwrap();
        let page = PathBuf::from(format!("/dev/shm/waldio-line-{:x}-{}", status.dev(), status.ino()));
        fs::write(&page, "").unwrap();
        remove(&place).unwrap();
        assert!(!place.exists() && !page.exists());
    }

    #[test]
    fn who_locked_what_is_gone_leaves_the_new_owner_of_the_name_alone() {
        let place = place("anew");
        let directory = place.join("joj-lab-1-0");
        leave(&directory);
        let old = File::options().write(true).open(path(&directory)).unwrap();
        remove_left(&place);
        let _new = NameLock::take(&directory).unwrap().unwrap();
        fs::create_dir(&directory).unwrap();
        // The lock on the old inode can be had, as nobody holds it.
        remove_if_left(&directory, old);
        assert!(directory.exists() && path(&directory).exists());
        fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn who_locked_a_name_too_late_leaves_the_lock_of_its_new_owner() {
        let place = place("late");
        let directory = place.join("joj-lab-1-0");
        fs::write(path(&directory), "").unwrap();
        let old = File::open(path(&directory)).unwrap();
        fs::remove_file(path(&directory)).unwrap();
        let _new = NameLock::take(&directory).unwrap().unwrap();
        assert!(NameLock::held(path(&directory), old).is_none());
        assert!(path(&directory).exists());
        fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn a_name_has_one_owner() {
        let place = place("owner");
        let directory = place.join("joj-lab-1-0");
        let first = NameLock::take(&directory).unwrap().unwrap();
        assert!(NameLock::take(&directory).unwrap().is_none());
        drop(first);
        assert!(NameLock::take(&directory).unwrap().is_some());
        fs::remove_dir_all(&place).unwrap();
    }
}
