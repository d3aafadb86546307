//! A persistent write buffer in front of a device: writes end in it, and leave it for the device in the background.
//!
//!   write -> buffer -> done            (waits for room where the buffer is full)
//!            buffer -> device behind   (the oldest blocks, with held ones next to them)
//!   read  -> buffer for what it holds, device behind for the rest
//!
//! Invariants: 1. a write is durable when it is done. 2. a block leaves the buffer only when the device behind has it
//! durably. 3. blocks held and on their way never need more room than the buffer has. What is read from the buffer to be
//! written behind takes no time of the buffer's.

use std::collections::{BTreeMap, VecDeque};

use crate::assembly::WriteBuffer;
use crate::assembly::timing::AssembledModel;
use crate::model::{Completion, Detail, Model};
use crate::number::{index, size};
use crate::request::{BLOCK_BYTES, Request, RequestKind, SECTOR_BYTES};

/// Blocks that leave the buffer as one request of the device behind: 128 KiB.
const RUN_BLOCKS_MAX: u64 = 32;
/// A bit for each sector of a block.
const WHOLE: u8 = u8::MAX;

/// The timing state of the buffer and the device behind it.
#[derive(Debug)]
pub struct BufferedModel {
    buffer: Model,
    /// Where the next write goes in the buffer, which is a ring.
    cursor: u64,
    behind: Box<AssembledModel>,
    keeping: Keeping,
    /// Runs that may be under way at once.
    runs_max: usize,
    blocks_max: u64,
    held: BTreeMap<u64, HeldBlock>,
    /// Held blocks in order of arrival.
    arrivals: BTreeMap<u64, u64>,
    arrived: u64,
    under_way: VecDeque<Run>,
    /// Latest submission to the buffer, and to the device behind.
    buffer_ns: u64,
    behind_ns: u64,
}

/// How the device behind is made to keep what it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keeping {
    /// It has no volatile cache.
    Writes,
    /// FUA writes.
    FuaWrites,
    /// A flush.
    Flush,
}

/// A block that only the buffer has.
#[derive(Debug, Clone, Copy)]
struct HeldBlock {
    sectors: u8,
    arrival: u64,
    /// When its first write was in the buffer.
    since_ns: u64,
}

/// Blocks on their way to the device behind.
#[derive(Debug)]
struct Run {
    first: u64,
    sectors: Vec<u8>,
    end_ns: u64,
}

impl BufferedModel {
    /// # Panics
    /// When `capacity_bytes` is no multiple of 4096, or is zero.
    pub(super) fn new(assembly: &WriteBuffer, capacity_bytes: u64) -> Self {
        let behind = &assembly.behind;
        let keeping = match (behind.has_volatile_cache(), behind.offers_fua()) {
            (false, _) => Keeping::Writes,
            (true, true) => Keeping::FuaWrites,
            (true, false) => Keeping::Flush,
        };
        let buffer_bytes = assembly.buffer.capacity_bytes;
        BufferedModel {
            buffer: Model::new(&assembly.buffer, buffer_bytes),
            cursor: 0,
            behind: Box::new(AssembledModel::new(behind, capacity_bytes)),
            keeping,
            runs_max: index(behind.queue_depth()),
            blocks_max: buffer_bytes / BLOCK_BYTES,
            held: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            arrived: 0,
            under_way: VecDeque::new(),
            buffer_ns: 0,
            behind_ns: 0,
        }
    }

    pub(super) const fn capacity_bytes(&self) -> u64 {
        self.behind.capacity_bytes()
    }

    pub(super) fn submit(&mut self, at_ns: u64, request: Request) -> Completion {
        assert_eq!(request.refusal(self.capacity_bytes()), None, "refuse it before it comes here");
        self.advance(at_ns);
        match request.kind {
            RequestKind::Write { .. } => self.write(at_ns, request),
            RequestKind::Read => self.read(at_ns, request),
            RequestKind::Flush => self.ask_buffer(at_ns, request),
            RequestKind::Trim | RequestKind::WriteZeroes { .. } => {
                self.forget(request);
                // The buffer notes it; the device behind does it in its turn.
                self.ask_behind(at_ns, request);
                self.ask_buffer(at_ns, Request { offset_bytes: 0, len_bytes: BLOCK_BYTES, ..request })
            }
        }
    }

    /// A quarter of the buffer at a time: what is written finds room when all before it has left.
    fn write(&mut self, at_ns: u64, request: Request) -> Completion {
        let piece_bytes = self.blocks_max / 4 * BLOCK_BYTES;
        let end = request.offset_bytes + request.len_bytes;
        let (mut offset_bytes, mut now_ns) = (request.offset_bytes, at_ns);
        let (mut start_ns, mut detail) = (None, Detail::default());
        while offset_bytes < end {
            // Whole blocks, so that no block is in two pieces.
            let piece_end = ((offset_bytes + piece_bytes) / BLOCK_BYTES * BLOCK_BYTES).min(end);
            let blocks = offset_bytes / BLOCK_BYTES..piece_end.div_ceil(BLOCK_BYTES);
            let room_ns = self.room_for(blocks.clone(), now_ns);
            detail.busy_ns += room_ns - now_ns;
            let done = self.append_to_buffer(room_ns, piece_end - offset_bytes);
            for block in blocks {
                self.hold(block, sectors_within(block, offset_bytes, piece_end), done.done_ns);
            }
            detail = sum(detail, done.detail);
            start_ns.get_or_insert(done.start_ns);
            (now_ns, offset_bytes) = (done.done_ns, piece_end);
        }
        Completion { start_ns: start_ns.unwrap_or(at_ns), done_ns: now_ns, detail }
    }

    /// When there is room for `blocks`, some of which may be held.
    fn room_for(&mut self, blocks: std::ops::Range<u64>, at_ns: u64) -> u64 {
        let mut now_ns = at_ns;
        loop {
            self.advance(now_ns);
            let new = (blocks.end - blocks.start) - size(self.held.range(blocks.clone()).count());
            let leaving: usize = self.under_way.iter().map(|run| run.sectors.len()).sum();
            if size(self.held.len()) + size(leaving) + new <= self.blocks_max {
                return now_ns;
            }
            let ends = self.under_way.iter().map(|run| run.end_ns);
            let next_ns = ends.chain(self.next_run_ns()).min();
            let Some(next_ns) = next_ns else { unreachable!("full, and nothing leaves") };
            now_ns = now_ns.max(next_ns);
        }
    }

    fn hold(&mut self, block: u64, sectors: u8, at_ns: u64) {
        if let Some(held) = self.held.get_mut(&block) {
            held.sectors |= sectors;
            return;
        }
        self.arrived += 1;
        self.held.insert(block, HeldBlock { sectors, arrival: self.arrived, since_ns: at_ns });
        self.arrivals.insert(self.arrived, block);
    }

    /// What happens in the background until `until_ns`.
    fn advance(&mut self, until_ns: u64) {
        loop {
            let next_ns = self.next_run_ns().filter(|next_ns| *next_ns <= until_ns);
            let now_ns = next_ns.unwrap_or(until_ns);
            self.under_way.retain(|run| run.end_ns > now_ns);
            if next_ns.is_none() {
                return;
            }
            self.begin_run(now_ns);
        }
    }

    /// When the next blocks leave, if any are held.
    fn next_run_ns(&self) -> Option<u64> {
        let (_, oldest) = self.arrivals.first_key_value()?;
        let since_ns = self.held[oldest].since_ns.max(self.behind_ns);
        let mut ends: Vec<u64> = self.under_way.iter().map(|run| run.end_ns).collect();
        ends.sort_unstable();
        let waits_for = ends.len().checked_sub(self.runs_max).map_or(0, |at| ends[at]);
        Some(since_ns.max(waits_for))
    }

    /// The oldest block leaves, with held ones next to it.
    fn begin_run(&mut self, at_ns: u64) {
        let Some((_, oldest)) = self.arrivals.first_key_value().map(|(arrival, block)| (*arrival, *block))
        else {
            return;
        };
        let is_here = |block: u64| self.held.get(&block).is_some_and(|held| held.since_ns <= at_ns);
        let (mut first, mut end) = (oldest, oldest + 1);
        while first > 0 && end - first < RUN_BLOCKS_MAX && is_here(first - 1) {
            first -= 1;
        }
        while end - first < RUN_BLOCKS_MAX && is_here(end) {
            end += 1;
        }
        let sectors: Vec<u8> = (first..end).filter_map(|block| self.take(block)).collect();
        let mut end_ns = at_ns;
        for (offset_bytes, len_bytes) in spans(first, &sectors) {
            let kind = RequestKind::Write { fua: self.keeping == Keeping::FuaWrites };
            let done = self.ask_behind(at_ns, Request { kind, offset_bytes, len_bytes });
            end_ns = end_ns.max(done.done_ns);
        }
        if self.keeping == Keeping::Flush {
            end_ns = end_ns.max(self.ask_behind(at_ns, Request::flush()).done_ns);
        }
        self.under_way.push_back(Run { first, sectors, end_ns });
    }

    /// A block that is held no more; its sectors.
    fn take(&mut self, block: u64) -> Option<u8> {
        let held = self.held.remove(&block)?;
        self.arrivals.remove(&held.arrival);
        Some(held.sectors)
    }

    /// Its parts are read at the same time: what the buffer has there, the rest behind.
    fn read(&mut self, at_ns: u64, request: Request) -> Completion {
        let end = request.offset_bytes + request.len_bytes;
        let (mut offset_bytes, mut last): (u64, Option<Completion>) = (request.offset_bytes, None);
        let mut start_ns = u64::MAX;
        while offset_bytes < end {
            let in_buffer = self.has(offset_bytes, end);
            let mut part_end = offset_bytes;
            while part_end < end && self.has(part_end, end) == in_buffer {
                part_end = ((part_end / BLOCK_BYTES + 1) * BLOCK_BYTES).min(end);
            }
            let part = Request::read(offset_bytes, part_end - offset_bytes);
            let done = if in_buffer {
                // Where it lies in the buffer makes no difference.
                self.ask_buffer(at_ns, Request::read(0, part.len_bytes.min(self.blocks_max * BLOCK_BYTES)))
            } else {
                self.ask_behind(at_ns, part)
            };
            start_ns = start_ns.min(done.start_ns);
            if last.is_none_or(|last| done.done_ns > last.done_ns) {
                last = Some(done);
            }
            offset_bytes = part_end;
        }
        let Some(last) = last else { unreachable!("a read of nothing") };
        Completion { start_ns, ..last }
    }

    /// Whether the buffer has all of the block at `offset_bytes` that lies before `end`.
    fn has(&self, offset_bytes: u64, end: u64) -> bool {
        let block = offset_bytes / BLOCK_BYTES;
        let wanted = sectors_within(block, offset_bytes, end);
        let leaving = self
            .under_way
            .iter()
            .filter_map(|run| run.sectors.get(index(block.checked_sub(run.first)?)).copied());
        let held = self.held.get(&block).map(|held| held.sectors);
        wanted & !leaving.chain(held).fold(0, |all, sectors| all | sectors) == 0
    }

    /// These bytes are written nowhere any more.
    fn forget(&mut self, request: Request) {
        let end = request.offset_bytes + request.len_bytes;
        let blocks = request.offset_bytes / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES);
        let touched: Vec<u64> = self.held.range(blocks).map(|(block, _)| *block).collect();
        for block in touched {
            let gone = sectors_within(block, request.offset_bytes, end);
            let Some(held) = self.held.get_mut(&block) else { continue };
            held.sectors &= !gone;
            if held.sectors == 0 {
                self.take(block);
            }
        }
    }

    /// Writes `len_bytes` at the cursor.
    fn append_to_buffer(&mut self, at_ns: u64, len_bytes: u64) -> Completion {
        if self.cursor + len_bytes > self.buffer.capacity_bytes() {
            self.cursor = 0;
        }
        let offset_bytes = self.cursor;
        self.cursor += len_bytes.div_ceil(BLOCK_BYTES) * BLOCK_BYTES;
        self.ask_buffer(at_ns, Request::write(offset_bytes, len_bytes))
    }

    fn ask_buffer(&mut self, at_ns: u64, request: Request) -> Completion {
        self.buffer_ns = self.buffer_ns.max(at_ns);
        waited(at_ns, self.buffer_ns, self.buffer.submit(self.buffer_ns, request))
    }

    fn ask_behind(&mut self, at_ns: u64, request: Request) -> Completion {
        self.behind_ns = self.behind_ns.max(at_ns);
        waited(at_ns, self.behind_ns, self.behind.submit(self.behind_ns, request))
    }
}

/// What came at `at_ns`, and was submitted only behind an earlier request that had to wait for room.
const fn waited(at_ns: u64, submitted_ns: u64, done: Completion) -> Completion {
    let mut done = done;
    done.detail.queue_ns += submitted_ns - at_ns;
    done
}

const fn sum(one: Detail, other: Detail) -> Detail {
    Detail {
        queue_ns: one.queue_ns + other.queue_ns,
        command_ns: one.command_ns + other.command_ns,
        transfer_ns: one.transfer_ns + other.transfer_ns,
        read_ns: one.read_ns + other.read_ns,
        busy_ns: one.busy_ns + other.busy_ns,
        program_ns: one.program_ns + other.program_ns,
        merge_ns: one.merge_ns + other.merge_ns,
        map_ns: one.map_ns + other.map_ns,
        flush_ns: one.flush_ns + other.flush_ns,
    }
}

/// The sectors of `block` between two places of the device.
fn sectors_within(block: u64, offset_bytes: u64, end: u64) -> u8 {
    let begin = block * BLOCK_BYTES;
    let first = offset_bytes.saturating_sub(begin) / SECTOR_BYTES;
    let last = (end - begin).min(BLOCK_BYTES) / SECTOR_BYTES;
    (first..last).fold(0, |sectors, sector| sectors | 1 << sector)
}

/// Byte ranges (offset, length) of the sectors of the blocks from `first` on.
fn spans(first: u64, sectors: &[u8]) -> Vec<(u64, u64)> {
    let mut found: Vec<(u64, u64)> = Vec::new();
    let mut add = |offset_bytes: u64, len_bytes: u64| match found.last_mut() {
        Some((begin, len)) if *begin + *len == offset_bytes => *len += len_bytes,
        _ => found.push((offset_bytes, len_bytes)),
    };
    for (place, sectors) in sectors.iter().enumerate() {
        let begin = (first + size(place)) * BLOCK_BYTES;
        if *sectors == WHOLE {
            add(begin, BLOCK_BYTES);
            continue;
        }
        for sector in (0..8).filter(|sector| sectors & 1 << sector != 0) {
            add(begin + sector * SECTOR_BYTES, SECTOR_BYTES);
        }
    }
    found
}
