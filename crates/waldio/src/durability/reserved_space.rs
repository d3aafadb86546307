//! The space that a log has in its file ahead of its frames: how much there is, whether more is wanted, and who makes it.
//!
//! ```text
//! NotYet --first commits--> Zeroes | WriteZeroes | Unwritten     or Never, or NearlyFull
//!
//! growth:  Idle --a commit wants more--> Ordered --done, or the file was cut--> Idle
//!          any --the session ends--> Over
//! ```
//!
//! Atomic values, and no lock but the one that a thread keeps while it grows the file: a child of fork may come at any moment.

use std::io;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use blockio::disk::{DiskFile, Filesystem, Fill};

use crate::durability::flush::Grown;
use crate::durability::persist_choice;
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

/// How space was last reserved, or why it was not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Reserve {
    /// The log is too young.
    NotYet,
    /// The log had content when it was opened.
    AsFound,
    /// This place gains nothing, or the mode is strict.
    Never,
    NearlyFull,
    Zeroes,
    WriteZeroes,
    Unwritten,
}

impl Reserve {
    const ALL: [Reserve; 7] = [
        Reserve::NotYet,
        Reserve::AsFound,
        Reserve::Never,
        Reserve::NearlyFull,
        Reserve::Zeroes,
        Reserve::WriteZeroes,
        Reserve::Unwritten,
    ];

    fn by(fill: Fill) -> Reserve {
        match fill {
            Fill::Zeroes => Reserve::Zeroes,
            Fill::WriteZeroes => Reserve::WriteZeroes,
            Fill::Unwritten => Reserve::Unwritten,
        }
    }

    /// What `waldio_status` says.
    fn text(self) -> &'static str {
        match self {
            Reserve::NotYet => "none yet",
            Reserve::AsFound => "as found",
            Reserve::Never => "none: nothing to gain here, or strict mode",
            Reserve::NearlyFull => "none: the file system is nearly full",
            Reserve::Zeroes => "zeroes",
            Reserve::WriteZeroes => "write-zeroes",
            Reserve::Unwritten => "unwritten",
        }
    }
}

/// Whether a thread is to grow the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum GrowthOrder {
    Idle,
    Ordered,
    /// The session has ended: never again.
    Over,
}

/// The space ahead of the frames of one log.
#[derive(Debug)]
pub struct ReservedSpace {
    /// The size up to which a log grows as it fills, in bytes.
    working_bytes: u64,
    /// How this place takes space; `None` where none is reserved.
    fill: Option<Fill>,
    stats: Arc<Stats>,
    file_bytes: AtomicU64,
    /// Where the newest transaction of this process ends.
    newest_end: AtomicU64,
    /// `journal_size_limit`, as far as it was seen to cut the file.
    limit_bytes: AtomicU64,
    /// `Reserve` and `GrowthOrder`, as numbers.
    reserve: AtomicU8,
    order: AtomicU8,
    /// How far the frames reached when the file system last refused, or had no room to spare; 0: it had.
    refused_at: AtomicU64,
    /// How much this place takes in about `PIECE_TIME_MAX`, as far as it was tried.
    piece_bytes: AtomicU64,
    growing: Mutex<()>,
    /// Who made it: a child of fork waits for none of its parent's threads.
    origin: Origin,
}

impl ReservedSpace {
    /// Of a log of `file_bytes` on this file system.
    pub fn new(options: &Options, filesystem: Filesystem, file_bytes: u64, stats: Arc<Stats>) -> Self {
        let fill = persist_choice::fill(options, filesystem);
        let reserve = match fill {
            _ if file_bytes == 0 => Reserve::NotYet,
            Some(_) => Reserve::AsFound,
            None => Reserve::Never,
        };
        ReservedSpace {
            working_bytes: options.log_bytes,
            fill,
            stats,
            file_bytes: AtomicU64::new(file_bytes),
            newest_end: AtomicU64::new(0),
            limit_bytes: AtomicU64::new(u64::MAX),
            reserve: AtomicU8::new(reserve as u8),
            order: AtomicU8::new(GrowthOrder::Idle as u8),
            refused_at: AtomicU64::new(0),
            piece_bytes: AtomicU64::new(PIECE_BYTES.0),
            growing: Mutex::default(),
            origin: Origin::default(),
        }
    }

    /// Size of the file as far as this process knows, in bytes.
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

    /// A header is about to be synced, in a file that really has this size, whoever changed it. One that was cut to nothing has
    /// no reserve, and gets one once the cut is durable: until then the medium may hold the old log.
    pub fn begin_cycle(&self, file_bytes: u64) {
        self.file_bytes.store(file_bytes, SeqCst);
        if file_bytes == 0 {
            self.note(Reserve::NotYet);
        }
    }

    fn note(&self, reserve: Reserve) {
        self.reserve.store(reserve as u8, SeqCst);
    }

    fn reserve(&self) -> Reserve {
        Reserve::ALL[usize::from(self.reserve.load(SeqCst))]
    }

    /// What `waldio_status` says of it.
    pub fn text(&self) -> &'static str {
        self.reserve().text()
    }

    /// True once space was reserved, or there is a reason for none.
    pub fn is_settled(&self) -> bool {
        self.reserve() != Reserve::NotYet
    }

    /// Gives a log its first space, under the write lock, in front of a sync. A log that cannot have it works without.
    /// # Errors
    /// Those of the file; the log has no space.
    pub fn reserve_first(&self, file: &dyn DiskFile) -> io::Result<()> {
        let Some(fill) = self.fill else {
            self.note(Reserve::Never);
            return Ok(());
        };
        let limit_bytes = self.limit_bytes.load(SeqCst);
        if !self.has_room(file, self.working_bytes.min(limit_bytes)) {
            self.note(Reserve::NearlyFull);
            return Ok(());
        }
        // The device zeroes whole ranges at once: the working size costs no more than the first piece.
        if fill == Fill::WriteZeroes && self.extend(file, self.working_bytes.min(limit_bytes), fill).is_ok() {
            return Ok(());
        }
        let fill = if fill == Fill::WriteZeroes { Fill::Zeroes } else { fill };
        self.extend(file, FIRST_BYTES.min(limit_bytes), fill)
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
        self.note(Reserve::by(fill));
        Stats::add(&self.stats.growths, 1);
        if fill == Fill::Zeroes {
            Stats::add(&self.stats.bytes_written, size.saturating_sub(before));
        }
        Ok(())
    }

    /// True when space must be reserved now that frames reach `used_bytes`, and no thread has the order. The caller then
    /// has `LogSession::grow` called.
    pub fn wants_growth(&self, used_bytes: u64) -> bool {
        if self.fill.is_none() || !self.is_settled() {
            return false;
        }
        // On a nearly full disk, or one that refuses, each commit would wake the worker for nothing: it is asked again
        // when the log has doubled or was begun anew.
        let refused_at = self.refused_at.load(SeqCst);
        let refused = (refused_at..refused_at.saturating_mul(2)).contains(&used_bytes);
        !refused
            && self.next_size(used_bytes).is_some()
            && self.moves(GrowthOrder::Idle, GrowthOrder::Ordered)
    }

    /// True where the order was `from`, and is `to` now.
    fn moves(&self, from: GrowthOrder, to: GrowthOrder) -> bool {
        self.order.compare_exchange(from as u8, to as u8, SeqCst, SeqCst).is_ok()
    }

    fn is_ordered(&self) -> bool {
        self.order.load(SeqCst) == GrowthOrder::Ordered as u8
    }

    fn next_size(&self, used_bytes: u64) -> Option<u64> {
        let limit_bytes = self.limit_bytes.load(SeqCst);
        reserve::next_size(used_bytes, self.file_bytes(), self.working_bytes, Some(limit_bytes))
    }

    /// True where an order to grow past the working size, given when frames reached `used_bytes`, has been overtaken: the log was
    /// begun anew since, and has room. Its pieces would only stand before the commits that go on.
    fn is_overtaken(&self, used_bytes: u64) -> bool {
        let newest_end = self.newest_end.load(SeqCst);
        self.file_bytes() >= self.working_bytes
            && newest_end < used_bytes
            && self.next_size(newest_end).is_none()
    }

    /// Carries an order out, by `grow`, while no other thread grows or cuts the file.
    /// # Errors
    /// Those of `grow`; the log is asked again when it has doubled.
    pub fn carry_out(&self, used_bytes: u64, grow: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let growing = self.alone();
        // The order may come after the close, when the log may be gone or another's, or after the file was cut.
        let done = if self.is_ordered() { grow() } else { Ok(()) };
        if done.is_err() {
            self.refused_at.store(used_bytes, SeqCst);
        }
        drop(growing);
        self.decline();
        done
    }

    /// Nobody carries out an order that was given: the next commit may give one.
    pub fn decline(&self) {
        self.moves(GrowthOrder::Ordered, GrowthOrder::Idle);
    }

    /// Reserves space ahead of `used_bytes` in `file`, piece by piece, until there is enough, the order is over, `may_go_on` says no or a
    /// sync failed. `in_turn` makes a piece by what it is given, and syncs it.
    /// # Errors
    /// Those of the file.
    pub fn grow(
        &self,
        file: &dyn DiskFile,
        used_bytes: u64,
        may_go_on: impl Fn() -> bool,
        in_turn: impl Fn(&dyn Fn() -> io::Result<()>) -> io::Result<Grown>,
    ) -> io::Result<()> {
        let Some(target) = self.next_size(used_bytes) else { return Ok(()) };
        // Only a fill that never touches what another process writes may run without the write lock.
        let fill = if self.fill == Some(Fill::Unwritten) { Fill::Unwritten } else { Fill::Zeroes };
        if !self.has_room(file, target) {
            self.refused_at.store(used_bytes, SeqCst);
            return Ok(());
        }
        self.refused_at.store(0, SeqCst);
        let mut size = if planted::is(Bug::FillOverwrites) { self.file_bytes() } else { file.size()? };
        while size < target && self.is_ordered() && !self.is_overtaken(used_bytes) && may_go_on() {
            let piece_bytes = self.piece_bytes.load(SeqCst);
            let end = target.min(size + piece_bytes);
            let extend = || {
                if !planted::is(Bug::FillOverwrites) {
                    return self.extend(file, end, fill);
                }
                file.write_at(&vec![0; usize::try_from(end - size).unwrap_or(0)], size)?;
                self.note_end(end);
                Ok(())
            };
            let Grown::Synced(took) = in_turn(&extend)? else { return Ok(()) };
            size = self.file_bytes().max(end);
            self.piece_bytes.store(next_piece(piece_bytes, took), SeqCst);
        }
        Ok(())
    }

    /// Cuts the file to `size_bytes` by `cut`; a growth stops after its present piece. A size other than 0 is the user's limit.
    /// # Errors
    /// Those of `cut`; the size is as before.
    pub fn truncate(&self, size_bytes: u64, cut: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.moves(GrowthOrder::Ordered, GrowthOrder::Idle);
        let growing = self.alone();
        cut()?;
        self.file_bytes.store(size_bytes, SeqCst);
        self.moves(GrowthOrder::Ordered, GrowthOrder::Idle);
        if size_bytes > 0 {
            self.limit_bytes.store(size_bytes, SeqCst);
        }
        drop(growing);
        Ok(())
    }

    /// Ends it: waits until no thread grows the log, and none will.
    pub fn close(&self) {
        self.order.store(GrowthOrder::Over as u8, SeqCst);
        drop(self.alone());
    }

    /// No other thread grows the log as long as this is kept. A parent's thread, which may have been at it, is none of a child's.
    fn alone(&self) -> Option<MutexGuard<'_, ()>> {
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
#[path = "tests/reserved_space.rs"]
mod tests;
