//! A log in memory, and which of its writes a cut at a moment may take.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::image::{Patch, SECTORS_PER_BLOCK};
use crate::log_writes::{LogEntry, LogReader};
use crate::number::{index, size};
use crate::request::RequestKind;
use crate::request::{BLOCK_BYTES, SECTOR_BYTES};
use crate::request_log::LoggedRequest;
use crate::store::Store;

/// A moment of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// Entries that were done, from the first on; a flush among them holds.
    pub completed: usize,
    /// Entries behind them that were under way: writes may have left anything, a flush promises nothing yet.
    pub in_flight: usize,
}

impl Cut {
    /// The moment `at_ns` of a log whose times are `logged`, from the same recording without marks. What overtook an entry that
    /// was still under way counts as under way, which is less than the device promised where its queue is deeper than 1.
    pub fn at(logged: &[LoggedRequest], at_ns: u64) -> Cut {
        let entries: Vec<&LoggedRequest> =
            logged.iter().filter(|logged| logged.request.kind != RequestKind::Read).collect();
        let submitted = entries.iter().take_while(|logged| logged.submitted_ns <= at_ns).count();
        let completed =
            entries[..submitted].iter().take_while(|logged| logged.completion.done_ns <= at_ns).count();
        Cut { completed, in_flight: submitted - completed }
    }
}

/// The entries of a log, with their data.
#[derive(Debug, Clone, Default)]
pub struct History {
    entries: Vec<LogEntry>,
}

impl From<Vec<LogEntry>> for History {
    fn from(entries: Vec<LogEntry>) -> Self {
        History { entries }
    }
}

impl History {
    /// Reads a log to its end.
    ///
    /// # Errors
    /// The reader's: a damaged log is no history.
    pub fn read(log: LogReader<impl Read>) -> io::Result<Self> {
        Ok(History { entries: log.collect::<io::Result<_>>()? })
    }

    /// All entries, in order of submission.
    pub fn entries(&self) -> &[LogEntry] {
        &self.entries
    }

    /// The device after the first `count` entries, with everything on the medium, where the log began with zeros.
    pub fn store(&self, count: usize) -> Store {
        let mut store = Store::new();
        for entry in &self.entries[..count] {
            match entry {
                LogEntry::Write { offset_bytes, data, .. } => store.write(*offset_bytes, data, true),
                LogEntry::Discard { offset_bytes, len_bytes, .. } => {
                    store.zero(*offset_bytes, *len_bytes, true);
                }
                LogEntry::Flush | LogEntry::FlushWithin { .. } | LogEntry::Mark(_) => {}
            }
        }
        store
    }

    /// Without the first `count` entries.
    pub fn behind(mut self, count: usize) -> History {
        self.entries.drain(..count);
        self
    }

    /// The same, where the log is that of two devices: bytes from `second_bytes` on are the second one's, and so is a flush that has this
    /// offset in `logged`, the same log. Each flush covers its own device. Both come to be in order of submission.
    ///
    /// # Panics
    /// When one of them has more entries than the other.
    pub fn of_two(self, logged: &mut Vec<LoggedRequest>, second_bytes: u64) -> History {
        assert_eq!(self.entries.len(), logged.len(), "not the same log");
        let mut both: Vec<(LoggedRequest, LogEntry)> = logged.drain(..).zip(self.entries).collect();
        // Two devices are served side by side: one may be later to the log with an earlier request.
        both.sort_by_key(|(request, _)| request.submitted_ns);
        let mut entries = Vec::with_capacity(both.len());
        for (request, entry) in both {
            let (begin_bytes, end_bytes) = match request.request.offset_bytes >= second_bytes {
                true => (second_bytes, u64::MAX),
                false => (0, second_bytes),
            };
            entries.push(match entry {
                LogEntry::Flush => LogEntry::FlushWithin { begin_bytes, end_bytes },
                other => other,
            });
            logged.push(request);
        }
        History { entries }
    }

    /// The same writes on a device that lies: it acknowledges flushes, and FUA writes, without effect. Entries keep their numbers.
    pub fn without_promises(mut self) -> History {
        for entry in &mut self.entries {
            match entry {
                LogEntry::Write { preflush, fua, .. } => (*preflush, *fua) = (false, false),
                LogEntry::Discard { fua, .. } => *fua = false,
                LogEntry::Flush | LogEntry::FlushWithin { .. } => {
                    *entry = LogEntry::Mark("a flush without effect".to_owned());
                }
                LogEntry::Mark(_) => {}
            }
        }
        self
    }

    /// Entries up to and with the mark of this name.
    pub fn mark(&self, name: &str) -> Option<usize> {
        let is_mark = |entry: &LogEntry| matches!(entry, LogEntry::Mark(mark) if mark == name);
        self.entries.iter().position(is_mark).map(|at| at + 1)
    }

    /// Every block that was written until `cut`, with what may be lost of it.
    pub(super) fn pieces_at(&self, cut: Cut) -> BTreeMap<u64, BlockPieces> {
        let submitted = cut.completed + cut.in_flight;
        assert!(submitted <= self.entries.len(), "{cut:?} lies behind {} entries", self.entries.len());
        let mut state = State::default();
        for (number, entry) in self.entries[..submitted].iter().enumerate() {
            let done = number < cut.completed;
            match entry {
                LogEntry::Write { offset_bytes, data, preflush, fua } => {
                    if *preflush && done {
                        state.flush(0..u64::MAX);
                    }
                    state.add(number, *offset_bytes, size(data.len()), *fua && done);
                }
                LogEntry::Discard { offset_bytes, len_bytes, fua } => {
                    state.add(number, *offset_bytes, *len_bytes, *fua && done);
                }
                LogEntry::Flush if done => state.flush(0..u64::MAX),
                LogEntry::FlushWithin { begin_bytes, end_bytes } if done => {
                    state.flush(begin_bytes / BLOCK_BYTES..end_bytes.div_ceil(BLOCK_BYTES));
                }
                LogEntry::Flush | LogEntry::FlushWithin { .. } | LogEntry::Mark(_) => {}
            }
        }
        state.blocks
    }
}

#[derive(Debug, Default)]
struct State {
    blocks: BTreeMap<u64, BlockPieces>,
    dirty: BTreeSet<u64>,
    writes: u64,
}

impl State {
    fn add(&mut self, entry: usize, offset_bytes: u64, len_bytes: u64, durable: bool) {
        let end = offset_bytes + len_bytes;
        for number in offset_bytes / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES) {
            let (begin, whole_end) = (number * BLOCK_BYTES, (number + 1) * BLOCK_BYTES);
            let whole = offset_bytes <= begin && whole_end <= end;
            let pieces = self.blocks.entry(number).or_default();
            pieces.0.push(Piece { entry, order: self.writes, durable });
            if durable && whole {
                pieces.forget_all_but_last();
            }
            if !durable {
                self.writes += 1;
                self.dirty.insert(number);
            }
        }
    }

    /// What was written to these blocks is durable.
    fn flush(&mut self, covered: Range<u64>) {
        let flushed: Vec<u64> = self.dirty.range(covered).copied().collect();
        for number in flushed {
            self.dirty.remove(&number);
            if let Some(pieces) = self.blocks.get_mut(&number) {
                pieces.0.iter_mut().for_each(|piece| piece.durable = true);
            }
        }
        // Where nothing of the past can be lost, what is volatile is counted from here.
        if self.dirty.is_empty() {
            self.writes = 0;
        }
    }
}

/// A write to a block: which entry, and whether a cut can take it.
#[derive(Debug, Clone, Copy)]
struct Piece {
    entry: usize,
    /// Among the volatile writes, in order of submission.
    order: u64,
    durable: bool,
}

/// All writes to a block that matter, in order of submission.
#[derive(Debug, Default)]
pub(super) struct BlockPieces(Vec<Piece>);

impl BlockPieces {
    fn forget_all_but_last(&mut self) {
        let last = self.0.len() - 1;
        self.0.drain(..last);
    }

    pub fn volatile(&self) -> usize {
        self.0.iter().filter(|piece| !piece.durable).count()
    }

    /// The number that would be the order of a volatile write behind those of this block.
    pub fn volatile_end(&self) -> u64 {
        let volatile = self.0.iter().filter(|piece| !piece.durable);
        volatile.map(|piece| piece.order + 1).max().unwrap_or(0)
    }

    /// Volatile writes among the first `writes` of the whole device.
    pub fn volatile_before(&self, writes: u64) -> usize {
        self.0.iter().filter(|piece| !piece.durable && piece.order < writes).count()
    }

    /// The block `number` with, in each sector, the first so many volatile writes, and every durable one.
    pub fn materialise(&self, number: u64, entries: &[LogEntry], kept: &[usize; SECTORS_PER_BLOCK]) -> Patch {
        let mut patch = Patch::default();
        for (sector, kept) in kept.iter().enumerate() {
            if let Some((_, contents)) = self.newest(number, sector, entries, *kept) {
                patch.set(sector, contents);
            }
        }
        patch
    }

    /// A number for which entry each sector of block `number` is then from; 0 where all are those that the log began with.
    pub fn fingerprint(&self, number: u64, entries: &[LogEntry], kept: &[usize; SECTORS_PER_BLOCK]) -> u64 {
        let newest: [Option<usize>; SECTORS_PER_BLOCK] = std::array::from_fn(|sector| {
            self.newest(number, sector, entries, kept[sector]).map(|(entry, _)| entry)
        });
        if newest == [None; SECTORS_PER_BLOCK] {
            return 0;
        }
        let mut hasher = DefaultHasher::new();
        (number, newest).hash(&mut hasher);
        hasher.finish()
    }

    /// The entry that a sector is from, and what it puts there.
    fn newest<'log>(
        &self,
        number: u64,
        sector: usize,
        entries: &'log [LogEntry],
        kept: usize,
    ) -> Option<(usize, Option<&'log [u8]>)> {
        let (mut volatile, mut newest) = (0, None);
        for piece in &self.0 {
            volatile += usize::from(!piece.durable);
            if piece.durable || volatile <= kept {
                let contents = covering(&entries[piece.entry], number, sector);
                newest = contents.map(|contents| (piece.entry, contents)).or(newest);
            }
        }
        newest
    }
}

/// What `entry` puts into a sector of block `number`: bytes, or zeros (`Some(None)`); nothing if it does not reach there.
fn covering(entry: &LogEntry, number: u64, sector: usize) -> Option<Option<&[u8]>> {
    let at = number * BLOCK_BYTES + size(sector) * SECTOR_BYTES;
    match entry {
        LogEntry::Write { offset_bytes, data, .. } => {
            let begin = index(at.checked_sub(*offset_bytes)?);
            data.get(begin..begin + index(SECTOR_BYTES)).map(Some)
        }
        LogEntry::Discard { offset_bytes, len_bytes, .. } => {
            (*offset_bytes <= at && at < offset_bytes + len_bytes).then_some(None)
        }
        LogEntry::Flush | LogEntry::FlushWithin { .. } | LogEntry::Mark(_) => None,
    }
}
