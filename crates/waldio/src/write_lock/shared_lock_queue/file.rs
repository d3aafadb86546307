//! The file behind the shared page: found by the database's device and inode, in memory, gone with its last user.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use blockio::real::descriptors;
use rustix::fs::{FlockOperation, Gid, Mode, OFlags, Uid, fchmod, fchown, flock};
use rustix::io::Errno;

use crate::ffi::kernel::shared_page::{PAGE_BYTES, SharedPage, fresh};
use crate::threads::origin::Origin;

/// A name that others remove and make at the same time is followed so often.
const TRIES: usize = 3;

/// Why there is no page.
#[derive(Debug)]
pub(super) enum Refused {
    /// Another process is making or removing it: ask again.
    Later,
    /// There will be none.
    ForGood(String),
}

/// The page and its file, which this process keeps alive by a shared flock(2).
#[derive(Debug)]
pub(super) struct PageFile {
    /// The page.
    pub(super) page: SharedPage,
    /// Its name.
    pub(super) path: PathBuf,
    file: File,
    /// Who opened it: a child of fork has the same open file, and is not to remove it.
    origin: Origin,
}

impl PageFile {
    /// True where somebody has made the page of `database` in `folder`.
    pub(super) fn is_there(folder: &Path, database: &Path) -> bool {
        fs::metadata(database).is_ok_and(|named| path_of(folder, &named).exists())
    }

    /// Opens or makes the page of `database` in `folder`.
    pub(super) fn open(folder: &Path, database: &Path) -> Result<PageFile, Refused> {
        let named = fs::metadata(database).map_err(|error| for_good(database, &error.to_string()))?;
        let path = path_of(folder, &named);
        for _ in 0..TRIES {
            let file = match open_or_create(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(for_good(&path, &error.to_string())),
            };
            match PageFile::join(file, &path, &named) {
                Ok(Some(opened)) => return Ok(opened),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(Refused::Later),
                Err(error) => return Err(for_good(&path, &error.to_string())),
            }
        }
        Err(Refused::Later)
    }

    /// Joins those who have the file open, or makes it ready where nobody has; `None` where the name leads elsewhere now.
    fn join(file: File, path: &Path, database: &Metadata) -> io::Result<Option<PageFile>> {
        let status = file.metadata()?;
        let trusted = [rustix::process::geteuid().as_raw(), 0, database.uid()];
        if !status.is_file() || !trusted.contains(&status.uid()) {
            return Err(io::Error::other("there is a file of somebody else's"));
        }
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                if status.size() == 0 {
                    make_ready(&file, database)?;
                }
                flock(&file, FlockOperation::LockShared)?;
            }
            Err(Errno::WOULDBLOCK) => flock(&file, FlockOperation::NonBlockingLockShared)?,
            Err(error) => return Err(error.into()),
        }
        if !is_at(&file, path) {
            return Ok(None);
        }
        let foreign = || io::Error::other("there is a file of another kind, or of another version of waldio");
        if file.metadata()?.size() != PAGE_BYTES as u64 {
            return Err(foreign());
        }
        let page = SharedPage::map(&file)?;
        if !page.words().are_ours() {
            return Err(foreign());
        }
        Ok(Some(PageFile { page, path: path.to_owned(), file, origin: Origin::default() }))
    }
}

impl Drop for PageFile {
    fn drop(&mut self) {
        let alone = || flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_ok();
        if !self.origin.is_parent() && alone() && is_at(&self.file, &self.path) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn path_of(folder: &Path, database: &Metadata) -> PathBuf {
    folder.join(format!("waldio-line-{:x}-{}", database.dev(), database.ino()))
}

fn for_good(path: &Path, why: &str) -> Refused {
    Refused::ForGood(format!("{}: {why}", path.display()))
}

/// The page is open for as long as the database is: its descriptor must be no standard stream's either.
fn above_streams(file: File) -> io::Result<File> {
    Ok(File::from(descriptors::above_streams(file.into())?))
}

fn open_or_create(path: &Path) -> io::Result<File> {
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
    let mut options = File::options();
    options.read(true).write(true).custom_flags(flags);
    match options.open(path).and_then(above_streams) {
        // Two steps: in a sticky folder the kernel may refuse O_CREAT for a file of somebody else's (fs.protected_regular).
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            options.create_new(true).mode(0o600).open(path).and_then(above_streams)
        }
        other => other,
    }
}

/// Fills an empty file, and lets those use it who may write the database. Written, not only made longer: a hole that
/// finds no memory later would kill whoever touches it.
fn make_ready(file: &File, database: &Metadata) -> io::Result<()> {
    let owner = rustix::process::geteuid().is_root().then(|| Uid::from_raw(database.uid()));
    let shared = fchown(file, owner, Some(Gid::from_raw(database.gid()))).is_ok();
    let mode = database.mode() & if shared { 0o666 } else { 0o600 };
    fchmod(file, Mode::from_raw_mode(mode))?;
    file.write_all_at(&fresh(), 0)
}

/// True where the name still leads to this file.
fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(own), Ok(named)) = (file.metadata(), fs::symlink_metadata(path)) else { return false };
    (own.dev(), own.ino()) == (named.dev(), named.ino())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// A folder with a database, and where its page goes.
    struct Scratch {
        folder: PathBuf,
        database: PathBuf,
        page: PathBuf,
    }

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let folder = std::env::temp_dir().join(format!("waldio-page-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).unwrap();
            let database = folder.join("app.db");
            fs::write(&database, "").unwrap();
            let status = fs::metadata(&database).unwrap();
            let page = folder.join(format!("waldio-line-{:x}-{}", status.dev(), status.ino()));
            Scratch { folder, database, page }
        }

        fn open(&self) -> Result<PageFile, Refused> {
            PageFile::open(&self.folder, &self.database)
        }

        #[track_caller]
        fn assert_refused(&self, what: &str) {
            match self.open() {
                Err(Refused::ForGood(why)) => assert!(why.contains("waldio-line-"), "{what}: {why}"),
                other => panic!("{what}: {other:?}"),
            }
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }

    #[test]
    fn the_last_to_leave_removes_it() {
        let scratch = Scratch::new("last");
        let (one, two) = (scratch.open().unwrap(), scratch.open().unwrap());
        assert_eq!(fs::metadata(&scratch.page).unwrap().size(), 4096);
        drop(one);
        assert!(scratch.page.exists(), "another has it open");
        drop(two);
        assert!(!scratch.page.exists());
    }

    #[test]
    fn a_file_that_a_killed_process_left_is_used_and_removed() {
        let scratch = Scratch::new("left");
        fs::write(&scratch.page, fresh()).unwrap();
        drop(scratch.open().unwrap());
        assert!(!scratch.page.exists());
        // Killed before it had written anything.
        fs::write(&scratch.page, "").unwrap();
        drop(scratch.open().unwrap());
        assert!(!scratch.page.exists());
    }

    #[test]
    fn a_forked_child_leaves_its_parents_alone() {
        let scratch = Scratch::new("forked");
        let mut opened = scratch.open().unwrap();
        opened.origin = Origin::elsewhere();
        drop(opened);
        assert!(scratch.page.exists());
    }

    #[test]
    fn a_name_that_leads_elsewhere_by_now_is_not_removed() {
        let scratch = Scratch::new("elsewhere");
        let opened = scratch.open().unwrap();
        fs::rename(&scratch.page, scratch.folder.join("old")).unwrap();
        let other = scratch.open().unwrap();
        drop(opened);
        assert!(scratch.page.exists() && is_at(&other.file, &scratch.page));
    }

    #[test]
    fn who_may_write_the_database_may_write_it() {
        let scratch = Scratch::new("mode");
        fs::set_permissions(&scratch.database, PermissionsExt::from_mode(0o664)).unwrap();
        let _opened = scratch.open().unwrap();
        assert_eq!(fs::metadata(&scratch.page).unwrap().mode() & 0o777, 0o664);
    }

    #[test]
    fn files_of_any_other_kind_are_refused_and_left_alone() {
        let scratch = Scratch::new("kinds");
        let target = scratch.folder.join("target");
        for (what, bytes) in
            [("too short", &fresh()[..4000]), ("too long", &[0; 8192]), ("not ours", &[7; 4096])]
        {
            fs::write(&scratch.page, bytes).unwrap();
            scratch.assert_refused(what);
            assert_eq!(fs::read(&scratch.page).unwrap(), bytes, "{what}");
            fs::remove_file(&scratch.page).unwrap();
        }
        let mut newer = fresh();
        newer[4] += 1;
        fs::write(&scratch.page, newer).unwrap();
        scratch.assert_refused("of another version");
        fs::remove_file(&scratch.page).unwrap();
        fs::write(&target, fresh()).unwrap();
        symlink(&target, &scratch.page).unwrap();
        scratch.assert_refused("a link");
        fs::remove_file(&scratch.page).unwrap();
        fs::create_dir(&scratch.page).unwrap();
        scratch.assert_refused("a folder");
    }

    #[test]
    fn a_file_of_somebody_elses_is_refused() {
        let scratch = Scratch::new("owner");
        fs::write(&scratch.page, fresh()).unwrap();
        if let Err(error) = std::os::unix::fs::chown(&scratch.page, Some(4711), None) {
            return eprintln!("skipped: only root may give a file away: {error}");
        }
        scratch.assert_refused("of user 4711");
        // The database's owner may.
        std::os::unix::fs::chown(&scratch.database, Some(4711), None).unwrap();
        drop(scratch.open().unwrap());
    }

    #[test]
    fn a_file_that_is_being_made_is_asked_for_later() {
        let scratch = Scratch::new("later");
        let making = open_or_create(&scratch.page).unwrap();
        flock(&making, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert!(matches!(scratch.open(), Err(Refused::Later)));
        drop(making);
        assert!(scratch.open().is_ok());
    }
}
