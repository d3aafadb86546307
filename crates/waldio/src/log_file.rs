//! One connection's open log, in SQLite's words: write, sync, read, truncate.
//!
//! SQLite writes a transaction as many small pieces, then syncs. Here the pieces wait in memory and leave as one
//! write. When they must have left:
//! 1. at `xSync`, always, before it returns (other processes read the file as soon as the frames are published);
//! 2. where no sync will follow (`synchronous=NORMAL` and `OFF`): with the last byte of the commit frame. Which it
//!    is, each connection learns from its own last commit (`sync_follows`), and forgets at `PRAGMA synchronous`;
//! 3. at the latest before frames are published, at `xShmBarrier`, should 2 have guessed wrong;
//! 4. in strict mode: with the last byte of each page, so that a cache that spills makes the file grow as stock's;
//! 5. never after the write lock is given back: another writer may own the place by then.
//!
//! The header of a log that was never written to waits as well, until the first commit frame is complete: then one
//! sync makes header, frames and the log's name durable, before anything is published. Elsewhere a header is durable
//! before its frames, or the medium could hold the older generation's header over a part of its frames.
//!
//! Source: wal.c (`walFrames`, `walWriteToLog`, `walRewriteChecksums`).

mod leaving;

use std::sync::Arc;
use std::time::Instant;

use blockio::aligned::AlignedBuffer;
use blockio::disk::DiskFile;

use crate::database::Database;
use crate::durable_reads::Version;
use crate::failure::Failure;
use crate::ffi::codes::SQLITE_SYNC_NORMAL;
use crate::ffi::sync_observer;
use crate::ffi::wal_index::WalIndex;
use crate::frame::{FRAME_HEADER_BYTES, FrameHeader, LOG_HEADER_BYTES, Salts};
use crate::layout::frame_at;
use crate::options::Window;
use crate::pending::{Pending, RUN_BYTES_MAX};
use crate::planted::{self, Bug};
use crate::primitives::Bell;
use crate::rewrite;
use crate::session::LogSession;
use crate::stats::Stats;
use crate::tickets::Ticket;

mod sharing;

/// Whether a commit may leave its flush for later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// It is durable at `xSync`.
    No,
    /// It is durable when COMMIT returns, by a flush that others share.
    Wait,
    /// It is durable when this window is over.
    Window(Window),
}

/// See the file's head.
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
    /// Where the commit frame whose page is on its way ends.
    commit_end: Option<u64>,
    /// A commit frame is complete and no sync came since.
    commit_unsynced: bool,
    /// It is not among the `commits` of the status yet.
    uncounted: bool,
    /// This connection's commits are followed by a sync (`synchronous=FULL` or `EXTRA`).
    sync_follows: bool,
    /// Pieces after an unsynced commit frame go straight to the file: nothing else will carry them.
    straight: bool,
    /// Buffered writes happened since the last sync.
    unsynced: bool,
    /// SQLite had the header synced, and it is not yet: it waits for the first commit.
    header_due: bool,
    /// The next sync makes the log's name durable even if it is: stock does so once in each connection.
    name_due: bool,
    /// Highest end of what this transaction already wrote to the file.
    written_end: u64,
    /// How much SQLite wrote of this transaction.
    transaction_bytes: u64,
    /// This connection's commit is published and waits for a shared flush.
    ticket: Option<Ticket>,
    bell: Arc<Bell>,
    /// Nothing was written since the last sync that covered everything in the file.
    just_synced: bool,
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
            commit_end: None,
            commit_unsynced: false,
            uncounted: false,
            sync_follows: false,
            straight: false,
            unsynced: false,
            header_due: false,
            written_end: 0,
            transaction_bytes: 0,
            ticket: None,
            bell: Arc::default(),
            just_synced: false,
        }
    }

    /// `xRead`: what SQLite wrote, wherever it is. Returns how many bytes there were.
    /// # Errors
    /// `into` is undefined.
    pub fn read(&mut self, into: &mut [u8], offset: u64, salts: Option<Salts>) -> Result<usize, Failure> {
        if self.pending.read(into, offset) {
            return Ok(into.len());
        }
        if self.pending.overlaps(offset, into.len()) {
            self.write_out()?;
        }
        if self.session.is_fua() && self.session.tail().read(salts, into, offset) {
            return Ok(into.len());
        }
        Ok(self.file.read_at(into, offset)?)
    }

    /// `xWrite`. `page_bytes` is the database's page size where it is known.
    /// # Errors
    /// `Full`: nothing of this transaction counts, SQLite rolls back. `Io`: the log is poisoned.
    pub fn write(&mut self, data: &[u8], offset: u64, page_bytes: Option<u32>) -> Result<(), Failure> {
        self.database.check_poison()?;
        self.note(data, offset, page_bytes);
        self.just_synced = false;
        Stats::add(&self.database.stats.bytes_from_sqlite, data.len() as u64);
        self.transaction_bytes += data.len() as u64;
        if !self.pending.put(data, offset) {
            self.write_out()?;
            assert!(data.len() <= RUN_BYTES_MAX / 2, "SQLite wrote {} bytes at once", data.len());
            let taken = self.pending.put(data, offset);
            assert!(taken, "an empty run refused {} bytes at {offset}", data.len());
        }
        let end = offset + data.len() as u64;
        if self.commit_end.is_some_and(|commit_end| end >= commit_end) {
            self.commit_end = None;
            self.commit_unsynced = true;
            self.uncounted = true;
            self.straight = !self.sync_follows;
            if self.straight && self.header_due {
                // Here and not at the barrier, where a failure would come after the publication.
                self.make_durable()?;
            }
        }
        let page_ends = offset > 0 && data.len() as u64 > FRAME_HEADER_BYTES;
        let leaves = self.straight || self.session.options.strict && page_ends;
        if leaves { self.write_out() } else { Ok(()) }
    }

    /// Learns what a write is from its size and place: a log header, a frame header, or (part of) a page.
    fn note(&mut self, data: &[u8], offset: u64, page_bytes: Option<u32>) {
        if offset == 0 && data.len() as u64 == LOG_HEADER_BYTES {
            let mut word = [0; 4];
            word.copy_from_slice(&data[8..12]);
            self.page_bytes = Some(u32::from_be_bytes(word));
            self.salts.0.copy_from_slice(&data[16..24]);
            self.written_end = 0;
            return;
        }
        self.page_bytes = page_bytes.or(self.page_bytes);
        let Ok(header) = <&[u8; 24]>::try_from(data) else { return };
        if self.page_bytes.is_some_and(|page_bytes| frame_at(offset, page_bytes).is_none()) {
            return;
        }
        let header = FrameHeader::parse(header);
        self.salts = header.salts;
        if header.commit_pages != 0 {
            // Without a page size (exclusive mode on a log of another process) the first piece of the page ends
            // the commit; `straight` then carries the rest.
            let page_bytes = u64::from(self.page_bytes.unwrap_or(1));
            self.commit_end = Some(offset + FRAME_HEADER_BYTES + page_bytes);
        }
    }

    /// `xSync`: everything in the log, of every process, is durable when this returns. But for a commit that may leave
    /// its flush for later (`share`): then its frames are in the file, and `await_flush` makes them durable, or the
    /// window does; and for the header of a log that is fresh (the file's head).
    /// # Errors
    /// The log is poisoned: what reached the medium is unknown.
    pub fn sync(
        &mut self,
        checkpointing: bool,
        share: Share,
        wal_index: Option<WalIndex>,
    ) -> Result<(), Failure> {
        self.database.check_poison()?;
        let commit = std::mem::take(&mut self.commit_unsynced);
        let header = !self.pending.is_empty() && self.pending.start() == 0;
        self.sync_follows |= commit;
        self.straight = false;
        if planted::skips_sync(commit, header && !self.header_due, checkpointing) {
            return self.write_out();
        }
        if header && !commit && !self.header_due && self.may_header_wait(wal_index) {
            self.header_due = true;
            return Ok(());
        }
        if !self.is_durable(commit, wal_index) {
            if commit && !header && !self.session.is_reserved() {
                // The second commit: a log that is written once pays for none.
                self.session.reserve_first(&*self.file);
                self.unsynced = true;
            }
            if commit && !header && share != Share::No && self.session.is_name_synced() {
                return self.share(share);
            }
            if header && !self.header_due {
                // Once a cycle: another process may have cut or extended the file.
                self.session.set_file_bytes(self.file.size()?);
                if self.session.file_bytes() == 0 {
                    self.session.reserve_first(&*self.file);
                    self.unsynced = true;
                }
            }
            self.make_durable()?;
        }
        self.just_synced = true;
        if commit {
            self.end_transaction();
        }
        Ok(())
    }

    /// Whether a header may wait for its first commit. The wal-index tells that no process wrote to this log before.
    fn may_header_wait(&self, wal_index: Option<WalIndex>) -> bool {
        if planted::is(Bug::EveryHeaderWaits) {
            return true;
        }
        let unused = |wal_index: WalIndex| wal_index.salts() == Salts::default();
        self.session.is_fresh() && !self.session.options.strict && wal_index.is_some_and(unused)
    }

    /// Whether a sync would find nothing to do: a commit that went out with its log's header, or a checkpoint of
    /// frames the last of which is one that this process made durable, with all in front of it.
    fn is_durable(&self, commit: bool, wal_index: Option<WalIndex>) -> bool {
        let clean = !self.unsynced && self.pending.is_empty() && !self.header_due;
        if !clean || self.name_due || !self.session.is_name_synced() || self.session.options.strict {
            return false;
        }
        let newest = if commit {
            Some((self.salts, self.written_end))
        } else {
            wal_index.and_then(|wal_index| Some((wal_index.salts(), wal_index.published_end()?)))
        };
        let tail = self.session.tail();
        newest.is_some_and(|(salts, end)| tail.is_durable_up_to(salts, end))
    }

    /// Everything in the file and everything that waits is on the medium when this returns, and so is the log's name.
    fn make_durable(&mut self) -> Result<(), Failure> {
        let tickets = &self.session.tickets;
        let covers = tickets.is_outstanding().then(|| tickets.issued());
        if !self.write_durable()? {
            self.write_out()?;
            self.flush(|log| log.file.sync_data())?;
            self.unsynced = false;
            if self.written_end > 0 {
                self.session.tail().set_durable(self.salts, self.written_end);
            }
        }
        self.header_due = false;
        let database = Arc::clone(&self.database);
        let named = self
            .session
            .sync_name(&*database.disk, std::mem::take(&mut self.name_due))
            .map_err(|error| self.poison("sync of the log's directory", error))?;
        if named {
            // In the flags of stock's sync of a directory.
            sync_observer::notify(SQLITE_SYNC_NORMAL);
        }
        if let Some(covers) = covers {
            self.session.tickets.covered(covers);
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
        if self.just_synced || planted.into_iter().any(planted::is) {
            return Ok(());
        }
        self.sync(true, Share::No, wal_index)
    }

    fn flush(&mut self, call: impl FnOnce(&Self) -> std::io::Result<()>) -> Result<(), Failure> {
        if self.session.options.no_sync {
            return Ok(());
        }
        let began = Instant::now();
        let result = call(self);
        self.database.stats.flush_times.record(began.elapsed());
        Stats::add(&self.database.stats.flushes, 1);
        result.map_err(|error| self.poison("sync", error))
    }

    fn poison(&self, what: &str, error: std::io::Error) -> Failure {
        let failure = self.database.poison(what, error);
        self.session.tickets.fail();
        failure
    }

    /// Before frames are published: nothing may wait.
    /// # Errors
    /// As `write`; the frames are published all the same, so the log is poisoned.
    pub fn before_publish(&mut self) -> Result<(), Failure> {
        match self.write_out() {
            Err(Failure::Full) => {
                let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
                Err(self.poison("write of published frames", full))
            }
            Ok(()) if self.header_due => self.make_durable(),
            other => other,
        }
    }

    /// The write lock was given back, with frames published up to `published_end` where that is known.
    pub fn end_write(&mut self, published_end: Option<u64>) {
        self.pending.clear();
        self.header_due = false;
        if let Some(end) = published_end {
            self.session.tail().cut(end);
        }
        self.end_commit();
    }

    /// A commit is over; where no sync came, none will come after the next.
    pub fn end_commit(&mut self) {
        self.sync_follows &= !self.commit_unsynced;
        self.end_transaction();
    }

    fn end_transaction(&mut self) {
        // What could not be written or synced is no commit.
        if std::mem::take(&mut self.uncounted) && self.database.check_poison().is_ok() {
            Stats::add(&self.database.stats.commits, 1);
        }
        self.commit_unsynced = false;
        self.commit_end = None;
        self.straight = false;
        self.transaction_bytes = 0;
        let used_bytes = std::mem::take(&mut self.written_end);
        self.session.note_used(used_bytes);
        // Without syncs nobody waits for the file to grow, and the sync of a growth would write frames that
        // `synchronous=NORMAL` leaves to the next checkpoint.
        if used_bytes > 0 && self.sync_follows && self.session.wants_growth(used_bytes) {
            self.database.grow_soon(&self.session, used_bytes);
        }
    }

    /// SQLite is about to recover this log, and nobody else can use it meanwhile: what it will find is made durable
    /// first. After a failed sync, or a kill before one, the page cache may hold frames that the medium does not have
    /// and that no later sync would write, because their pages count as clean; commits built on them would be lost
    /// with them. So the valid frames are written over themselves.
    /// # Errors
    /// The log is poisoned.
    pub fn make_certain(&mut self) -> Result<(), Failure> {
        let end = rewrite::valid_end(&*self.file)?;
        if end == 0 {
            return Ok(());
        }
        rewrite::over_itself(&*self.file, end)
            .map_err(|error| self.poison("write of the log over itself", error))?;
        self.flush(|log| log.file.sync_data())
    }

    /// A sync failed: see `rewrite::published`. Where this fails as well nothing is left to do: the log is poisoned.
    pub fn write_again(&mut self, published_end: Option<u64>) {
        let _ = rewrite::published(&*self.file, published_end);
    }

    /// `PRAGMA synchronous` is about to change what follows a commit.
    pub fn forget_sync_follows(&mut self) {
        self.sync_follows = false;
    }

    /// True where what SQLite wrote last still waits, in memory or for a sync.
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty() || self.header_due
    }

    /// `version` is published and was synced before.
    pub fn note_durable(&self, version: Version) {
        self.session.durable.note(version);
    }

    /// This connection's open file.
    pub fn file(&self) -> &dyn DiskFile {
        &*self.file
    }

    /// The window of `waldio_group`.
    pub fn window(&self) -> Option<Window> {
        self.session.options.group
    }

    /// A sync failed where nobody had a lock: true once.
    pub fn take_owed_rewrite(&self) -> bool {
        self.session.take_owed_rewrite()
    }

    /// True where `version` is known to be on the medium.
    pub fn is_known_durable(&self, version: Version) -> bool {
        self.session.durable.covers(version)
    }

    /// True where nothing was written since the last sync that covered everything in the file.
    pub fn is_just_synced(&self) -> bool {
        self.just_synced
    }

    /// True where a sync followed the last write: false at the close of a `synchronous=OFF` connection.
    pub fn is_synced(&self) -> bool {
        !self.unsynced && self.pending.is_empty()
    }

    /// `xTruncate`.
    /// # Errors
    /// The size is as before.
    pub fn truncate(&mut self, size_bytes: u64) -> Result<(), Failure> {
        self.database.check_poison()?;
        self.write_out()?;
        Ok(self.session.truncate(size_bytes, || self.file.truncate(size_bytes))?)
    }

    /// `xFileSize`: the file's size, reserved space included.
    /// # Errors
    /// As fstat(2).
    pub fn size(&mut self) -> Result<u64, Failure> {
        Ok(self.file.size()?.max(self.pending.end()))
    }
}
