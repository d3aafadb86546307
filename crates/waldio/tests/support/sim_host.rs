//! What a simulated VFS does, in safe words: files of a simulated disk with the habits of SQLite's unix VFS.
//!
//! Habits taken over (os_unix.c): a new journal or log has its directory synced with its first sync; `xSync` is
//! fdatasync; `xDelete` syncs the directory only when asked; temporary files have no name.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use blockio::disk::{Disk, DiskFile, OpenOptions};
use blockio::simulated::disk::SimDisk;
use blockio::simulated::file::SimFile;
use blockio::simulated::log::Inode;
use libsqlite3_sys as ffi;

use super::sim_locks::{HandleId, Share};

/// The longest that anybody really sleeps.
const NAP_MAX: Duration = Duration::from_millis(1);

/// A bug put into the VFS on purpose, to see that the harness catches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plant {
    /// The sync of the log's header is left out.
    SkipHeaderSync,
    /// COMMIT returns before its frames are synced.
    AckBeforeSync,
    /// A checkpoint copies frames that are not durable.
    SkipCheckpointSync,
    /// The checkpoint at close copies frames that are not durable.
    SkipCloseSync,
    /// The log is kept at close and taken again with the old frames in it.
    SpareNotCleared,
}

/// A simulated operating system: one disk, its locks, a clock and a source of random bytes.
pub struct Host {
    /// The disk.
    pub disk: SimDisk,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    shares: BTreeMap<Inode, Share>,
    handle_count: HandleId,
    clock_ms: i64,
    random: u64,
    plant: Option<Plant>,
}

/// One open file.
pub struct Handle {
    host: Arc<Host>,
    file: SimFile,
    id: HandleId,
    path: PathBuf,
    kind: c_int,
    delete_on_close: bool,
    dir_sync_due: bool,
    written: Written,
    /// xLock's present level.
    pub level: c_int,
    /// FCNTL_PERSIST_WAL.
    pub persist_wal: bool,
    /// FCNTL_CHUNK_SIZE; 0 for none.
    pub chunk_bytes: u64,
}

/// What a log's handle wrote since its last sync.
#[derive(Default, Clone, Copy)]
struct Written {
    header: bool,
    frame: bool,
    commit: bool,
}

/// Julian day of 2020-01-01 in milliseconds: the fake clock's start.
const CLOCK_START_MS: i64 = 212_444_596_800_000;

impl Host {
    /// A machine with `disk`.
    pub fn new(disk: SimDisk) -> Arc<Host> {
        Arc::new(Host { disk, inner: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Plants a bug, or none.
    pub fn plant(&self, plant: Option<Plant>) {
        self.lock().plant = plant;
    }

    /// Forgets locks, shared memory, clock and random state: the machine starts again.
    pub fn reboot(&self) {
        let mut inner = self.lock();
        let plant = inner.plant;
        *inner = Inner { plant, handle_count: inner.handle_count, ..Inner::default() };
    }

    /// xOpen. `None` is a temporary file.
    pub fn open(self: &Arc<Host>, name: Option<&Path>, flags: c_int) -> Result<Handle, c_int> {
        let id = {
            let mut inner = self.lock();
            inner.handle_count += 1;
            inner.handle_count
        };
        let path = name.map_or_else(|| PathBuf::from(format!("/tmp/etilqs-{id}")), Path::to_owned);
        let has = |flag: c_int| flags & flag != 0;
        let journals = ffi::SQLITE_OPEN_MAIN_JOURNAL | ffi::SQLITE_OPEN_SUPER_JOURNAL | ffi::SQLITE_OPEN_WAL;
        if has(ffi::SQLITE_OPEN_WAL) {
            self.take_spare(&path);
        }
        let options = OpenOptions {
            create: has(ffi::SQLITE_OPEN_CREATE) || name.is_none(),
            exclusive: has(ffi::SQLITE_OPEN_EXCLUSIVE),
            read_only: has(ffi::SQLITE_OPEN_READONLY),
            mode: 0o644,
            owner: None,
        };
        let file = self.disk.open_file(&path, options).map_err(|_| ffi::SQLITE_CANTOPEN)?;
        Ok(Handle {
            host: Arc::clone(self),
            file,
            id,
            path,
            kind: flags & (journals | ffi::SQLITE_OPEN_MAIN_DB),
            delete_on_close: has(ffi::SQLITE_OPEN_DELETEONCLOSE) || name.is_none(),
            dir_sync_due: has(ffi::SQLITE_OPEN_CREATE) && has(journals),
            written: Written::default(),
            level: 0,
            persist_wal: false,
            chunk_bytes: 0,
        })
    }

    fn take_spare(&self, path: &Path) {
        if self.lock().plant == Some(Plant::SpareNotCleared) {
            // It is missing at the first open; while there is a log there is none.
            let _ = self.disk.rename(&spare_of(path), path);
        }
    }

    /// xDelete.
    pub fn delete(&self, path: &Path, sync_dir: bool) -> c_int {
        let is_log = path.to_string_lossy().ends_with("-wal");
        let keeps = is_log && self.lock().plant == Some(Plant::SpareNotCleared);
        let outcome = if keeps { self.disk.rename(path, &spare_of(path)) } else { self.disk.remove(path) };
        match outcome {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return ffi::SQLITE_IOERR_DELETE_NOENT,
            Err(_) => return ffi::SQLITE_IOERR_DELETE,
            Ok(()) => {}
        }
        if sync_dir && self.disk.sync_dir_of(path).is_err() {
            return ffi::SQLITE_IOERR_DIR_FSYNC;
        }
        ffi::SQLITE_OK
    }

    /// xAccess(EXISTS): as in the unix VFS an empty file does not exist.
    pub fn exists(&self, path: &Path, only_with_bytes: bool) -> bool {
        let options = OpenOptions { create: false, exclusive: false, read_only: true, mode: 0, owner: None };
        match self.disk.open_file(path, options) {
            Ok(file) => !only_with_bytes || file.size().is_ok_and(|size_bytes| size_bytes > 0),
            Err(_) => false,
        }
    }

    /// xSleep. A little of the time passes: who waits so for another thread gives it the processor, on a busy machine too.
    pub fn sleep(&self, micros: c_int) {
        self.lock().clock_ms += i64::from(micros / 1000) + 1;
        thread::sleep(Duration::from_micros(u64::try_from(micros).unwrap_or(0)).min(NAP_MAX));
    }

    /// xCurrentTimeInt64.
    pub fn now_ms(&self) -> i64 {
        let mut inner = self.lock();
        inner.clock_ms += 1;
        CLOCK_START_MS + inner.clock_ms
    }

    /// xRandomness.
    pub fn randomness(&self, into: &mut [u8]) {
        let mut inner = self.lock();
        for byte in into {
            inner.random =
                inner.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = inner.random.to_be_bytes()[0];
        }
    }
}

fn spare_of(log: &Path) -> PathBuf {
    PathBuf::from(format!("{}-spare", log.display()))
}

fn write_code(error: &io::Error) -> c_int {
    if error.kind() == io::ErrorKind::StorageFull { ffi::SQLITE_FULL } else { ffi::SQLITE_IOERR_WRITE }
}

impl Handle {
    /// Runs `action` on the locks and shared memory of this handle's database.
    pub fn with_share<T>(&self, action: impl FnOnce(&mut Share, HandleId) -> T) -> T {
        let mut inner = self.host.lock();
        action(inner.shares.entry(self.file.inode()).or_default(), self.id)
    }

    /// xRead.
    pub fn read(&self, into: &mut [u8], offset: u64) -> c_int {
        match self.file.read_at(into, offset) {
            Err(_) => ffi::SQLITE_IOERR_READ,
            Ok(count) if count < into.len() => {
                into[count..].fill(0);
                ffi::SQLITE_IOERR_SHORT_READ
            }
            Ok(_) => ffi::SQLITE_OK,
        }
    }

    /// xWrite.
    pub fn write(&mut self, data: &[u8], offset: u64) -> c_int {
        if self.kind == ffi::SQLITE_OPEN_WAL {
            self.written.header |= offset == 0;
            self.written.frame |= offset > 0;
            self.written.commit |= data.len() == 24 && data[4..8] != [0; 4];
        }
        self.file.write_at(data, offset).map_or_else(|error| write_code(&error), |()| ffi::SQLITE_OK)
    }

    /// FCNTL_HAS_MOVED: the name leads to another file, or to none.
    pub fn has_moved(&self) -> bool {
        let named = self.host.disk.identity_of(&self.path).ok();
        named.is_none() || named != self.file.identity().ok()
    }

    /// xTruncate.
    pub fn truncate(&self, size_bytes: u64) -> c_int {
        let size_bytes = match self.chunk_bytes {
            0 => size_bytes,
            chunk_bytes => size_bytes.div_ceil(chunk_bytes) * chunk_bytes,
        };
        self.file.truncate(size_bytes).map_or(ffi::SQLITE_IOERR_TRUNCATE, |()| ffi::SQLITE_OK)
    }

    /// xFileSize.
    pub fn size(&self) -> Option<u64> {
        self.file.size().ok()
    }

    /// xSync.
    pub fn sync(&mut self) -> c_int {
        let skipped = self.is_skipped();
        self.written = Written::default();
        if skipped {
            return ffi::SQLITE_OK;
        }
        if self.file.sync_data().is_err() {
            return ffi::SQLITE_IOERR_FSYNC;
        }
        if std::mem::take(&mut self.dir_sync_due) {
            // unixSync ignores what this says, too.
            let _ = self.host.disk.sync_dir_of(&self.path);
        }
        ffi::SQLITE_OK
    }

    fn is_skipped(&self) -> bool {
        if self.kind != ffi::SQLITE_OPEN_WAL {
            return false;
        }
        let (checkpointing, exclusive) = self.database_state();
        let commit = self.written.commit && !checkpointing && !exclusive;
        match self.host.lock().plant {
            Some(Plant::SkipHeaderSync) => self.written.header && !self.written.frame,
            Some(Plant::AckBeforeSync) => commit,
            Some(Plant::SkipCheckpointSync) => checkpointing,
            Some(Plant::SkipCloseSync) => exclusive && !checkpointing,
            Some(Plant::SpareNotCleared) | None => false,
        }
    }

    /// Whether this log's database is being checkpointed, and whether someone has it for himself.
    fn database_state(&self) -> (bool, bool) {
        let name = self.path.to_string_lossy();
        let database = Path::new(name.trim_end_matches("-wal"));
        let options = OpenOptions { create: false, exclusive: false, read_only: true, mode: 0, owner: None };
        let Ok(file) = self.host.disk.open_file(database, options) else { return (false, false) };
        let inner = self.host.lock();
        let share = inner.shares.get(&file.inode());
        share.map_or((false, false), |share| (share.is_checkpointing(), share.is_exclusive()))
    }

    /// xClose.
    pub fn close(self) -> c_int {
        let inode = self.file.inode();
        if self.kind == ffi::SQLITE_OPEN_MAIN_DB {
            let mut inner = self.host.lock();
            let share = inner.shares.entry(inode).or_default();
            share.close(self.id);
            if share.is_unused() {
                inner.shares.remove(&inode);
            }
        }
        if self.delete_on_close {
            return self.host.delete(&self.path, false);
        }
        ffi::SQLITE_OK
    }
}
