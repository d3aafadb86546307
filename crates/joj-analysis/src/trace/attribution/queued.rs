//! Runs that were handed over and wait for their request to be issued.

use std::collections::BTreeMap;

use crate::trace::attribution::request::{BlockRun, Request};
use crate::trace::event::{DeviceNumber, Operation, SECTOR_BYTES};

/// Where a run waits: by disk, what it does, and where, then by age.
type Key = (DeviceNumber, Operation, u64, u64);

/// Runs on their way to the driver.
#[derive(Debug, Default)]
pub struct Queued {
    waiting: BTreeMap<Key, BlockRun>,
    arrived: u64,
    /// The longest run that ever waited, in sectors: how far in front of a request its first run may begin.
    longest: u64,
}

impl Queued {
    /// Keeps a run until its request is issued.
    pub fn push(&mut self, disk: DeviceNumber, operation: Operation, run: BlockRun) {
        self.longest = self.longest.max(run.bytes.div_ceil(SECTOR_BYTES));
        self.waiting.insert((disk, operation, run.sector, self.arrived), run);
        self.arrived += 1;
    }

    /// The runs of a request, in order of sectors, each cut to it. What is left of a run that the request does not hold waits on.
    /// Where two waiting runs hold the same sectors, the older one goes first.
    pub fn take(&mut self, disk: DeviceNumber, operation: Operation, first: u64, end: u64) -> Vec<BlockRun> {
        let from = (disk, operation, first.saturating_sub(self.longest), 0);
        let candidates: Vec<Key> = self
            .waiting
            .range(from..(disk, operation, end, 0))
            .filter(|(_, run)| end_of(run) > first)
            .map(|(key, _)| *key)
            .collect();
        let mut taken = Vec::with_capacity(candidates.len());
        let mut covered = first;
        for key in candidates {
            let Some(run) = self.waiting.get(&key).copied() else { continue };
            if end_of(&run) <= covered || covered >= end {
                continue;
            }
            self.waiting.remove(&key);
            let begin = run.sector.max(covered);
            if run.sector < begin && run.sector < first {
                self.put_back(key, cut(&run, run.sector, begin));
            }
            let stop = end_of(&run).min(end);
            if stop < end_of(&run) {
                self.put_back(key, cut(&run, stop, end_of(&run)));
            }
            taken.push(cut(&run, begin, stop));
            covered = stop;
        }
        taken
    }

    fn put_back(&mut self, (disk, operation, _, age): Key, run: BlockRun) {
        self.waiting.insert((disk, operation, run.sector, age), run);
    }

    /// Everything that was handed over before `before_ns`, or all.
    pub fn take_older(&mut self, before_ns: u64) -> Vec<(DeviceNumber, Operation, BlockRun)> {
        let keys: Vec<Key> =
            self.waiting.iter().filter(|(_, run)| run.queued_ns < before_ns).map(|(key, _)| *key).collect();
        keys.iter().filter_map(|key| Some((key.0, key.1, self.waiting.remove(key)?))).collect()
    }
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
