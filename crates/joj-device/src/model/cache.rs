//! The volatile cache: which units are dirty, and which are on their way to the medium.
//!
//! Half of it may be dirty before the oldest units leave, so that the medium works while the host sends.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::RangeInclusive;

use crate::description;
use crate::number::{keys_within, size};

#[derive(Debug)]
pub(super) struct Cache {
    units_max: u64,
    flush_ns: u64,
    fua_ns: u64,
    /// Dirty unit to its place in the order of arrival.
    dirty: HashMap<u64, u64>,
    arrivals: BTreeMap<u64, u64>,
    arrived: u64,
    /// (end of the program, units), ends ascending enough: the room of the first is what is waited for.
    draining: VecDeque<(u64, u64)>,
    draining_units: u64,
    drained_ns: u64,
}

impl Cache {
    pub fn new(costs: &description::CacheCosts, unit_bytes: u64) -> Self {
        Cache {
            units_max: (costs.bytes / unit_bytes).max(1),
            flush_ns: costs.flush_ns,
            fua_ns: costs.fua_ns,
            dirty: HashMap::new(),
            arrivals: BTreeMap::new(),
            arrived: 0,
            draining: VecDeque::new(),
            draining_units: 0,
            drained_ns: 0,
        }
    }

    pub const fn flush_ns(&self) -> u64 {
        self.flush_ns
    }

    pub const fn fua_ns(&self) -> u64 {
        self.fua_ns
    }

    pub fn holds(&self, unit: u64) -> bool {
        self.dirty.contains_key(&unit)
    }

    pub fn dirty_units(&self) -> u64 {
        size(self.dirty.len())
    }

    /// When the next unit has room; nothing, if there is room at `now_ns`.
    pub fn room_at(&mut self, now_ns: u64) -> Option<u64> {
        while let Some(&(end_ns, units)) = self.draining.front() {
            if end_ns > now_ns {
                break;
            }
            self.draining_units -= units;
            self.draining.pop_front();
        }
        let full = self.dirty_units() + self.draining_units >= self.units_max;
        if full { self.draining.front().map(|&(end_ns, _)| end_ns) } else { None }
    }

    pub fn insert(&mut self, unit: u64) {
        self.arrived += 1;
        self.dirty.insert(unit, self.arrived);
        self.arrivals.insert(self.arrived, unit);
    }

    pub fn is_above_its_mark(&self) -> bool {
        self.dirty_units() > self.units_max / 2
    }

    /// The units that have been dirty longest, clean from now on.
    pub fn take_oldest(&mut self, count: usize) -> Vec<u64> {
        let mut taken = Vec::with_capacity(count);
        while taken.len() < count {
            let Some((_, unit)) = self.arrivals.pop_first() else { break };
            self.dirty.remove(&unit);
            taken.push(unit);
        }
        taken
    }

    /// All dirty units, in order of their numbers, clean from now on.
    pub fn take_all(&mut self) -> Vec<u64> {
        self.arrivals.clear();
        let mut taken: Vec<u64> = self.dirty.drain().map(|(unit, _)| unit).collect();
        taken.sort_unstable();
        taken
    }

    /// `units` units taken from here use their room until `end_ns`.
    pub fn drains_until(&mut self, end_ns: u64, units: usize) {
        self.drained_ns = self.drained_ns.max(end_ns);
        self.draining.push_back((end_ns, size(units)));
        self.draining_units += size(units);
    }

    /// When the last unit that was taken for want of room is on the medium.
    pub const fn drained_at(&self) -> u64 {
        self.drained_ns
    }

    /// What is written past the cache, or trimmed, is not dirty here.
    pub fn forget(&mut self, range: RangeInclusive<u64>) {
        for unit in keys_within(self.dirty.keys(), |unit| self.dirty.contains_key(&unit), range) {
            if let Some(arrival) = self.dirty.remove(&unit) {
                self.arrivals.remove(&arrival);
            }
        }
    }
}
