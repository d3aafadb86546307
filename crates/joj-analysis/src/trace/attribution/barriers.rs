//! Flushes that were asked for and wait to be issued.
//!
//! The kernel takes PREFLUSH and FUA off a write and issues flushes of its own, one for all that wait (block/blk-flush.c):
//! what a flush is for is known only from what was handed over before it.

use std::collections::HashMap;

use crate::trace::attribution::request::{Run, SyncId};
use crate::trace::event::{DeviceNumber, RequestFlags};

/// A run that wants flushes, and how many are still to come.
#[derive(Debug)]
struct Wanted {
    run: Run,
    left: u32,
}

/// Flushes to come, by disk.
#[derive(Debug, Default)]
pub struct Barriers {
    wanted: HashMap<DeviceNumber, Vec<Wanted>>,
}

/// So many are remembered for a disk: beyond that flushes were lost, or are swallowed by a device without a cache.
const KEPT_MAX: usize = 64;

impl Barriers {
    /// A run was handed over that wants a flush before it, or after it where the device has no FUA.
    pub fn want(&mut self, disk: DeviceNumber, run: Run, device_has_fua: bool) {
        let before = u32::from(run.intended.has(RequestFlags::PREFLUSH));
        // Without bytes there is nothing that a flush could follow.
        let after = run.bytes > 0 && run.intended.has(RequestFlags::FUA) && !device_has_fua;
        let wanted = self.wanted.entry(disk).or_default();
        if wanted.len() >= KEPT_MAX {
            wanted.remove(0);
        }
        let left = before + u32::from(after);
        if left > 0 {
            wanted.push(Wanted { run, left });
        }
    }

    /// A flush was issued: for whom. One that nobody is known to want has no run.
    pub fn issued(&mut self, disk: DeviceNumber) -> Option<Run> {
        let wanted = self.wanted.get_mut(&disk)?;
        let first = wanted.first_mut()?;
        first.left -= 1;
        let run = Run { bytes: 0, ..first.run };
        if first.left == 0 {
            wanted.remove(0);
        }
        Some(run)
    }

    /// A sync call is over: nothing that it wanted can still come.
    pub fn over(&mut self, sync: SyncId) {
        for wanted in self.wanted.values_mut() {
            wanted.retain(|wanted| wanted.run.cause != Some(sync));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: DeviceNumber = DeviceNumber(1);

    fn run(bytes: u64, intended: RequestFlags, cause: u64) -> Run {
        Run { bytes, intended, cause: Some(SyncId(cause)), ..Run::default() }
    }

    #[test]
    fn a_commit_block_has_a_flush_on_each_mode_where_the_device_has_no_fua() {
        let both = RequestFlags::PREFLUSH.with(RequestFlags::FUA);
        for (fua, expected) in [(false, 2), (true, 1)] {
            let mut barriers = Barriers::default();
            barriers.want(DISK, run(4096, both, 1), fua);
            let flushes = (0..3).filter_map(|_| barriers.issued(DISK)).count();
            assert_eq!(flushes, expected);
        }
    }

    #[test]
    fn what_a_call_wanted_ends_with_it() {
        let mut barriers = Barriers::default();
        barriers.want(DISK, run(0, RequestFlags::PREFLUSH, 1), false);
        barriers.want(DISK, run(0, RequestFlags::PREFLUSH, 2), false);
        barriers.over(SyncId(1));
        assert_eq!(barriers.issued(DISK).and_then(|run| run.cause), Some(SyncId(2)));
        assert_eq!(barriers.issued(DISK), None);
    }
}
