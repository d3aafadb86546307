//! One period in which this process has the log open: what its connections share of it.
//!
//! Each connection has its own open file (the kernel reports a failed write-back once to each open file, so a
//! shared one could swallow another connection's error), but the newest bytes, the size and the growth are one.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use blockio::disk::{Disk, DiskFile, Facts, Fill, OpenOptions};

use crate::choice::{self, Persist};
use crate::durable_reads::DurableMark;
use crate::embedded_file::in_layout;
use crate::layout::Layout;
use crate::options::Options;
use crate::planted::{self, Bug};
use crate::reserve::{self, FIRST_BYTES, SPARE_BYTES_MIN, USED_BYTES_MIN};
use crate::stats::Stats;
use crate::tail::Tail;
use crate::tickets::Tickets;

/// Space is reserved in pieces that should take about this long, so that a commit beside it waits no longer.
const PIECE_TIME_MAX: Duration = Duration::from_millis(4);
/// The first and the largest piece, in bytes.
const PIECE_BYTES: (u64, u64) = (256 << 10, 4 << 20);
/// The smallest piece, on a slow card, in bytes.
const PIECE_BYTES_MIN: u64 = 64 << 10;

/// Nothing is reserved where the file system has less than this left, or than 16 times what is wanted: the last
/// blocks are for frames and for the wal-index, whose mapped pages kill the process when Btrfs has none for them.
const FREE_BYTES_MIN: u64 = 16 << 20;

/// What `waldio_status` says where space is never reserved.
const NO_FILL: &str = "none: nothing to gain here, or strict mode";

/// See the file's head.
#[derive(Debug)]
pub struct LogSession {
    /// Where the log is.
    pub log_path: PathBuf,
    /// Where frames stand in its file.
    pub layout: Layout,
    /// The options that held when it was opened.
    pub options: Options,
    /// What the place can do.
    pub facts: Facts,
    /// How commits become durable. `fua` may fall to false when a direct write is refused.
    pub persist: Persist,
    fua: AtomicBool,
    /// A direct write happened: the newest frames may be missing in the page cache.
    wrote_direct: AtomicBool,
    /// Commits that wait for a shared flush.
    pub tickets: Tickets,
    /// Up to where published frames are known to be durable.
    pub durable: DurableMark,
    tail: Mutex<Tail>,
    file_bytes: AtomicU64,
    /// How far frames ever reached.
    used_bytes: AtomicU64,
    /// Where the newest transaction of this process ends.
    newest_end: AtomicU64,
    limit_bytes: AtomicU64,
    /// This session made the log, and nothing was written to it: the medium holds no header under its name that a
    /// first commit would have to wait for.
    fresh: AtomicBool,
    dir_unsynced: AtomicBool,
    grow_wanted: AtomicBool,
    /// How far the frames reached when the file system last refused, or had no room to spare; 0: it had.
    refused_at: AtomicU64,
    growing: Mutex<()>,
    /// How much this place takes in about `PIECE_TIME_MAX`, as far as it was tried.
    piece_bytes: AtomicU64,
    closed: AtomicBool,
    /// Somebody waits to cut the file: growing stops after its present piece.
    cutting: AtomicBool,
    /// Somebody flushes when the window of `waldio_group` is over.
    pub(crate) flush_ordered: AtomicBool,
    /// A sync failed without a lock of SQLite's.
    pub(crate) rewrite_owed: AtomicBool,
    /// How space was last reserved, or why not.
    fill_used: Mutex<Option<&'static str>>,
    pub(crate) stats: Arc<Stats>,
    pub(crate) poison: Arc<OnceLock<String>>,
}

impl LogSession {
    /// Begins a session on a log that was just opened with `file_bytes` of content; `fresh` when it was created, or
    /// was a spare until now.
    pub fn new(
        (log_path, layout): (PathBuf, Layout),
        options: Options,
        facts: Facts,
        (file_bytes, fresh): (u64, bool),
        (stats, poison): (Arc<Stats>, Arc<OnceLock<String>>),
    ) -> LogSession {
        let persist = choice::persist(&options, facts);
        LogSession {
            log_path,
            layout,
            options,
            facts,
            fua: AtomicBool::new(persist.fua),
            wrote_direct: AtomicBool::new(false),
            persist,
            tickets: Tickets::default(),
            durable: DurableMark::default(),
            tail: Mutex::default(),
            file_bytes: AtomicU64::new(file_bytes),
            used_bytes: AtomicU64::new(0),
            newest_end: AtomicU64::new(0),
            limit_bytes: AtomicU64::new(u64::MAX),
            fresh: AtomicBool::new(fresh),
            // Whoever made the log may have been killed before its name was durable.
            dir_unsynced: AtomicBool::new(true),
            grow_wanted: AtomicBool::new(false),
            refused_at: AtomicU64::new(0),
            growing: Mutex::default(),
            piece_bytes: AtomicU64::new(PIECE_BYTES.0),
            closed: AtomicBool::new(false),
            cutting: AtomicBool::new(false),
            flush_ordered: AtomicBool::new(false),
            rewrite_owed: AtomicBool::new(false),
            fill_used: Mutex::default(),
            stats,
            poison,
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

    /// The log had content when it was opened: more may be reserved behind it, where anything is.
    pub fn assume_filled(&self) {
        let fills = choice::fill(&self.options, self.facts.filesystem).is_some();
        self.note_fill(if fills { "as found" } else { NO_FILL });
    }

    /// The newest bytes. A panic while it was held leaves nothing half done that a reader could take for whole:
    /// it is cleared.
    pub fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(|poisoned| {
            let mut tail = poisoned.into_inner();
            tail.clear();
            tail
        })
    }

    /// True while commits go out as one direct durable write.
    pub fn is_fua(&self) -> bool {
        self.fua.load(SeqCst)
    }

    /// True once a frame went past the page cache.
    pub fn wrote_direct(&self) -> bool {
        self.wrote_direct.load(Relaxed)
    }

    /// A frame is about to go past the page cache.
    pub fn note_direct(&self) {
        self.wrote_direct.store(true, Relaxed);
    }

    /// A direct write was refused: buffered from now on.
    pub fn give_up_fua(&self) {
        self.fua.store(false, SeqCst);
        self.tail().clear();
    }

    /// Bytes of the newest frames to keep in memory: the working size and a little.
    pub fn tail_bytes_max(&self) -> usize {
        usize::try_from(self.options.log_bytes + (256 << 10)).unwrap_or(usize::MAX)
    }

    /// Size of the file as far as this process knows.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes.load(SeqCst)
    }

    /// A write reached `end`.
    pub fn note_end(&self, end: u64) {
        self.file_bytes.fetch_max(end, SeqCst);
    }

    /// Most bytes the log may keep when nobody has it open: its working size, or the user's limit.
    pub fn spare_bytes_max(&self) -> u64 {
        self.options.log_bytes.min(self.limit_bytes.load(SeqCst))
    }

    /// A transaction's frames reach `end`; 0 for one that wrote none.
    pub fn note_used(&self, end: u64) {
        self.used_bytes.fetch_max(end, SeqCst);
        if end > 0 {
            self.newest_end.store(end, SeqCst);
        }
    }

    /// True where an order to grow past the working size, given when frames reached `used_bytes`, has been overtaken: the log was begun
    /// anew since, and has room. Its pieces would only stand before the commits that go on.
    fn is_overtaken(&self, used_bytes: u64) -> bool {
        let newest_end = self.newest_end.load(SeqCst);
        self.file_bytes() >= self.options.log_bytes
            && newest_end < used_bytes
            && self.next_size(newest_end).is_none()
    }

    /// True where the log is large enough to be kept as a spare, and was used so much that a log without one would
    /// have grown. Where each opening writes little, clearing and renaming costs more than a new log does.
    pub fn is_worth_keeping(&self) -> bool {
        self.file_bytes() >= SPARE_BYTES_MIN && self.used_bytes.load(SeqCst) >= USED_BYTES_MIN
    }

    /// The size that the file really has, whoever changed it.
    pub fn set_file_bytes(&self, bytes: u64) {
        self.file_bytes.store(bytes, SeqCst);
    }

    /// The file was cut to `size_bytes`; a size other than 0 is the user's limit.
    fn note_truncated(&self, size_bytes: u64) {
        self.file_bytes.store(size_bytes, SeqCst);
        self.grow_wanted.store(false, SeqCst);
        self.note_header();
        if size_bytes > 0 {
            self.limit_bytes.store(size_bytes, SeqCst);
        }
        self.tail().clear();
    }

    /// Which fill was really used last, or why none.
    pub fn fill_used(&self) -> &'static str {
        self.fill_used.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or("none yet")
    }

    fn note_fill(&self, name: &'static str) {
        *self.fill_used.lock().unwrap_or_else(PoisonError::into_inner) = Some(name);
    }

    /// Makes the log's name durable, once, or `again`; whether it was to do.
    /// # Errors
    /// The name may not survive a power cut; the next sync tries again.
    pub fn sync_name(&self, disk: &dyn Disk, again: bool) -> io::Result<bool> {
        if !again && !self.dir_unsynced.load(SeqCst) {
            return Ok(false);
        }
        if !self.options.no_sync {
            disk.sync_dir_of(&self.log_path)?;
        }
        self.dir_unsynced.store(false, SeqCst);
        Ok(true)
    }

    /// True once the log's name is durable.
    pub fn is_name_synced(&self) -> bool {
        !self.dir_unsynced.load(SeqCst)
    }

    /// True once space was reserved, or there is a reason for none.
    pub fn is_reserved(&self) -> bool {
        self.fill_used.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Gives a log its first space, under the write lock, in front of a sync. A log that cannot have it works without.
    pub fn reserve_first(&self, file: &dyn DiskFile) {
        let Some(fill) = choice::fill(&self.options, self.facts.filesystem) else {
            self.note_fill(NO_FILL);
            return;
        };
        let limit_bytes = self.limit_bytes.load(SeqCst);
        if !self.has_room(file, self.options.log_bytes.min(limit_bytes)) {
            self.note_fill("none: the file system is nearly full");
            return;
        }
        // The device zeroes whole ranges at once: the working size costs no more than the first piece.
        if fill == Fill::WriteZeroes
            && self.extend(file, self.options.log_bytes.min(limit_bytes), fill).is_ok()
        {
            return;
        }
        let fill = if fill == Fill::WriteZeroes { Fill::Zeroes } else { fill };
        if let Err(error) = self.extend(file, FIRST_BYTES.min(limit_bytes), fill) {
            self.stats.error(&format!("cannot reserve space for {}: {error}", self.log_path.display()));
        }
    }

    /// Whether the file system has room to spare for a file that ends at `end`.
    fn has_room(&self, file: &dyn DiskFile, end: u64) -> bool {
        let wanted_bytes = end.saturating_sub(self.file_bytes());
        file.free_bytes() >= FREE_BYTES_MIN.max(wanted_bytes.saturating_mul(16))
    }

    fn extend(&self, file: &dyn DiskFile, end: u64, fill: Fill) -> io::Result<()> {
        let before = self.file_bytes();
        let size = file.extend(end, fill)?;
        self.note_end(size);
        let name = match fill {
            Fill::Zeroes => "zeroes",
            Fill::WriteZeroes => "write-zeroes",
            Fill::Unwritten => "unwritten",
        };
        self.note_fill(name);
        Stats::add(&self.stats.growths, 1);
        if fill == Fill::Zeroes {
            Stats::add(&self.stats.bytes_written, size.saturating_sub(before));
        }
        Ok(())
    }

    /// True when space must be reserved now that frames reach `used_bytes`, and nobody is at it. The caller then
    /// has `grow` called.
    pub fn wants_growth(&self, used_bytes: u64) -> bool {
        if choice::fill(&self.options, self.facts.filesystem).is_none() || !self.is_reserved() {
            return false;
        }
        // On a nearly full disk, or one that refuses, each commit would wake the worker for nothing: it is asked again
        // when the log has doubled or was begun anew.
        let refused_at = self.refused_at.load(SeqCst);
        let refused = (refused_at..refused_at.saturating_mul(2)).contains(&used_bytes);
        !refused && self.next_size(used_bytes).is_some() && !self.grow_wanted.swap(true, SeqCst)
    }

    fn next_size(&self, used_bytes: u64) -> Option<u64> {
        let limit_bytes = self.limit_bytes.load(SeqCst);
        reserve::next_size(used_bytes, self.file_bytes(), self.options.log_bytes, Some(limit_bytes))
    }

    /// Reserves space ahead of `used_bytes`, off the commit path.
    pub fn grow(&self, disk: &Arc<dyn Disk>, used_bytes: u64) {
        let growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        // The order may come after the close, when the log may be gone or another's, or after the file was cut.
        if !self.closed.load(SeqCst)
            && self.grow_wanted.load(SeqCst)
            && let Err(error) = self.grow_in_pieces(disk, used_bytes)
        {
            // No one's loss: commits write on without reserve.
            self.refused_at.store(used_bytes, SeqCst);
            self.stats.error(&format!("cannot grow {}: {error}", self.log_path.display()));
        }
        drop(growing);
        self.grow_wanted.store(false, SeqCst);
    }

    /// Cuts the file by `cut`, while nobody grows it.
    /// # Errors
    /// Those of `cut`; the size is as before.
    pub fn truncate(&self, size_bytes: u64, cut: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.cutting.store(true, SeqCst);
        let growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        self.cutting.store(false, SeqCst);
        cut()?;
        self.note_truncated(size_bytes);
        drop(growing);
        Ok(())
    }

    fn grow_in_pieces(&self, disk: &Arc<dyn Disk>, used_bytes: u64) -> io::Result<()> {
        let Some(target) = self.next_size(used_bytes) else { return Ok(()) };
        let file = disk.open(&self.log_path, OpenOptions::EXISTING)?;
        let file = in_layout(self.layout, file, disk, (&self.log_path, self.options.no_sync));
        // Only a fill that never touches what another process writes may run without the write lock.
        let fill = match choice::fill(&self.options, self.facts.filesystem) {
            Some(Fill::Unwritten) => Fill::Unwritten,
            _ => Fill::Zeroes,
        };
        let mut piece_bytes = self.piece_bytes.load(SeqCst);
        if !self.has_room(&*file, target) {
            self.refused_at.store(used_bytes, SeqCst);
            return Ok(());
        }
        self.refused_at.store(0, SeqCst);
        let mut size = if planted::is(Bug::FillOverwrites) { self.file_bytes() } else { file.size()? };
        let is_over =
            || self.closed.load(SeqCst) || self.cutting.load(SeqCst) || self.is_overtaken(used_bytes);
        while size < target && !is_over() {
            let began = Instant::now();
            let end = target.min(size + piece_bytes);
            if planted::is(Bug::FillOverwrites) {
                file.write_at(&vec![0; usize::try_from(end - size).unwrap_or(0)], size)?;
                self.note_end(end);
            } else {
                self.extend(&*file, end, fill)?;
            }
            if !self.options.no_sync
                && let Err(error) = file.sync_data()
            {
                // It may be another's loss: the error is reported to this open file, and maybe to no other.
                self.fail_unlocked(&format!("the sync of a growth of the log failed: {error}"));
                return Err(error);
            }
            size = self.file_bytes().max(end);
            let faster = began.elapsed() * 2 < PIECE_TIME_MAX;
            piece_bytes = if faster { piece_bytes * 2 } else { piece_bytes / 2 };
            piece_bytes = piece_bytes.clamp(PIECE_BYTES_MIN, PIECE_BYTES.1);
            self.piece_bytes.store(piece_bytes, SeqCst);
        }
        Ok(())
    }

    /// Ends the session: waits until nobody grows the log, and nobody will.
    pub fn close(&self) {
        self.closed.store(true, SeqCst);
        drop(self.growing.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
