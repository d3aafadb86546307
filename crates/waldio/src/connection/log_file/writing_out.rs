//! Writes the frames that wait of a transaction to the log: as one direct durable write, or through the page cache.

use super::LogFile;
use crate::connection::transaction::TransactionState;
use crate::failure::Failure;
use crate::ffi::wal_index::WalIndex;
use crate::log::embedded_file::blocks_of;
use crate::log::frame::Prefix;
use crate::log::layout::{FrameIndex, Layout, block_ceil, block_floor, frame_offset};
use crate::stats::Stats;
use crate::testing::planted::{self, Bug};

impl LogFile {
    /// One direct durable write of all that waits, where that is enough; false (and nothing done) elsewhere. It is
    /// enough for a whole commit that begins where the published log ends, whose name says that it is on the medium. Never
    /// for a log header: the rest of its block holds frames of the generation that it ends, and a block that
    /// persists in part must not turn them into a shorter valid log.
    pub(super) fn write_durable(&mut self, wal_index: Option<WalIndex>) -> Result<bool, Failure> {
        if !self.session.is_fua() || self.pending.is_empty() || self.pending.start() == 0 {
            return Ok(false);
        }
        let (Some(before), Some(page_bytes), Some(name)) =
            (wal_index.and_then(WalIndex::published), self.page_bytes, self.transaction.commit_name())
        else {
            return Ok(false);
        };
        let published_end = frame_offset(FrameIndex(u64::from(before.frames)), page_bytes);
        let is_known = self.session.durability.is_known(before) || planted::is(Bug::DurableWithoutPrefix);
        let is_whole = self.pending.start() == published_end && self.pending.end() >= self.transaction.end;
        if before.frames == 0 || before.salts != name.salts || !is_whole || !is_known {
            return Ok(false);
        }
        let (start, end) = (self.pending.start(), self.pending.end());
        let (blocks, base, log_end) = match self.session.layout {
            Layout::Stock => {
                self.fill_head(before)?;
                let base = self.pending.base();
                (self.pending.blocks(), base, block_ceil(end))
            }
            Layout::Embedded => {
                let Some((len_bytes, base)) = blocks_of(self.pending.bytes(), start, &mut self.blocks) else {
                    return Ok(false);
                };
                (&self.blocks.bytes()[..len_bytes], base, end)
            }
        };
        if !self.session.durability.write_durable(&*self.file, blocks, base)? {
            self.session.give_up_fua();
            return Ok(false);
        }
        self.session.space.note_end(log_end);
        let bytes_max = self.session.recent_bytes_max();
        self.session.durability.recent().append(before, name, start, self.pending.bytes(), bytes_max);
        self.pending.clear();
        Ok(true)
    }

    /// Puts the bytes in front of the run in its first block back where a whole-block write needs them.
    fn fill_head(&mut self, before: Prefix) -> Result<(), Failure> {
        let base = self.pending.base();
        debug_assert_eq!(base, block_floor(self.pending.start()));
        let head = self.pending.head_mut();
        if head.is_empty() || self.session.durability.recent().read(Some(before), head, base) {
            return Ok(());
        }
        let read = self.file.read_at(head, base)?;
        head[read..].fill(0);
        Ok(())
    }

    /// Writes what waits through the page cache, durable at the next sync.
    ///
    /// A write that fails harms nobody: none of it is published. What was to be a commit is given up, because SQLite rolls it
    /// back; of a transaction that goes on (a statement that found the disk full, within BEGIN) every frame waits on.
    pub(super) fn write_out(&mut self) -> Result<(), Failure> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let (start, end) = (self.pending.start(), self.pending.end());
        if start == 0 {
            self.session.note_header();
        }
        let write = || self.file.write_at(self.pending.bytes(), start);
        // Whoever made the wal-index begin anew may be another process, or a connection with `synchronous=OFF`: then nothing is known.
        let begins = start == 0 && self.database.synced.is_synced_since(Some(self.salts));
        let durability = &self.session.durability;
        let written = if begins { durability.begin_anew(self.salts, write) } else { write() };
        if let Err(error) = written {
            if matches!(self.transaction.state, TransactionState::Committing | TransactionState::Committed) {
                // A write that is said to have failed may be there all the same. Nothing of it is published yet.
                self.fail_commit(None);
            }
            let failure = match Failure::from(error) {
                Failure::Io(error) => Failure::Write(error),
                full => full,
            };
            self.database.stats.error(&format!("write of the log failed: {failure}"));
            return Err(failure);
        }
        Stats::add(&self.database.stats.writes, 1);
        Stats::add(&self.database.stats.bytes_written, end - start);
        self.session.space.note_end(end);
        self.pending.clear();
        Ok(())
    }
}
