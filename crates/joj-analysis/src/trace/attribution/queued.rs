//! Runs that were handed over and wait for their request to be issued.

use std::collections::{BTreeMap, HashSet};

use crate::trace::attribution::request::{BlockRun, Request};
use crate::trace::event::{DeviceNumber, Operation, SECTOR_BYTES};

/// Where a run waits: by disk, what it does, and where, then by age.
type QueuedKey = (DeviceNumber, Operation, u64, u64);

/// Runs on their way to the driver.
#[derive(Debug)]
pub struct Queued {
    waiting: BTreeMap<QueuedKey, BlockRun>,
    arrived: u64,
    put_back: u64,
    /// The longest run that ever waited, in sectors: how far in front of a request its first run may begin.
    longest: u64,
}

/// The age of the first run that arrives: what the driver gave back is older.
const FIRST_AGE: u64 = 1 << 63;

impl Default for Queued {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), arrived: FIRST_AGE, put_back: 0, longest: 0 }
    }
}

impl Queued {
    /// Keeps a run until its request is issued.
    pub fn push(&mut self, disk: DeviceNumber, operation: Operation, run: BlockRun) {
        self.longest = self.longest.max(run.bytes.div_ceil(SECTOR_BYTES));
        self.waiting.insert((disk, operation, run.sector, self.arrived), run);
        self.arrived += 1;
    }

    /// The same for a run of a request that was issued before, and goes in front of all that never was.
    pub fn push_again(&mut self, disk: DeviceNumber, operation: Operation, run: BlockRun) {
        self.longest = self.longest.max(run.bytes.div_ceil(SECTOR_BYTES));
        self.waiting.insert((disk, operation, run.sector, self.put_back), run);
        self.put_back += 1;
    }

    /// The runs of a request, in order of sectors, each cut to it. What is left of a run that the request does not hold waits on.
    ///
    /// Where waiting runs overlap, several sets of them may be the request. Whole runs come first, then those of which the last is
    /// split off, as the block layer splits from the front, then any; of two that begin at one sector the older.
    pub fn take(&mut self, disk: DeviceNumber, operation: Operation, first: u64, end: u64) -> Vec<BlockRun> {
        let from = (disk, operation, first.saturating_sub(self.longest), 0);
        let candidates: Vec<Candidate> = self
            .waiting
            .range(from..(disk, operation, end, 0))
            .map(|(key, run)| Candidate { key: *key, end: end_of(run) })
            .filter(|candidate| candidate.end > first)
            .collect();
        let overlap = candidates.windows(2).any(|pair| pair[0].end > pair[1].key.2);
        let chosen = if overlap {
            chain(&candidates, first, end, false)
                .or_else(|| chain(&candidates, first, end, true))
                .unwrap_or_else(|| oldest(&candidates, first, end))
        } else {
            candidates
        };
        let mut taken = Vec::with_capacity(chosen.len());
        let mut covered = first;
        for Candidate { key, .. } in chosen {
            let Some(run) = self.waiting.remove(&key) else { continue };
            let (begin, stop) = (run.sector.max(covered), end_of(&run).min(end));
            if run.sector < begin {
                self.wait_on(key, cut(&run, run.sector, begin));
            }
            if stop < end_of(&run) {
                self.wait_on(key, cut(&run, stop, end_of(&run)));
            }
            taken.push(cut(&run, begin, stop));
            covered = stop;
        }
        taken
    }

    fn wait_on(&mut self, (disk, operation, _, age): QueuedKey, run: BlockRun) {
        self.waiting.insert((disk, operation, run.sector, age), run);
    }

    /// Everything that was handed over before `before_ns`, or all.
    pub fn take_older(&mut self, before_ns: u64) -> Vec<(DeviceNumber, Operation, BlockRun)> {
        let keys: Vec<QueuedKey> =
            self.waiting.iter().filter(|(_, run)| run.queued_ns < before_ns).map(|(key, _)| *key).collect();
        keys.iter().filter_map(|key| Some((key.0, key.1, self.waiting.remove(key)?))).collect()
    }
}

/// A waiting run that has sectors of a request.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    key: QueuedKey,
    end: u64,
}

/// Whole runs, one behind the other, from the first sector of a request to its end; the last may go beyond where it may be `split`.
fn chain(candidates: &[Candidate], first: u64, end: u64, split: bool) -> Option<Vec<Candidate>> {
    // From sectors in `leads` the end can be reached. Backwards: what begins behind a run is known when the run's turn comes.
    let mut leads = HashSet::new();
    let mut usable: Vec<Candidate> = Vec::new();
    for candidate in candidates.iter().rev().filter(|candidate| candidate.key.2 >= first) {
        if candidate.end == end || (split && candidate.end > end) || leads.contains(&candidate.end) {
            leads.insert(candidate.key.2);
            usable.push(*candidate);
        }
    }
    let mut found = Vec::new();
    let mut covered = first;
    // In order of sectors, the older first.
    for candidate in usable.into_iter().rev().filter(|_| leads.contains(&first)) {
        if candidate.key.2 == covered && covered < end {
            covered = candidate.end;
            found.push(candidate);
        }
    }
    (covered >= end).then_some(found)
}

/// At each sector that is not covered yet the oldest run that has it.
fn oldest(candidates: &[Candidate], first: u64, end: u64) -> Vec<Candidate> {
    let mut found = Vec::new();
    let mut covered = first;
    let mut next = candidates.iter().peekable();
    let mut here: BTreeMap<u64, Candidate> = BTreeMap::new();
    while covered < end {
        while let Some(candidate) = next.next_if(|candidate| candidate.key.2 <= covered) {
            here.insert(candidate.key.3, *candidate);
        }
        match here.pop_first() {
            Some((_, candidate)) if candidate.end > covered => {
                covered = candidate.end;
                found.push(candidate);
            }
            Some(_) => {}
            None => match next.peek() {
                Some(candidate) => covered = candidate.key.2,
                None => break,
            },
        }
    }
    found
}

fn end_of(run: &BlockRun) -> u64 {
    run.sector.saturating_add(run.bytes.div_ceil(SECTOR_BYTES))
}

/// The part of a run between two sectors.
pub fn cut(run: &BlockRun, first: u64, end: u64) -> BlockRun {
    let skipped = (first - run.sector) * SECTOR_BYTES;
    let bytes = ((end - first) * SECTOR_BYTES).min(run.bytes.saturating_sub(skipped));
    BlockRun { sector: first, bytes, offset: run.offset + skipped, ..*run }
}

/// Cuts a request at a sector. Returns what is behind that.
pub fn cut_off(request: &mut Request, at: u64) -> Request {
    let mut rest = Request { runs: Vec::new(), completed_ns: None, sector: at, ..request.clone() };
    let done = (at - request.sector) * SECTOR_BYTES;
    rest.bytes = request.bytes.saturating_sub(done);
    request.bytes = done;
    for run in std::mem::take(&mut request.runs) {
        if run.sector < at {
            request.runs.push(cut(&run, run.sector, end_of(&run).min(at)));
        }
        if end_of(&run) > at {
            rest.runs.push(cut(&run, run.sector.max(at), end_of(&run)));
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: DeviceNumber = DeviceNumber(1);

    fn run(sector: u64, bytes: u64) -> BlockRun {
        BlockRun { sector, bytes, ..BlockRun::default() }
    }

    fn taken(queued: &mut Queued, first: u64, end: u64) -> Vec<(u64, u64, u64)> {
        let runs = queued.take(DISK, Operation::Write, first, end);
        runs.iter().map(|run| (run.sector, run.bytes / 512, run.offset)).collect()
    }

    #[test]
    fn merged_bios_are_the_runs_of_one_request() {
        let mut queued = Queued::default();
        for (sector, sectors) in [(8, 8), (0, 8), (100, 8)] {
            queued.push(DISK, Operation::Write, run(sector, sectors * 512));
        }
        assert_eq!(taken(&mut queued, 0, 16), [(0, 8, 0), (8, 8, 0)]);
        assert_eq!((queued.waiting.len(), taken(&mut queued, 0, 16)), (1, vec![]));
    }

    #[test]
    fn a_split_bio_gives_its_parts_to_each_request() {
        let mut queued = Queued::default();
        queued.push(DISK, Operation::Write, run(0, 32 * 512));
        assert_eq!(taken(&mut queued, 8, 16), [(8, 8, 8 * 512)]);
        assert_eq!(taken(&mut queued, 16, 32), [(16, 16, 16 * 512)]);
        assert_eq!(taken(&mut queued, 0, 8), [(0, 8, 0)]);
        assert!(queued.waiting.is_empty());
    }

    #[test]
    fn a_sector_that_is_written_twice_is_taken_once_each_time() {
        let mut queued = Queued::default();
        queued.push(DISK, Operation::Write, BlockRun { offset: 1, ..run(0, 4096) });
        queued.push(DISK, Operation::Write, BlockRun { offset: 2, ..run(0, 4096) });
        assert_eq!(taken(&mut queued, 0, 8), [(0, 8, 1)]);
        assert_eq!(taken(&mut queued, 0, 8), [(0, 8, 2)]);
    }

    #[test]
    fn reads_and_writes_and_disks_are_apart() {
        let mut queued = Queued::default();
        queued.push(DISK, Operation::Read, run(0, 4096));
        queued.push(DeviceNumber(2), Operation::Write, run(0, 4096));
        assert_eq!(taken(&mut queued, 0, 8), []);
        assert_eq!(queued.take_older(1).len(), 2);
    }
}
