//! One connection's open log, in SQLite's words: write, sync, read, truncate.
//!
//! SQLite writes a transaction as many small pieces, then syncs. Here the pieces wait in memory and leave as one
//! write. When they must have left:
//! 1. at `xSync`, always, before it returns (other processes read the file as soon as the frames are published);
//! 2. where no sync will follow (`synchronous=NORMAL` and `OFF`): with the last byte of the commit frame. Which it
//!    is, each connection learns from its own last commit (`sync_follows`), and forgets at `PRAGMA synchronous`;
//! 3. at the latest before frames are published, at `xShmBarrier`, should 2 have guessed wrong;
//! 4. in strict mode: with the last byte of each page, so that a cache that spills makes the file grow as stock's;
//! 5. never after the transaction has ended (`transaction`): another writer may own the place by then.
//!
//! The header of a log that was never written to waits as well, until the first commit frame is complete: then one
//! sync makes header, frames and the log's name durable, before anything is published. Elsewhere a header is durable
//! before its frames, or the medium could hold the older generation's header over a part of its frames.
//!
//! `writing_out` writes what waits; `sharing` is for commits that leave their flush to others, `taking_back` for those
//! that failed.
//!
//! Source: wal.c (`walFrames`, `walWriteToLog`, `walRewriteChecksums`).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use blockio::aligned::AlignedBuffer;
use blockio::disk::DiskFile;

use crate::connection::transaction::{Transaction, TransactionState};
use crate::database::Database;
use crate::durability::group_commit::CommitNumber;
use crate::durability::log_session::LogSession;
use crate::failure::Failure;
use crate::ffi::codes::SQLITE_SYNC_NORMAL;
use crate::ffi::sync_observer;
use crate::ffi::wal_index::WalIndex;
use crate::log::frame::{FRAME_HEADER_BYTES, FrameHeader, LOG_HEADER_BYTES, Prefix, Salts, Version};
use crate::log::layout::frame_at;
use crate::log::pending_writes::{Pending, RUN_BYTES_MAX};
use crate::log::rewrite::Writers;
use crate::options::FlushDelay;
use crate::stats::Stats;
use crate::testing::planted::{self, Bug};
use crate::threads::primitives::Waker;

mod writing_out;
mod sharing;
mod taking_back;

/// Whether a commit may leave its flush for later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// It is durable at `xSync`.
    No,
    /// It is durable when COMMIT returns, by a flush that others share.
    Wait,
    /// It is durable when this delay is over.
    FlushDelay(FlushDelay),
    /// It is durable at the next checkpoint, as under `synchronous=NORMAL`.
    Leave,
}

/// The log that one connection has open.
#[derive(Debug)]
pub struct LogFile {
    database: Arc<Database>,
    session: Arc<LogSession>,
    file: Arc<dyn DiskFile>,
    pending: Pending,
    /// For direct writes in the `embedded` layout.
    blocks: AlignedBuffer,
    /// Generation of the frames this connection writes.
    salts: Salts,
    page_bytes: Option<u32>,
    transaction: Transaction,
    /// This connection's commits are followed by a sync (`synchronous=FULL` or `EXTRA`): a guess, from the last one. Where it
    /// is wrong `before_publish` writes what waits.
    sync_follows: bool,
    /// SQLite asked for no sync of the last commit, and was not told of another `synchronous` since.
    is_unsynced: bool,
    /// The next sync makes the log's name durable even if it is: strict mode does as stock, once in each connection.
    name_due: bool,
    /// This connection's commit is published and waits for a shared flush.
    shared: Option<SharedCommit>,
    waker: Arc<Waker>,
}

/// A commit that waits for a shared flush.
#[derive(Debug)]
struct SharedCommit {
    number: CommitNumber,
    /// Its name, where the page size is known.
    name: Option<Prefix>,
    /// See `Durability::untold`.
    untold: Arc<()>,
    /// A flush of the log is enough: its name is durable, and so is what was recovered.
    is_certain: bool,
}

impl LogFile {
    /// Wraps a log that `database` just opened.
    pub fn new(database: Arc<Database>, session: Arc<LogSession>, file: Arc<dyn DiskFile>) -> LogFile {
        LogFile {
            name_due: session.options.strict,
            database,
            session,
            file,
            pending: Pending::default(),
            blocks: AlignedBuffer::zeroed(0),
            salts: Salts::default(),
            page_bytes: None,
            transaction: Transaction::default(),
            sync_follows: false,
            is_unsynced: false,
            shared: None,
            waker: Arc::default(),
        }
    }

    /// `xRead`: what SQLite wrote, wherever it is. Returns how many bytes there were.
    /// # Errors
    /// `into` is undefined.
    pub fn read(
        &mut self,
        into: &mut [u8],
        offset: u64,
        wal_index: Option<WalIndex>,
    ) -> Result<usize, Failure> {
        if self.pending.read(into, offset) {
            return Ok(into.len());
        }
        if self.pending.overlaps(offset, into.len()) {
            self.write_out()?;
        }
        if self.session.is_fua() {
            let published = wal_index.and_then(WalIndex::published);
            if self.session.durability.recent().read(published, into, offset) {
                return Ok(into.len());
            }
        }
        Ok(self.file.read_at(into, offset)?)
    }

    /// `xWrite`.
    /// # Errors
    /// Of the transaction so far nothing is lost, but this write is; SQLite rolls back. A log whose medium is unknown is
    /// poisoned.
    pub fn write(&mut self, data: &[u8], offset: u64, wal_index: Option<WalIndex>) -> Result<(), Failure> {
        self.session.durability.check()?;
        if offset == LOG_HEADER_BYTES {
            self.header_first(wal_index)?;
        }
        self.note(data, offset, wal_index.and_then(WalIndex::page_bytes));
        Stats::add(&self.database.stats.bytes_from_sqlite, data.len() as u64);
        if !self.pending.put(data, offset) {
            self.write_out()?;
            assert!(data.len() <= RUN_BYTES_MAX / 2, "SQLite wrote {} bytes at once", data.len());
            let taken = self.pending.put(data, offset);
            assert!(taken, "an empty run refused {} bytes at {offset}", data.len());
        }
        let end = offset + data.len() as u64;
        let completes = self.transaction.written(end, data.len());
        if completes && self.transaction.header_waits && !self.sync_follows {
            // Here and not at `xShmBarrier`, where a failure would come after the publication.
            let result = self.make_durable(wal_index);
            if result.is_err() {
                self.fail_commit(wal_index);
            }
            result?;
        }
        let page_ends = offset > 0 && data.len() as u64 > FRAME_HEADER_BYTES;
        // No sync will follow, and no later event would write these: neither the commit frame nor checksums behind it.
        let write_through = self.transaction.is_committed() && !self.sync_follows;
        let leaves = write_through || self.session.options.strict && page_ends;
        if leaves { self.write_out() } else { Ok(()) }
    }

    /// The first frame of a log that was begun anew is about to be written. Where SQLite did not sync the header, with
    /// `synchronous=OFF`, that is done here: else the medium may get new frames under the old header. The old frames in front of
    /// them would be recovered, an old state over the database that was copied from all of them.
    fn header_first(&mut self, wal_index: Option<WalIndex>) -> Result<(), Failure> {
        let is_unsynced = !self.pending.is_empty() && self.pending.start() == 0;
        if !is_unsynced || self.transaction.header_waits || self.may_header_wait(wal_index) {
            return Ok(());
        }
        // A log that was cut to nothing has no old frames.
        let file_bytes = self.file.size()?;
        if file_bytes == 0 {
            return Ok(());
        }
        self.session.space.begin_cycle(file_bytes);
        self.make_durable(wal_index)
    }

    /// Learns what a write is from its size and place: a log header, a frame header, or (part of) a page. `page_bytes` is the
    /// database's page size where the wal-index has it.
    fn note(&mut self, data: &[u8], offset: u64, page_bytes: Option<u32>) {
        if offset == 0 && data.len() as u64 == LOG_HEADER_BYTES {
            let mut word = [0; 4];
            word.copy_from_slice(&data[8..12]);
            self.page_bytes = Some(u32::from_be_bytes(word));
            self.salts.0.copy_from_slice(&data[16..24]);
            return;
        }
        self.page_bytes = page_bytes.or(self.page_bytes);
        let Ok(header) = <&[u8; 24]>::try_from(data) else { return };
        if self.page_bytes.is_some_and(|page_bytes| frame_at(offset, page_bytes).is_none()) {
            return;
        }
        let header = FrameHeader::parse(header);
        self.salts = header.salts;
        if self.page_bytes.is_some() && self.transaction.goes_back(offset) {
            self.pending.cut(offset);
        }
        self.transaction.header_written(header, offset, self.page_bytes);
    }

    /// `xSync`: everything in the log, of every process, is durable when this returns. But for a commit that may leave
    /// its flush for later (`share`): then its frames are in the file, and `await_flush` makes them durable, or the
    /// delay does; and for the header of a log that is fresh (the file's head).
    /// # Errors
    /// Nothing of a commit counts: SQLite rolls back. Where a sync failed the log is poisoned, and its published frames are written
    /// again: the lock that SQLite syncs under keeps them in place.
    pub fn sync(
        &mut self,
        checkpointing: bool,
        share: Share,
        wal_index: Option<WalIndex>,
    ) -> Result<(), Failure> {
        let result = self.sync_transaction(checkpointing, share, wal_index);
        if result.is_err() && self.transaction.is_committed() {
            self.fail_commit(wal_index);
        }
        if matches!(result, Err(Failure::Sync(_))) {
            // A checkpoint has another lock than that of writers.
            let writers = if checkpointing { Writers::Others } else { Writers::None };
            self.write_again(wal_index.and_then(WalIndex::published_end), writers);
        }
        result
    }

    /// COMMIT fails, and SQLite rolls back. In exclusive mode no other event says so.
    fn fail_commit(&mut self, wal_index: Option<WalIndex>) {
        self.pending.clear();
        self.take_back_commit(wal_index);
        self.transaction.end();
    }

    fn sync_transaction(
        &mut self,
        checkpointing: bool,
        share: Share,
        wal_index: Option<WalIndex>,
    ) -> Result<(), Failure> {
        self.session.durability.check()?;
        let commit = self.transaction.is_committed() && !checkpointing;
        let header_waits = self.transaction.header_waits;
        let header = !self.pending.is_empty() && self.pending.start() == 0;
        self.sync_follows |= commit;
        if planted::skips_sync(commit, header && !header_waits, checkpointing) {
            return self.write_out();
        }
        if header && !commit && !header_waits && self.may_header_wait(wal_index) {
            self.transaction.header_waits = true;
            return Ok(());
        }
        if !self.is_durable(commit, wal_index) {
            if commit && !header && !self.session.space.is_settled() {
                // The second commit: a log that is written once pays for none. Of a log that was cut the first: its header
                // was synced, and so was the cut.
                self.session.reserve_first(&*self.file);
            }
            let may_share = !self.session.durability.is_uncertain() && self.session.is_name_settled();
            if commit && !header && share == Share::Leave {
                self.write_out()?;
                self.count_unsynced();
                self.end_transaction();
                return Ok(());
            }
            if commit && !header && share != Share::No && may_share {
                return self.share(share);
            }
            if header && !header_waits {
                // Once a cycle: another process may have cut or extended the file.
                self.session.space.begin_cycle(self.file.size()?);
            }
            self.make_durable(wal_index)?;
        }
        if commit {
            self.end_transaction();
        }
        Ok(())
    }

    /// Whether a header may wait for its first commit: this process made the log, it is empty still, and the wal-index tells
    /// that no process published anything in it.
    fn may_header_wait(&self, wal_index: Option<WalIndex>) -> bool {
        if planted::is(Bug::EveryHeaderWaits) {
            return true;
        }
        let unused = |wal_index: WalIndex| wal_index.salts() == Salts::default();
        let empty = || self.file.size().is_ok_and(|bytes| bytes == 0);
        self.session.is_fresh() && !self.session.options.strict && wal_index.is_some_and(unused) && empty()
    }

    /// Whether a sync would find nothing to do: a commit that went out with its log's header, or a checkpoint of
    /// frames that are known to be on the medium by their name.
    fn is_durable(&self, commit: bool, wal_index: Option<WalIndex>) -> bool {
        let clean = self.pending.is_empty() && !self.transaction.header_waits;
        if !clean || self.name_due || !self.session.is_name_settled() || self.session.options.strict {
            return false;
        }
        let newest =
            if commit { self.transaction.commit_name() } else { wal_index.and_then(WalIndex::published) };
        newest.is_some_and(|name| self.session.durability.is_known(name))
    }

    /// Everything in the file and everything that waits is on the medium when this returns, and so is the log's name.
    fn make_durable(&mut self, wal_index: Option<WalIndex>) -> Result<(), Failure> {
        if !self.write_durable(wal_index)? {
            self.write_out()?;
            self.session.durability.flush(&*self.file, wal_index)?;
        }
        if let Some(name) = self.transaction.commit_name() {
            self.session.durability.known.committed(name);
        }
        self.transaction.header_waits = false;
        self.transaction.is_durable = self.transaction.is_committed();
        self.sync_name()
    }

    /// The log's name is on the medium when this returns, as far as that can be had.
    /// # Errors
    /// It may not be, and the log is poisoned.
    fn sync_name(&mut self) -> Result<(), Failure> {
        let named = self.session.sync_name(&*self.database.disk, std::mem::take(&mut self.name_due));
        match named.map_err(Failure::from) {
            // In the flags of stock's sync of a directory.
            Ok(true) => sync_observer::notify(SQLITE_SYNC_NORMAL),
            Ok(false) => {}
            Err(Failure::Io(error)) => {
                return Err(self.session.durability.poison("sync of the log's directory", error));
            }
            Err(full) => return Err(full),
        }
        Ok(())
    }

    /// A checkpoint begins to copy frames: they are durable when this returns, as after `sync`. SQLite asked for
    /// that already, but with `synchronous=OFF`, when the frames may be those of others who did ask.
    /// # Errors
    /// As `sync`.
    pub fn before_checkpoint(&mut self, wal_index: Option<WalIndex>) -> Result<(), Failure> {
        // The second of two barriers must not hide that the first is missing.
        let planted = [Bug::CheckpointWithoutBarrier, Bug::SkipCheckpointSync, Bug::SkipCloseSync];
        if planted.into_iter().any(planted::is) {
            return Ok(());
        }
        self.sync(true, Share::No, wal_index)
    }

    /// Frames may be published next: nothing may wait. Where no commit frame came nothing is published, and what waits may be of
    /// a transaction that was rolled back: then it does no harm if it cannot be written.
    /// # Errors
    /// As `write`; the frames are published all the same, so the log is poisoned.
    pub fn before_publish(&mut self, wal_index: Option<WalIndex>) -> Result<(), Failure> {
        // A shim above may pass on a part of the commit frame's page: `Committing` is enough.
        let publishes =
            matches!(self.transaction.state, TransactionState::Committing | TransactionState::Committed);
        match self.write_out() {
            Err(_) if !publishes => Ok(()),
            Err(Failure::Poisoned(why)) => Err(Failure::Poisoned(why)),
            Err(Failure::Full) => {
                let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
                Err(self.session.durability.poison("write of published frames", full))
            }
            Err(Failure::Io(error) | Failure::Write(error) | Failure::Sync(error)) => {
                Err(self.session.durability.poison("write of published frames", error))
            }
            Ok(()) if self.transaction.header_waits => self.make_durable(wal_index),
            Ok(()) => Ok(()),
        }
    }

    /// The transaction is over, whatever it came to: the write lock was given back, or another begins.
    pub fn end_write(&mut self, delay: Option<FlushDelay>) {
        self.pending.clear();
        self.end_commit(delay);
    }

    /// A commit is over; where no sync came, none will come after the next. It is durable after this delay all the same.
    pub fn end_commit(&mut self, delay: Option<FlushDelay>) {
        let is_committed = self.transaction.is_committed();
        if let Some(delay) = delay.filter(|_| is_committed) {
            self.number(Share::FlushDelay(delay));
        }
        self.sync_follows &= !is_committed;
        let is_unsynced = is_committed && delay.is_none();
        if is_unsynced {
            self.count_unsynced();
        }
        self.end_transaction();
        if is_unsynced {
            self.database.stats.is_newest_unsynced.store(true, Relaxed);
            self.is_unsynced = true;
        }
    }

    fn end_transaction(&mut self) {
        let ended = self.transaction.end();
        if ended.is_committed() {
            Stats::add(&self.database.stats.commits, 1);
            self.database.stats.is_newest_unsynced.store(false, Relaxed);
            self.is_unsynced = false;
        }
        self.pending.give_back();
        self.session.space.note_used(ended.end);
        // Without syncs nobody waits for the file to grow, and the sync of a growth would write frames that
        // `synchronous=NORMAL` leaves to the next checkpoint.
        if ended.end > 0 && self.sync_follows && self.session.space.wants_growth(ended.end) {
            self.session.durability.note_generation(ended.commit_name().map(|name| name.salts));
            self.database.grow_soon(&self.session, &self.file, ended.end);
        }
    }

    /// SQLite is about to recover this log: see `Durability::make_certain`.
    pub fn make_certain(&mut self, database_first: impl FnOnce() -> Result<(), Failure>) {
        self.session.durability.make_certain(&*self.file, database_first);
    }

    /// True where a checkpoint would find nothing to sync.
    pub fn is_all_durable(&self, wal_index: Option<WalIndex>) -> bool {
        self.is_durable(false, wal_index)
    }

    /// A sync failed: see `rewrite::published`.
    pub fn write_again(&self, published_end: Option<u64>, writers: Writers) {
        self.session.durability.write_again(&*self.file, published_end, writers);
    }

    /// `PRAGMA synchronous` is about to change what follows a commit.
    pub fn forget_sync_follows(&mut self) {
        (self.sync_follows, self.is_unsynced) = (false, false);
    }

    /// True where SQLite asks for no sync of this connection's commits: a guess, from the last one.
    pub fn is_unsynced(&self) -> bool {
        self.is_unsynced
    }

    /// True where what SQLite wrote last still waits, in memory or for a sync.
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty() || self.transaction.header_waits
    }

    /// This connection's open file.
    pub fn file(&self) -> &dyn DiskFile {
        &*self.file
    }

    /// The same, for a caller that lets go of the connection.
    pub fn shared_file(&self) -> Arc<dyn DiskFile> {
        Arc::clone(&self.file)
    }

    /// What this connection shares with the others of its process.
    pub fn session(&self) -> &Arc<LogSession> {
        &self.session
    }

    /// True where the snapshot `version` is known to be on the medium.
    pub fn is_known_durable(&self, version: Version) -> bool {
        let durability = &self.session.durability;
        !durability.is_uncertain() && durability.known.covers_snapshot(version)
    }

    /// `xTruncate`.
    /// # Errors
    /// The size is as before.
    pub fn truncate(&mut self, size_bytes: u64) -> Result<(), Failure> {
        self.session.durability.check()?;
        self.write_out()?;
        self.transaction.end();
        Ok(self.session.truncate(size_bytes, || self.file.truncate(size_bytes))?)
    }

    /// `xFileSize`: the file's size, reserved space included.
    /// # Errors
    /// As fstat(2).
    pub fn size(&mut self) -> Result<u64, Failure> {
        Ok(self.file.size()?.max(self.pending.end()))
    }
}
