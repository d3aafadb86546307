//! One period in which this process has the log open: what its connections share of it.
//!
//! Each connection has its own open file (the kernel reports a failed write-back once to each open file, so a
//! shared one could swallow another connection's error), but the newest bytes, the size and the growth are one.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use blockio::disk::{Disk, DiskFile, Facts, FileId, Filesystem};

use crate::durability::flush::{Durability, Poison};
use crate::durability::persist_choice::{self, Persist};
use crate::durability::reserved_space::ReservedSpace;
use crate::log::layout::Layout;
use crate::options::Options;
use crate::stats::Stats;

/// A flush that a thread will do.
#[derive(Debug, Clone, Copy)]
pub struct FlushOrder {
    pub(super) due: Instant,
    /// The shortest delay of those that rely on it.
    pub(super) time: Duration,
}

/// A fact of the log's file system or device: its name, its value, where it was read.
pub type Described = (&'static str, String, String);

/// A log as it was found, or just made.
#[derive(Debug)]
pub struct FoundLog {
    /// Where it is.
    pub path: PathBuf,
    /// Which file it is.
    pub file_id: FileId,
    /// Where frames stand in its file.
    pub layout: Layout,
    /// Its size, in bytes.
    pub file_bytes: u64,
    /// It was just made.
    pub is_new: bool,
    /// What the place can do.
    pub facts: Facts,
}

/// One opening of a log, which the connections of this process share.
#[derive(Debug)]
pub struct LogSession {
    /// Where the log is.
    pub log_path: PathBuf,
    /// Which file it is: another one under its name is not this log.
    pub file_id: FileId,
    /// Where frames stand in its file.
    pub layout: Layout,
    /// What it lies on.
    pub filesystem: Filesystem,
    /// The options that held when it was opened.
    pub options: Options,
    /// How commits become durable. `fua` may fall to false when a direct write is refused.
    pub persist: Persist,
    fua: AtomicBool,
    /// What of it is on the medium, and whether it is out of use.
    pub durability: Durability,
    /// How many connections of this process have it open.
    pub handles: AtomicUsize,
    /// The space ahead of its frames.
    pub space: ReservedSpace,
    /// This session made the log, and wrote no header to it yet.
    fresh: AtomicBool,
    name: Mutex<Name>,
    place: OnceLock<Vec<Described>>,
    /// Somebody flushes when the delay of `waldio_group` is over.
    pub(super) flush_order: Mutex<Option<FlushOrder>>,
    pub(super) flush_with: Mutex<Option<Arc<dyn DiskFile>>>,
    pub(crate) stats: Arc<Stats>,
}

/// How far the log's name is on the medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// Whoever made the log may have been killed before its name was durable.
    Unknown,
    /// It is durable.
    Synced,
    /// The directory cannot be opened, or not synced on this file system: as SQLite does there, we go on. Each sync of a
    /// commit tries again.
    Refused,
}

impl LogSession {
    /// Begins a session on a log that was just opened.
    pub fn new(found: FoundLog, options: Options, stats: Arc<Stats>, poison: Poison) -> LogSession {
        let FoundLog { path, file_id, layout, file_bytes, is_new, facts } = found;
        let persist = persist_choice::persist(&options, facts);
        LogSession {
            durability: Durability::new(path.clone(), options.no_sync, Arc::clone(&stats), poison),
            space: ReservedSpace::new(&options, facts.filesystem, file_bytes, Arc::clone(&stats)),
            log_path: path,
            file_id,
            layout,
            filesystem: facts.filesystem,
            options,
            fua: AtomicBool::new(persist.fua),
            persist,
            handles: AtomicUsize::new(0),
            fresh: AtomicBool::new(is_new),
            name: Mutex::new(Name::Unknown),
            place: OnceLock::new(),
            flush_order: Mutex::default(),
            flush_with: Mutex::default(),
            stats,
        }
    }

    /// True until the log's first header is written: see `fresh`.
    pub fn is_fresh(&self) -> bool {
        self.fresh.load(SeqCst)
    }

    /// A header is about to be written.
    pub fn note_header(&self) {
        self.fresh.store(false, SeqCst);
    }

    /// True while commits go out as one direct durable write.
    pub fn is_fua(&self) -> bool {
        self.fua.load(SeqCst)
    }

    /// A direct write was refused: buffered from now on.
    pub fn give_up_fua(&self) {
        self.fua.store(false, SeqCst);
        self.durability.recent().clear();
    }

    /// Bytes of the newest frames to keep in memory: the working size and a little.
    pub fn recent_bytes_max(&self) -> usize {
        usize::try_from(self.options.log_bytes + (256 << 10)).unwrap_or(usize::MAX)
    }

    /// Makes the log's name durable, once, or `again`; whether it was to do.
    /// # Errors
    /// The name may not survive a power cut.
    pub fn sync_name(&self, disk: &dyn Disk, again: bool) -> io::Result<bool> {
        if !again && self.name() == Name::Synced {
            return Ok(false);
        }
        let synced = self.options.no_sync || disk.sync_dir_of(&self.log_path)?;
        *self.name.lock().unwrap_or_else(PoisonError::into_inner) =
            if synced { Name::Synced } else { Name::Refused };
        Ok(synced)
    }

    /// How far the log's name is on the medium.
    pub fn name(&self) -> Name {
        *self.name.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True once all was done for the log's name that can be done.
    pub fn is_name_settled(&self) -> bool {
        self.name() != Name::Unknown
    }

    /// What there is to read of the file system and the device, through the log's `file`. Read once for each opening of the log:
    /// it takes a dozen files of sysfs, and a log stays where it is.
    pub fn place(&self, file: &dyn DiskFile) -> &[Described] {
        self.place.get_or_init(|| file.describe())
    }

    /// Gives a log its first space, under the write lock, in front of a sync. A log that cannot have it works without.
    pub fn reserve_first(&self, file: &dyn DiskFile) {
        if let Err(error) = self.space.reserve_first(file) {
            self.stats.error(&format!("cannot reserve space for {}: {error}", self.log_path.display()));
        }
    }

    /// Reserves space ahead of `used_bytes`, off the commit path, where that was ordered.
    pub fn grow(&self, file: &dyn DiskFile, used_bytes: u64) {
        // The sync of a growth writes frames, too: only those of the generation that it was ordered for.
        let may_go_on = || !self.durability.was_begun_anew(file);
        let in_turn = |extend: &dyn Fn() -> io::Result<()>| self.durability.grow(file, extend);
        let grow = || self.space.grow(file, used_bytes, may_go_on, in_turn);
        if let Err(error) = self.space.carry_out(used_bytes, grow) {
            // No one's loss: commits write on without reserve.
            self.stats.error(&format!("cannot grow {}: {error}", self.log_path.display()));
        }
    }

    /// Cuts the file by `cut`, while no thread grows it.
    /// # Errors
    /// Those of `cut`; the size is as before.
    pub fn truncate(&self, size_bytes: u64, cut: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let cut = || self.space.truncate(size_bytes, cut);
        if size_bytes == 0 {
            self.durability.empty(cut)?
        } else {
            cut()?
        };
        self.note_header();
        self.durability.recent().clear();
        Ok(())
    }
}

#[cfg(test)]
#[path = "tests/log_session.rs"]
mod tests;
