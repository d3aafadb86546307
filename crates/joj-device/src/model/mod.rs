//! The latency model: a request goes in with its time, and comes back with the time of its completion.
//!
//! ```text
//! request -> bus (command, transfer) -> cache -> flash units (map miss, merge, program) -> done
//!
//! bus         commands and their data, one request after another
//! units       flash units that work at the same time
//! cache       the volatile cache: what is dirty, and what is on its way to the medium
//! map_cache   the parts of the map that are in memory, and what a miss costs
//! ftl         flash translation layers: copies and erasures behind a write
//! closed_form_tests, property_tests   each term of the equations alone; what holds on every device
//! ```
//!
//! Invariants: 1. no clock: the same requests at the same times give the same completions. 2. nothing completes before
//! it was submitted. 3. after a flush no unit is dirty. 4. the parts of a completion's detail add up to its latency.
//! Source: docs/device_format.md, "Equations".

mod bus;
mod units;
mod cache;
mod map_cache;
mod ftl;

use std::ops::RangeInclusive;

use crate::description::{Description, Flash};
use crate::request::{BLOCK_BYTES, Request, RequestKind};
use bus::Bus;
use cache::Cache;
use ftl::Ftl;
use map_cache::MapCache;
use units::{Batch, PageWork, Units};

/// Where the time between submission and completion went; nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Detail {
    /// Behind earlier requests, for the bus or for a place in the queue.
    pub queue_ns: u64,
    /// The fixed part of the command.
    pub command_ns: u64,
    /// Data over the bus.
    pub transfer_ns: u64,
    /// Reading pages, also the rest of a unit that is written in part.
    pub read_ns: u64,
    /// Behind programs that other requests left to the flash, and for room in the cache.
    pub busy_ns: u64,
    /// Programming pages.
    pub program_ns: u64,
    /// Copies and erasures of merges and garbage collection.
    pub merge_ns: u64,
    /// Pieces of the map that were not in memory.
    pub map_ns: u64,
    /// The fixed part of a flush or of a FUA write.
    pub flush_ns: u64,
}

impl Detail {
    /// All parts together: the latency.
    pub const fn total_ns(&self) -> u64 {
        self.queue_ns
            + self.command_ns
            + self.transfer_ns
            + self.read_ns
            + self.busy_ns
            + self.program_ns
            + self.merge_ns
            + self.map_ns
            + self.flush_ns
    }

    const fn add(&mut self, batch: Batch) {
        self.busy_ns += batch.wait_ns;
        self.program_ns += batch.work.program_ns;
        self.merge_ns += batch.work.merge_ns;
        self.map_ns += batch.work.map_ns;
        self.read_ns += batch.work.read_ns;
    }
}

/// When a request began and ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The device took the command, nanoseconds.
    pub start_ns: u64,
    /// The host hears of it, nanoseconds.
    pub done_ns: u64,
    /// Where the time went.
    pub detail: Detail,
}

/// A device's timing state.
#[derive(Debug)]
pub struct Model {
    flash: Flash,
    bus: Bus,
    units: Units,
    cache: Option<Cache>,
    map: MapCache,
    ftl: Ftl,
    capacity_bytes: u64,
    destaged: Vec<u64>,
    /// Latest submission: time does not run backwards.
    now_ns: u64,
}

impl Model {
    /// An idle device with erased flash.
    ///
    /// # Panics
    /// When `capacity_bytes` is no multiple of 4096, or is zero.
    pub fn new(description: &Description, capacity_bytes: u64) -> Self {
        assert!(capacity_bytes > 0, "a device without a byte");
        assert!(capacity_bytes.is_multiple_of(BLOCK_BYTES), "{capacity_bytes} bytes are not whole blocks");
        let flash = description.flash.clone();
        Model {
            bus: Bus::new(&description.bus),
            units: Units::new(flash.parallel_units),
            cache: description.cache.as_ref().map(|cache| Cache::new(cache, flash.unit_bytes)),
            map: MapCache::new(&description.map_cache, flash.unit_bytes),
            ftl: Ftl::new(&description.ftl, &flash, capacity_bytes),
            flash,
            capacity_bytes,
            destaged: Vec::new(),
            now_ns: 0,
        }
    }

    /// The device's size in bytes.
    pub const fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Bytes that a power cut would take now, in whole units of the map.
    pub fn dirty_bytes(&self) -> u64 {
        self.cache.as_ref().map_or(0, Cache::dirty_units) * self.flash.unit_bytes
    }

    /// Byte ranges (offset, length) that left the volatile cache without a flush since this was asked last, and are not
    /// dirty again.
    pub fn take_destaged(&mut self) -> Vec<(u64, u64)> {
        let (unit_bytes, cache) = (self.flash.unit_bytes, self.cache.as_ref());
        let mut units = std::mem::take(&mut self.destaged);
        units.retain(|unit| !cache.is_some_and(|cache| cache.holds(*unit)));
        units.into_iter().map(|unit| (unit * unit_bytes, unit_bytes)).collect()
    }

    /// Carries out `request`, which the host hands over at `at_ns`. Requests come in order of time.
    ///
    /// # Panics
    /// When `at_ns` is before that of an earlier request, or [`Request::refusal`] has a reason.
    pub fn submit(&mut self, at_ns: u64, request: Request) -> Completion {
        assert!(at_ns >= self.now_ns, "submitted at {at_ns}, after a request of {}", self.now_ns);
        assert_eq!(request.refusal(self.capacity_bytes), None, "refuse it before it comes here");
        self.now_ns = at_ns;
        let turn = self.bus.take(at_ns, request);
        let mut detail = Detail {
            queue_ns: turn.start_ns - at_ns,
            command_ns: turn.command_ns,
            transfer_ns: turn.transfer_ns,
            ..Detail::default()
        };
        let ready_ns = turn.start_ns + turn.command_ns + turn.transfer_ns;
        match request.kind {
            RequestKind::Read => self.read(ready_ns, request, &mut detail),
            RequestKind::Write { fua: false } if self.cache.is_some() => {
                self.write_cached(ready_ns, request, &mut detail);
            }
            RequestKind::Write { fua } => self.write_through(ready_ns, request, fua, &mut detail),
            RequestKind::Flush => self.flush(ready_ns, &mut detail),
            RequestKind::Trim | RequestKind::WriteZeroes { .. } => self.forget(request),
        }
        let done_ns = at_ns + detail.total_ns();
        self.bus.finish(done_ns);
        Completion { start_ns: turn.start_ns, done_ns, detail }
    }

    fn read(&mut self, ready_ns: u64, request: Request, detail: &mut Detail) {
        let units = self.touched(request);
        let cache = self.cache.as_ref();
        let missing: Vec<u64> = units.filter(|unit| !cache.is_some_and(|cache| cache.holds(*unit))).collect();
        let pages: Vec<PageWork> = missing
            .chunks(self.units_per_page())
            .map(|page| PageWork {
                read_ns: self.flash.read_ns,
                map_ns: self.map.touch(page),
                ..PageWork::default()
            })
            .collect();
        detail.add(self.units.run(ready_ns, &pages));
    }

    fn write_cached(&mut self, ready_ns: u64, request: Request, detail: &mut Detail) {
        let Some(mut cache) = self.cache.take() else { return };
        let ready_ns = self.complete_units(ready_ns, request, detail);
        let mut now_ns = ready_ns;
        for unit in self.touched(request) {
            if cache.holds(unit) {
                continue; // coalesced: the older contents never reach the medium
            }
            while let Some(room_ns) = cache.room_at(now_ns) {
                now_ns = now_ns.max(room_ns);
            }
            cache.insert(unit);
            while cache.is_above_its_mark() {
                let page = cache.take_oldest(self.units_per_page());
                let batch = self.program(now_ns, &page);
                cache.drains_until(batch.end_ns, page.len());
                self.destaged.extend(page);
            }
        }
        detail.busy_ns += now_ns - ready_ns;
        self.cache = Some(cache);
    }

    fn write_through(&mut self, ready_ns: u64, request: Request, fua: bool, detail: &mut Detail) {
        let mut cache = self.cache.take();
        let ready_ns = self.complete_units(ready_ns, request, detail);
        let touched = self.touched(request);
        let units: Vec<u64> = touched.clone().collect();
        if let Some(cache) = &mut cache {
            cache.forget(touched);
            detail.flush_ns += if fua { cache.fua_ns() } else { 0 };
        }
        let batch = self.program(ready_ns, &units);
        detail.add(batch);
        self.cache = cache;
    }

    fn flush(&mut self, ready_ns: u64, detail: &mut Detail) {
        // Writes that are under way beside it count as submitted before.
        let all_done_ns = self.bus.all_done_at().max(ready_ns);
        detail.busy_ns += all_done_ns - ready_ns;
        let ready_ns = all_done_ns;
        let Some(mut cache) = self.cache.take() else { return };
        let dirty = cache.take_all();
        let draining_ns = cache.drained_at().max(ready_ns);
        let batch = self.program(ready_ns, &dirty);
        if batch.end_ns >= draining_ns {
            detail.add(batch);
        } else {
            detail.busy_ns += draining_ns - ready_ns;
        }
        detail.flush_ns += cache.flush_ns();
        self.cache = Some(cache);
    }

    fn forget(&mut self, request: Request) {
        let units = self.touched(request);
        if let Some(cache) = &mut self.cache {
            cache.forget(units.clone());
        }
        self.ftl.trim(units);
    }

    /// Reads what a write leaves of its first and last unit; when that is done.
    ///
    /// From the medium, also where the cache has the unit: asked first, it would make 3.6 MB/s of the 2 MB/s that WALDIO's
    /// Fig. 6 has for sequential writes of 512 bytes.
    fn complete_units(&mut self, ready_ns: u64, request: Request, detail: &mut Detail) -> u64 {
        let (unit_bytes, end) = (self.flash.unit_bytes, request.offset_bytes + request.len_bytes);
        let mut edges = Vec::new();
        if !request.offset_bytes.is_multiple_of(unit_bytes) {
            edges.push(request.offset_bytes / unit_bytes);
        }
        if end % unit_bytes != 0 && !edges.contains(&(end / unit_bytes)) {
            edges.push(end / unit_bytes);
        }
        let read = PageWork { read_ns: self.flash.read_ns, ..PageWork::default() };
        let batch = self.units.run(ready_ns, &vec![read; edges.len()]);
        detail.add(batch);
        batch.end_ns
    }

    /// Programs `units`, packed into pages, on the flash units that are free first.
    fn program(&mut self, at_ns: u64, units: &[u64]) -> Batch {
        let pages: Vec<PageWork> = units
            .chunks(self.units_per_page())
            .map(|page| {
                let map_ns = self.map.touch(page);
                let (program_ns, merge_ns) = self.ftl.write(page);
                PageWork { program_ns, merge_ns, map_ns, read_ns: 0 }
            })
            .collect();
        self.units.run(at_ns, &pages)
    }

    fn touched(&self, request: Request) -> RangeInclusive<u64> {
        let first = request.offset_bytes / self.flash.unit_bytes;
        let last = (request.offset_bytes + request.len_bytes - 1) / self.flash.unit_bytes;
        first..=last
    }

    fn units_per_page(&self) -> usize {
        crate::number::index(self.flash.page_bytes / self.flash.unit_bytes)
    }
}

#[cfg(test)]
mod closed_form_tests;
#[cfg(test)]
mod property_tests;
