//! How what waits of a transaction leaves for the file: as one direct durable write, or through the page cache.

use std::time::Instant;

use super::LogFile;
use crate::embedded_file::blocks_of;
use crate::failure::Failure;
use crate::layout::{Layout, block_ceil, block_floor};
use crate::planted::{self, Bug};
use crate::stats::Stats;

impl LogFile {
    /// One direct durable write of all that waits, where that is enough; false (and nothing done) elsewhere. Never
    /// for a log header: the rest of its block holds frames of the generation that it ends, and a block that
    /// persists in part must not turn them into a shorter valid log.
    pub(super) fn write_durable(&mut self) -> Result<bool, Failure> {
        let prefix_durable = || {
            planted::is(Bug::DurableWithoutPrefix)
                || self.session.tail().is_durable_up_to(self.salts, self.pending.start())
        };
        if !self.session.is_fua()
            || self.pending.start() == 0
            || self.pending.is_empty()
            || self.unsynced
            || self.pending.end() < self.written_end
        {
            return Ok(false);
        }
        if !prefix_durable() || self.session.persist.only_alone && !self.database.open_probe.is_alone() {
            return Ok(false);
        }
        self.session.note_direct();
        let (start, end) = (self.pending.start(), self.pending.end());
        let (blocks, base, log_end) = match self.session.layout {
            Layout::Stock => {
                self.fill_head()?;
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
        let began = Instant::now();
        let len_bytes = blocks.len() as u64;
        match self.file.write_durable(blocks, base) {
            Err(error) if error.kind() == std::io::ErrorKind::Unsupported => {
                self.session.give_up_fua();
                return Ok(false);
            }
            Err(error) => return Err(self.write_failed(error)),
            Ok(()) => {}
        }
        let stats = &self.database.stats;
        stats.flush_times.record(began.elapsed());
        for count in [&stats.flushes, &stats.durable_writes, &stats.writes] {
            Stats::add(count, 1);
        }
        Stats::add(&stats.bytes_written, len_bytes);
        self.session.note_end(log_end);
        let mut tail = self.session.tail();
        tail.written(self.salts, start, self.pending.bytes(), true, self.session.tail_bytes_max());
        tail.set_durable(self.salts, end);
        drop(tail);
        self.written_end = self.written_end.max(end);
        self.pending.clear();
        Ok(true)
    }

    /// Puts the bytes in front of the run in its first block back where a whole-block write needs them.
    fn fill_head(&mut self) -> Result<(), Failure> {
        let base = self.pending.base();
        debug_assert_eq!(base, block_floor(self.pending.start()));
        let salts = self.salts;
        let head = self.pending.head_mut();
        if head.is_empty() || self.session.tail().read(Some(salts), head, base) {
            return Ok(());
        }
        let read = self.file.read_at(head, base)?;
        head[read..].fill(0);
        Ok(())
    }

    /// Writes what waits through the page cache, durable at the next sync.
    pub(super) fn write_out(&mut self) -> Result<(), Failure> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let (start, end) = (self.pending.start(), self.pending.end());
        if start == 0 {
            self.session.note_header();
        }
        if let Err(error) = self.file.write_at(self.pending.bytes(), start) {
            return Err(self.write_failed(error));
        }
        Stats::add(&self.database.stats.writes, 1);
        Stats::add(&self.database.stats.bytes_written, end - start);
        self.session.note_end(end);
        let bytes_max = self.session.tail_bytes_max();
        self.session.tail().written(self.salts, start, self.pending.bytes(), false, bytes_max);
        self.unsynced = true;
        self.written_end = self.written_end.max(end);
        self.pending.clear();
        Ok(())
    }

    /// A full disk is reported and nothing more: none of it was published. Any other failed write poisons.
    fn write_failed(&mut self, error: std::io::Error) -> Failure {
        self.session.tail().cut(self.pending.start());
        self.pending.clear();
        self.commit_unsynced = false;
        self.uncounted = false;
        self.commit_end = None;
        match Failure::from(error) {
            Failure::Io(error) => self.poison("write", error),
            full => {
                self.database.stats.error(&full.to_string());
                full
            }
        }
    }
}
