//! Flushes that were asked for and wait to be issued.
//!
//! The kernel takes PREFLUSH and FUA off a write and issues flushes of its own (block/blk-flush.c). So only what was handed over before
//! a flush shows what it is for. The kernel decides on the next flush when a write waits for one, no flush is under way, and no write
//! that had a flush before it is under way. The flush is for all that wait at that moment, and may be issued later. It stands with the
//! first of them.
//!
//! ```text
//! Before --flush--> Data --written--> After --flush-->        PREFLUSH and FUA, on a disk without FUA
//! ```
//!
//! Between being handed over and reaching the kernel's list of what waits, a flush may miss the one that it seemed to share. Then one is
//! issued that nobody seems to want: it is for the newest of those calls that had their flush and did not return.
//!
//! A disk with several queues has a flush under way for each: then one that was not chosen, or shared one, has the next.

use std::collections::HashMap;

use crate::trace::attribution::request::{BlockRun, Request, SyncId};
use crate::trace::event::{DeviceNumber, RequestFlags, SECTOR_BYTES};

/// What a run that wants flushes waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// A flush before it.
    Before,
    /// Being written; a flush may have to follow.
    Data,
    /// The flush after it.
    After,
}

/// How far the flush is for which a run waits; what the first of them is named for comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FlushState {
    /// It will be issued.
    Chosen,
    /// Nothing is decided.
    Wanted,
    /// It is issued, and stands with another run.
    Shared,
    /// It is issued, and stands with this run.
    Own,
}

/// A run that wants flushes.
#[derive(Debug)]
struct Barrier {
    run: BlockRun,
    stage: Stage,
    flush: FlushState,
    /// Since when it is in its stage.
    since_ns: u64,
    wants_after: bool,
}

impl Barrier {
    fn waits(&self) -> bool {
        self.stage != Stage::Data
    }

    fn is_issued(&self) -> bool {
        self.waits() && self.flush >= FlushState::Shared
    }
}

/// What is wanted of a disk.
#[derive(Debug, Default)]
struct DiskBarriers {
    wanted: Vec<Barrier>,
    /// What had its flushes, for calls that are under way.
    had: Vec<BlockRun>,
    /// A flush is chosen or issued, and not over.
    is_under_way: bool,
    /// When the last one was over.
    flushed_ns: u64,
    /// For whom flushes are that the driver gave back: they are issued again.
    given_back: Vec<BlockRun>,
}

impl DiskBarriers {
    /// True while something that had a flush before it is being written: the kernel decides on no flush.
    fn is_written(&self) -> bool {
        self.wanted.iter().any(|barrier| !barrier.waits())
    }

    /// The next flush is for all that wait, unless something is under way.
    fn choose(&mut self) {
        if !self.is_under_way && !self.is_written() {
            self.choose_all();
        }
    }

    fn choose_all(&mut self) {
        let wants = |barrier: &&mut Barrier| barrier.waits() && barrier.flush == FlushState::Wanted;
        for barrier in self.wanted.iter_mut().filter(wants) {
            barrier.flush = FlushState::Chosen;
            self.is_under_way = true;
        }
    }

    /// The kernel has decided on a flush though something seems to be written. Where others wait, that may have taken five seconds. Else it
    /// is over, and the capture has missed that.
    fn choose_all_the_same(&mut self) {
        self.choose_all();
        if !self.wanted.iter().any(|barrier| barrier.waits() && barrier.flush < FlushState::Own)
            && let Some(over) = self.wanted.iter_mut().find(|one| !one.waits() && one.wants_after)
        {
            (over.stage, over.flush) = (Stage::After, FlushState::Chosen);
        }
    }
}

/// Flushes to come, by disk.
#[derive(Debug, Default)]
pub struct Barriers {
    disks: HashMap<DeviceNumber, DiskBarriers>,
}

/// So many are remembered for a disk: beyond that flushes were lost, or are swallowed by a device without a cache.
const KEPT_MAX: usize = 64;

impl Barriers {
    /// A run was handed over that wants a flush before it, or after it where the device has no FUA.
    pub fn want(&mut self, disk: DeviceNumber, run: BlockRun, device_has_fua: bool) {
        // Without bytes there is nothing that a flush could follow.
        let wants_after = run.bytes > 0 && run.intended.has(RequestFlags::FUA) && !device_has_fua;
        let stage = match (run.intended.has(RequestFlags::PREFLUSH), wants_after) {
            (true, _) => Stage::Before,
            (false, true) => Stage::Data,
            (false, false) => return,
        };
        let disk = self.disks.entry(disk).or_default();
        if disk.wanted.len() >= KEPT_MAX {
            disk.wanted.remove(0);
        }
        let (flush, since_ns) = (FlushState::Wanted, run.queued_ns);
        disk.wanted.push(Barrier { run, stage, flush, since_ns, wants_after });
        disk.choose();
    }

    /// A flush was issued: for whom. One that nobody is known to want has no run.
    pub fn issued(&mut self, disk: DeviceNumber) -> Option<BlockRun> {
        let disk = self.disks.entry(disk).or_default();
        disk.is_under_way = true;
        if let Some(run) = disk.given_back.pop() {
            return Some(run);
        }
        let is_decided = disk.wanted.iter().any(|barrier| barrier.flush == FlushState::Chosen);
        if !is_decided && disk.is_written() {
            disk.choose_all_the_same();
        }
        let waiting = disk.wanted.iter_mut().filter(|barrier| barrier.waits());
        let named = waiting.min_by_key(|barrier| (barrier.flush, barrier.since_ns));
        let named = named.filter(|barrier| barrier.flush != FlushState::Own)?;
        named.flush = FlushState::Own;
        let run = BlockRun { bytes: 0, ..named.run };
        for barrier in disk.wanted.iter_mut().filter(|barrier| barrier.flush == FlushState::Chosen) {
            barrier.flush = FlushState::Shared;
        }
        Some(run)
    }

    /// The driver gave a flush back, which was for this run.
    pub fn give_back(&mut self, disk: DeviceNumber, run: BlockRun) {
        self.disks.entry(disk).or_default().given_back.push(run);
    }

    /// Several share the flush that is over now. Where the call with which it stood returned before, it was for the first of them whose
    /// call did not.
    pub fn also_for(&self, disk: DeviceNumber, is_under_way: impl Fn(SyncId) -> bool) -> Option<BlockRun> {
        let waiting = self.disks.get(&disk)?.wanted.iter().filter(|barrier| barrier.is_issued());
        let mut waiting = waiting.filter(|barrier| barrier.run.cause.is_some_and(&is_under_way));
        waiting.next().map(|barrier| BlockRun { bytes: 0, ..barrier.run })
    }

    /// A flush was issued that nobody is known to want: the newest call that had one and did not return, rather by its own thread.
    pub fn missed(&self, disk: DeviceNumber) -> Option<BlockRun> {
        let had = &self.disks.get(&disk)?.had;
        let newest = had.iter().max_by_key(|run| (run.bytes == 0, run.queued_ns));
        newest.map(|run| BlockRun { bytes: 0, ..*run })
    }

    /// A flush is over.
    pub fn flushed(&mut self, disk: DeviceNumber, time_ns: u64) {
        let Some(disk) = self.disks.get_mut(&disk) else { return };
        (disk.is_under_way, disk.flushed_ns) = (false, time_ns);
        disk.wanted.retain_mut(|barrier| {
            let goes_on = barrier.stage == Stage::Before && barrier.run.bytes > 0;
            if !barrier.is_issued() {
                return true;
            }
            barrier.stage = Stage::Data;
            if !goes_on && barrier.run.cause.is_some() {
                if disk.had.len() >= KEPT_MAX {
                    disk.had.remove(0);
                }
                disk.had.push(barrier.run);
            }
            goes_on
        });
        disk.choose();
    }

    /// A request was written: what wanted a flush after it waits for that one from now on.
    pub fn written(&mut self, disk: DeviceNumber, request: &Request) {
        let Some(disk) = self.disks.get_mut(&disk).filter(|disk| !disk.wanted.is_empty()) else { return };
        let end = request.sector + request.bytes.div_ceil(SECTOR_BYTES);
        let flushed_ns = disk.flushed_ns;
        disk.wanted.retain_mut(|barrier| {
            let is_of = barrier.run.bytes > 0 && (request.sector..end).contains(&barrier.run.sector);
            // Without any flush since it was wanted: the device has no cache. One that was issued is over, though nobody told.
            let was_flushed =
                barrier.stage == Stage::Data || barrier.is_issued() || flushed_ns > barrier.since_ns;
            if is_of {
                (barrier.stage, barrier.flush) = (Stage::After, FlushState::Wanted);
                barrier.since_ns = request.completed_ns.unwrap_or(barrier.since_ns);
            }
            !is_of || (was_flushed && barrier.wants_after)
        });
        disk.choose();
    }

    /// A sync call is over: nothing that its thread wanted can still come. What a kernel thread wants was for another call, then:
    /// `given_again` says for which.
    pub fn over(&mut self, sync: SyncId, given_again: impl Fn(DeviceNumber, &BlockRun) -> Option<BlockRun>) {
        for (disk, DiskBarriers { wanted, had, .. }) in &mut self.disks {
            had.retain(|run| run.cause != Some(sync));
            wanted.retain_mut(|barrier| {
                if barrier.run.cause == Some(sync) {
                    let Some(run) = given_again(*disk, &barrier.run) else { return false };
                    barrier.run = run;
                }
                true
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: DeviceNumber = DeviceNumber(1);
    const BOTH: RequestFlags = RequestFlags(RequestFlags::PREFLUSH.0 | RequestFlags::FUA.0);

    fn run(bytes: u64, queued_ns: u64, cause: u64) -> BlockRun {
        let intended = if bytes > 0 { BOTH } else { RequestFlags::PREFLUSH };
        BlockRun {
            bytes,
            intended,
            queued_ns,
            cause: Some(SyncId(cause)),
            sector: 8 * cause,
            ..BlockRun::default()
        }
    }

    fn written(cause: u64) -> Request {
        Request { sector: 8 * cause, bytes: 4096, completed_ns: Some(90), ..Request::default() }
    }

    /// The call with which the next flush stands; it is over at once.
    fn flush(barriers: &mut Barriers, time_ns: u64) -> Option<u64> {
        let cause = barriers.issued(DISK).and_then(|run| run.cause).map(|cause| cause.0);
        barriers.flushed(DISK, time_ns);
        cause
    }

    #[test]
    fn a_commit_block_has_a_flush_on_each_side_where_the_device_has_no_fua() {
        for (fua, expected) in [(false, Some(1)), (true, None)] {
            let mut barriers = Barriers::default();
            barriers.want(DISK, run(4096, 1, 1), fua);
            assert_eq!(flush(&mut barriers, 2), Some(1));
            // The second one comes when it is written.
            barriers.written(DISK, &written(1));
            assert_eq!([flush(&mut barriers, 91), flush(&mut barriers, 92)], [expected, None]);
        }
    }

    #[test]
    fn a_flush_while_something_seems_to_be_written_is_for_those_who_wait_or_behind_that() {
        for others in [0, 2] {
            let mut barriers = Barriers::default();
            barriers.want(DISK, run(4096, 1, 1), false);
            assert_eq!(flush(&mut barriers, 2), Some(1));
            (0..others).for_each(|other| barriers.want(DISK, run(0, 3 + other, 3 + other), false));
            let expected = if others == 0 { Some(1) } else { Some(3) };
            assert_eq!(
                [flush(&mut barriers, 9), flush(&mut barriers, 10)],
                [expected, (others > 0).then_some(1)]
            );
        }
    }

    #[test]
    fn who_has_a_flush_that_is_under_way_is_not_chosen_for_the_next() {
        let mut barriers = Barriers::default();
        barriers.want(DISK, run(4096, 1, 1), false);
        assert_eq!(flush(&mut barriers, 2), Some(1));
        // While the first one is being written two queues get a flush each.
        (2..4).for_each(|cause| barriers.want(DISK, run(0, cause, cause), false));
        let issued = |barriers: &mut Barriers| barriers.issued(DISK).and_then(|run| run.cause);
        let both = [issued(&mut barriers), issued(&mut barriers)];
        assert_eq!(both, [Some(SyncId(2)), Some(SyncId(3))]);
    }

    #[test]
    fn what_the_driver_gave_back_is_for_the_same_again() {
        let mut barriers = Barriers::default();
        barriers.want(DISK, run(0, 1, 1), false);
        let own = barriers.issued(DISK).expect("it was wanted");
        barriers.want(DISK, run(0, 2, 2), false);
        barriers.give_back(DISK, own);
        assert_eq!([flush(&mut barriers, 5), flush(&mut barriers, 6)], [Some(1), Some(2)]);
    }

    #[test]
    fn a_flush_of_a_call_that_returned_before_was_for_another_that_had_it() {
        let mut barriers = Barriers::default();
        for cause in [1, 2, 3] {
            barriers.want(DISK, run(0, cause, cause), false);
        }
        assert_eq!(flush(&mut barriers, 5), Some(1));
        assert_eq!(barriers.issued(DISK).and_then(|run| run.cause), Some(SyncId(2)));
        let also_for =
            |under_way: u64| barriers.also_for(DISK, |sync| sync.0 == under_way).and_then(|run| run.cause);
        assert_eq!([also_for(3), also_for(1)], [Some(SyncId(3)), None]);
    }

    #[test]
    fn the_next_flush_is_for_all_that_wait_when_one_is_over() {
        let mut barriers = Barriers::default();
        barriers.want(DISK, run(0, 1, 1), false);
        // Came before the first one is issued, but after it was decided on.
        barriers.want(DISK, run(4096, 2, 2), false);
        barriers.want(DISK, run(0, 3, 3), false);
        assert_eq!(flush(&mut barriers, 5), Some(1));
        // Decided on for 2 and 3.
        barriers.want(DISK, run(0, 6, 4), false);
        assert_eq!(flush(&mut barriers, 10), Some(2));
        // While 2 is written nothing is decided on: the next one is for 4, and behind 2.
        barriers.written(DISK, &written(2));
        assert_eq!([flush(&mut barriers, 91), flush(&mut barriers, 92)], [Some(4), None]);
    }

    #[test]
    fn a_flush_that_nobody_seems_to_want_is_for_a_call_that_did_not_return() {
        let mut barriers = Barriers::default();
        for (time_ns, cause) in [(1, 1), (2, 2), (3, 3)] {
            barriers.want(DISK, run(0, time_ns, cause), false);
        }
        // The third one was not in the kernel's list yet.
        assert_eq!([flush(&mut barriers, 5), flush(&mut barriers, 6)], [Some(1), Some(2)]);
        barriers.over(SyncId(1), |_, _| None);
        let missed = |barriers: &mut Barriers| {
            assert_eq!(flush(barriers, 7), None);
            barriers.missed(DISK).and_then(|run| run.cause)
        };
        assert_eq!(missed(&mut barriers), Some(SyncId(3)));
        // Rather one whose own thread asked than one for which a kernel thread did, however late.
        barriers.want(DISK, run(4096, 4, 4), false);
        barriers.written(DISK, &written(4));
        assert_eq!(flush(&mut barriers, 5), Some(4));
        assert_eq!(missed(&mut barriers), Some(SyncId(3)));
        barriers.over(SyncId(4), |_, _| None);
        barriers.over(SyncId(3), |_, _| None);
        barriers.over(SyncId(2), |_, _| None);
        assert_eq!(missed(&mut barriers), None);
    }

    #[test]
    fn flushes_of_several_queues_have_each_their_own_call() {
        let mut barriers = Barriers::default();
        for (time_ns, cause) in [(1, 1), (2, 2)] {
            barriers.want(DISK, run(0, time_ns, cause), false);
        }
        let issued = |barriers: &mut Barriers| barriers.issued(DISK).and_then(|run| run.cause);
        let both = [issued(&mut barriers), issued(&mut barriers), issued(&mut barriers)];
        assert_eq!(both, [Some(SyncId(1)), Some(SyncId(2)), None]);
    }

    #[test]
    fn what_a_device_without_a_cache_was_asked_for_is_forgotten_when_it_is_written() {
        let mut barriers = Barriers::default();
        barriers.want(DISK, run(4096, 1, 1), false);
        barriers.written(DISK, &written(1));
        assert_eq!(flush(&mut barriers, 95), None);
    }

    #[test]
    fn what_a_call_wanted_ends_with_it() {
        let mut barriers = Barriers::default();
        barriers.want(DISK, run(0, 1, 1), false);
        barriers.want(DISK, run(0, 2, 2), false);
        barriers.over(SyncId(1), |_, _| None);
        assert_eq!([flush(&mut barriers, 5), flush(&mut barriers, 6)], [Some(2), None]);
    }

    #[test]
    fn what_a_kernel_thread_wanted_for_a_call_that_is_over_is_for_another() {
        let mut barriers = Barriers::default();
        barriers.want(DISK, run(4096, 1, 1), false);
        barriers.over(SyncId(1), |_, run| Some(BlockRun { cause: Some(SyncId(2)), ..*run }));
        assert_eq!(flush(&mut barriers, 5), Some(2));
        barriers.over(SyncId(2), |_, run| Some(BlockRun { cause: None, ..*run }));
        barriers.written(DISK, &written(1));
        assert!(
            barriers.issued(DISK).is_some_and(|run| run.cause.is_none()),
            "nobody waits, but it is known what it is for"
        );
    }
}
