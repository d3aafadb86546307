//! Turns for the syncs of one file on F2FS, over threads and processes.
//!
//! F2FS leaves out the flush of an fdatasync where the inode has no mark of a write in place, and a sync takes that mark
//! away behind its own flush, also where somebody has written in place since. The sync of that one then returns without a
//! flush, and a power cut takes what it promised. Seen with `joj lab crash` (docs/crash_states.md), where a log grew while
//! a commit was synced; `f2fs_do_sync_file` of Linux 6.1.
//!
//! Between threads a mutex for each inode; between processes a POSIX record lock on the log, which SQLite does not lock.
//! Only who may write the file can take it. The kernel gives it back when its process dies, and a child of fork has none of
//! it. Closing any descriptor of the file gives it back, too, so ours are closed under the mutex. A process that is stopped
//! with the lock is waited for `WAIT_MAX` long: it syncs nothing meanwhile.

use std::collections::HashMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::disk::{FileId, Filesystem};

/// How long another process is waited for, at the most.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// Between two tries for its lock: a flush takes some hundreds of microseconds.
const TRY_EVERY: Duration = Duration::from_micros(200);

/// The turns of one inode in this process.
#[derive(Debug, Clone)]
pub(crate) struct SyncTurn(Arc<Mutex<()>>);

/// Which process, and which file: a child of fork starts anew, because a thread of its parent may hold a mutex for ever.
type Key = (u32, FileId);

impl SyncTurn {
    /// Those of an open file; `None` where the file system needs none.
    pub(crate) fn of(file: BorrowedFd<'_>, filesystem: Filesystem) -> Option<SyncTurn> {
        static TURNS: Mutex<Option<HashMap<Key, Weak<Mutex<()>>>>> = Mutex::new(None);
        if filesystem != Filesystem::F2fs {
            return None;
        }
        let status = rustix::fs::fstat(file).ok()?;
        let key = (std::process::id(), FileId { device: status.st_dev, inode: status.st_ino });
        // Held for an instant, but maybe by a thread that a fork left behind in the parent.
        let mut turns = (0..1000).find_map(|_| match TURNS.try_lock() {
            Ok(turns) => Some(turns),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                thread::sleep(TRY_EVERY);
                None
            }
        })?;
        let turns = turns.get_or_insert_default();
        if let Some(turn) = turns.get(&key).and_then(Weak::upgrade) {
            return Some(SyncTurn(turn));
        }
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::default();
        turns.insert(key, Arc::downgrade(&turn));
        Some(SyncTurn(turn))
    }

    /// Keeps other syncs of this process out, and descriptors of the file from being closed under one.
    pub(crate) fn hold(&self) -> MutexGuard<'_, ()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a sync of `file` while no other runs.
    pub(crate) fn take<T>(
        &self,
        file: BorrowedFd<'_>,
        sync: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let _turn = self.hold();
        let until = Instant::now() + WAIT_MAX;
        let locked = loop {
            match rustix::fs::fcntl_lock(file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break true,
                Err(Errno::AGAIN | Errno::ACCESS | Errno::INTR) if Instant::now() < until => {
                    thread::sleep(TRY_EVERY);
                }
                // No lock to be had (a descriptor for reading, a limit): the sync is worth more than the turn.
                Err(_) => break false,
            }
        };
        let synced = sync();
        if locked {
            let _ = rustix::fs::fcntl_lock(file, FlockOperation::Unlock);
        }
        synced
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsFd, OwnedFd};
    use std::process::{Command, Stdio};

    fn file(name: &str) -> (std::path::PathBuf, OwnedFd) {
        let path = std::env::temp_dir().join(format!("blockio-turn-{name}-{}", std::process::id()));
        let file = std::fs::File::options().create(true).truncate(true).read(true).write(true).open(&path);
        (path, file.unwrap().into())
    }

    #[test]
    fn syncs_of_two_openings_of_a_file_on_f2fs_take_turns() {
        let (path, one) = file("threads");
        let two: OwnedFd = std::fs::File::options().write(true).open(&path).unwrap().into();
        std::fs::remove_file(&path).unwrap();
        let [ours, theirs] = [&one, &two].map(|file| SyncTurn::of(file.as_fd(), Filesystem::F2fs).unwrap());
        let (told, done) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            let early = ours.take(one.as_fd(), || {
                scope.spawn(|| {
                    theirs.take(two.as_fd(), || {
                        told.send(()).unwrap();
                        Ok(())
                    })
                });
                // Long enough for a sync that does not wait, in nearly every run.
                Ok(done.recv_timeout(Duration::from_millis(200)).is_ok())
            });
            assert!(!early.unwrap(), "it did not wait");
            done.recv().unwrap();
        });
    }

    /// Another process that holds the lock; `how` is the call and the file's mode in Python.
    fn holder(path: &std::path::Path, how: &str) -> std::process::Child {
        let code = format!(
            "import fcntl,sys,time\nf = open(sys.argv[1], {how})\nprint('x', flush=True)\ntime.sleep(60)"
        );
        let mut child = Command::new("python3");
        child.args(["-c", &code]).arg(path).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = child.spawn().unwrap();
        let mut told = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut told).unwrap();
        child
    }

    /// How long a sync waits beside that process.
    fn waits(path: &std::path::Path, file: &OwnedFd, how: &str, killed: bool) -> Duration {
        let mut child = holder(path, how);
        if killed {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let began = Instant::now();
        SyncTurn::of(file.as_fd(), Filesystem::F2fs).unwrap().take(file.as_fd(), || Ok(())).unwrap();
        let waited = began.elapsed();
        let _ = child.kill();
        let _ = child.wait();
        waited
    }

    #[test]
    fn a_process_that_may_only_read_or_was_killed_keeps_nobody_waiting_and_another_not_for_ever() {
        let (path, file) = file("processes");
        let flock = "'r'); fcntl.flock(f, fcntl.LOCK_EX";
        assert!(waits(&path, &file, flock, false) < WAIT_MAX / 2, "a lock of a reader");
        let lock = "'r+'); fcntl.lockf(f, fcntl.LOCK_EX";
        assert!(waits(&path, &file, lock, true) < WAIT_MAX / 2, "a lock of the dead");
        assert!(waits(&path, &file, lock, false) >= WAIT_MAX, "it is waited for");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn elsewhere_syncs_do_not_wait_for_each_other() {
        let (path, file) = file("elsewhere");
        std::fs::remove_file(&path).unwrap();
        assert!(SyncTurn::of(file.as_fd(), Filesystem::Ext4).is_none());
    }
}
