//! One period in which this process has the log open: what its connections share of it.
//!
//! Each connection has its own open file (the kernel reports a failed write-back once to each open file, so a
//! shared one could swallow another connection's error), but the newest bytes, the size and the growth are one.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use blockio::disk::{Disk, DiskFile, Facts, FileId, Fill, OpenOptions};

use crate::durability::flush::{Durability, Poison};
use crate::durability::persist_choice::{self, Persist};
use crate::log::embedded_file::in_layout;
use crate::log::layout::Layout;
use crate::log::reserve::{self, FIRST_BYTES};
use crate::options::Options;
use crate::stats::Stats;
use crate::testing::planted::{self, Bug};
use crate::threads::origin::Origin;

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
    /// Which file it is: another one under its name is not this log.
    pub file_id: FileId,
    /// Where frames stand in its file.
    pub layout: Layout,
    /// The options that held when it was opened.
    pub options: Options,
    /// What the place can do.
    pub facts: Facts,
    /// How commits become durable. `fua` may fall to false when a direct write is refused.
    pub persist: Persist,
    fua: AtomicBool,
    /// What of it is on the medium, and whether it is out of use.
    pub durability: Durability,
    /// How many connections of this process have it open.
    pub handles: AtomicUsize,
    file_bytes: AtomicU64,
    /// Where the newest transaction of this process ends.
    newest_end: AtomicU64,
    limit_bytes: AtomicU64,
    /// This session made the log, and wrote no header to it yet.
    fresh: AtomicBool,
    name: Mutex<Name>,
    grow_wanted: AtomicBool,
    /// How far the frames reached when the file system last refused, or had no room to spare; 0: it had.
    refused_at: AtomicU64,
    growing: Mutex<()>,
    /// Who made it: a child of fork waits for none of its parent's threads.
    origin: Origin,
    /// How much this place takes in about `PIECE_TIME_MAX`, as far as it was tried.
    piece_bytes: AtomicU64,
    closed: AtomicBool,
    /// Somebody waits to cut the file: growing stops after its present piece.
    cutting: AtomicBool,
    /// Somebody flushes when the delay of `waldio_group` is over.
    pub(crate) flush_ordered: AtomicBool,
    /// How space was last reserved, or why not.
    fill_used: Mutex<Option<&'static str>>,
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
    /// Begins a session on a log that was just opened with `file_bytes` of content; `fresh` when it was created, empty.
    pub fn new(
        (log_path, file_id, layout): (PathBuf, FileId, Layout),
        options: Options,
        facts: Facts,
        (file_bytes, fresh): (u64, bool),
        (stats, poison): (Arc<Stats>, Poison),
    ) -> LogSession {
        let persist = persist_choice::persist(&options, facts);
        let durability = Durability::new(log_path.clone(), options.no_sync, Arc::clone(&stats), poison);
        LogSession {
            log_path,
            file_id,
            layout,
            options,
            facts,
            fua: AtomicBool::new(persist.fua),
            persist,
            durability,
            handles: AtomicUsize::new(0),
            file_bytes: AtomicU64::new(file_bytes),
            newest_end: AtomicU64::new(0),
            limit_bytes: AtomicU64::new(u64::MAX),
            fresh: AtomicBool::new(fresh),
            name: Mutex::new(Name::Unknown),
            grow_wanted: AtomicBool::new(false),
            refused_at: AtomicU64::new(0),
            growing: Mutex::default(),
            origin: Origin::default(),
            piece_bytes: AtomicU64::new(PIECE_BYTES.0),
            closed: AtomicBool::new(false),
            cutting: AtomicBool::new(false),
            flush_ordered: AtomicBool::new(false),
            fill_used: Mutex::default(),
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

    /// The log had content when it was opened: more may be reserved behind it, where anything is.
    pub fn assume_filled(&self) {
        let fills = persist_choice::fill(&self.options, self.facts.filesystem).is_some();
        self.note_fill(if fills { "as found" } else { NO_FILL });
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

    /// Size of the file as far as this process knows.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes.load(SeqCst)
    }

    /// A write reached `end`.
    pub fn note_end(&self, end: u64) {
        self.file_bytes.fetch_max(end, SeqCst);
    }

    /// A transaction's frames reach `end`; 0 for one that wrote none.
    pub fn note_used(&self, end: u64) {
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

    /// A header is about to be synced, in a file that really has this size, whoever changed it. One that was cut to nothing has
    /// no reserve, and gets one once the cut is durable: until then the medium may hold the old log.
    pub fn begin_cycle(&self, file_bytes: u64) {
        self.file_bytes.store(file_bytes, SeqCst);
        if file_bytes == 0 {
            *self.fill_used.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    /// The file was cut to `size_bytes`; a size other than 0 is the user's limit.
    fn note_truncated(&self, size_bytes: u64) {
        self.file_bytes.store(size_bytes, SeqCst);
        self.grow_wanted.store(false, SeqCst);
        self.note_header();
        if size_bytes > 0 {
            self.limit_bytes.store(size_bytes, SeqCst);
        }
        self.durability.recent().clear();
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

    /// True once space was reserved, or there is a reason for none.
    pub fn is_reserved(&self) -> bool {
        self.fill_used.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Gives a log its first space, under the write lock, in front of a sync. A log that cannot have it works without.
    pub fn reserve_first(&self, file: &dyn DiskFile) {
        let Some(fill) = persist_choice::fill(&self.options, self.facts.filesystem) else {
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
        if persist_choice::fill(&self.options, self.facts.filesystem).is_none() || !self.is_reserved() {
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
        let growing = self.stop_growing();
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
        let growing = self.stop_growing();
        self.cutting.store(false, SeqCst);
        cut()?;
        self.note_truncated(size_bytes);
        drop(growing);
        Ok(())
    }

    fn grow_in_pieces(&self, disk: &Arc<dyn Disk>, used_bytes: u64) -> io::Result<()> {
        let Some(target) = self.next_size(used_bytes) else { return Ok(()) };
        let file = disk.open(&self.log_path, OpenOptions::EXISTING)?;
        if file.identity()? != self.file_id {
            // Another log stands there now; this one has lost its name.
            return Ok(());
        }
        let file = in_layout(self.layout, file, disk, (&self.log_path, self.options.no_sync));
        // Only a fill that never touches what another process writes may run without the write lock.
        let fill = match persist_choice::fill(&self.options, self.facts.filesystem) {
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
        // The sync of a growth writes frames, too: only those of the generation that it was ordered for.
        let is_over = || {
            self.closed.load(SeqCst)
                || self.cutting.load(SeqCst)
                || self.is_overtaken(used_bytes)
                || self.durability.was_begun_anew(&*file)
        };
        while size < target && !is_over() {
            let began = Instant::now();
            let end = target.min(size + piece_bytes);
            if planted::is(Bug::FillOverwrites) {
                file.write_at(&vec![0; usize::try_from(end - size).unwrap_or(0)], size)?;
                self.note_end(end);
            } else {
                self.extend(&*file, end, fill)?;
            }
            if self.durability.sync_growth(&*file).is_err() {
                return Ok(());
            }
            size = self.file_bytes().max(end);
            piece_bytes = next_piece(piece_bytes, began.elapsed());
            self.piece_bytes.store(piece_bytes, SeqCst);
        }
        Ok(())
    }

    /// Ends the session: waits until nobody grows the log, and nobody will.
    pub fn close(&self) {
        self.closed.store(true, SeqCst);
        drop(self.stop_growing());
    }

    /// Nobody else grows the log as long as this is kept. A parent's thread, which may have been at it, is none of a child's.
    fn stop_growing(&self) -> Option<MutexGuard<'_, ()>> {
        let growing = || self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        (!self.origin.is_parent()).then(growing)
    }
}

/// How large the next piece should be, after one of `piece_bytes` that took so long.
fn next_piece(piece_bytes: u64, took: Duration) -> u64 {
    let next = if took * 2 < PIECE_TIME_MAX { piece_bytes * 2 } else { piece_bytes / 2 };
    next.clamp(PIECE_BYTES_MIN, PIECE_BYTES.1)
}

#[cfg(test)]
#[path = "tests/log_session.rs"]
mod tests;
