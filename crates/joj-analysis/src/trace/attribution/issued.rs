//! Requests that went to the driver and are not complete.
//!
//! Several over the same sectors may be under way at once. A completion is told by place and length: it belongs to the oldest request
//! with both. Where there is none, the driver took a part of a longer one. A flush has no place; each queue of a driver has one under
//! way at a time.

use std::collections::BTreeMap;

use crate::filesystem::class::Class;
use crate::trace::attribution::queued::cut_off;
use crate::trace::attribution::request::{BlockRun, Request, Sync};
use crate::trace::event::{DeviceNumber, Event, Operation, RequestFlags, SECTOR_BYTES};

/// Which request it is: by disk, what it does, first sector (of a flush the queue) and sectors, then by age.
type IssuedKey = (DeviceNumber, Operation, u64, u64, u64);

/// More are not under way on any machine: what is beyond had a completion that nobody told.
const MOST: usize = 1 << 16;

/// A request as an event names it.
#[derive(Debug, Clone, Copy)]
pub struct ToldRequest {
    pub disk: DeviceNumber,
    pub operation: Operation,
    pub sector: u64,
    /// The driver's queue, from 1 on; 0 where that is not known.
    pub queue: u64,
    /// Length; 0 for a flush.
    pub bytes: u64,
}

impl ToldRequest {
    fn place(self) -> (DeviceNumber, Operation, u64) {
        let at = if self.operation == Operation::Flush { self.queue } else { self.sector };
        (self.disk, self.operation, at)
    }
}

fn place_of(request: &Request) -> (DeviceNumber, Operation, u64) {
    let Request { disk, operation, sector, queue, bytes, .. } = *request;
    ToldRequest { disk, operation, sector, queue, bytes }.place()
}

/// A flush has no place; some kernels tell -1.
pub fn sector_of(event: &Event) -> u64 {
    if event.operation == Operation::Flush { 0 } else { event.sector }
}

/// Requests that are under way.
#[derive(Debug, Default)]
pub struct Issued {
    under_way: BTreeMap<IssuedKey, Request>,
    arrived: u64,
    /// What is older may be complete: events were lost.
    doubted: u64,
    /// Disks that issued a request: they have a queue.
    disks: Vec<DeviceNumber>,
}

impl Issued {
    /// True for a disk that was seen to issue a request.
    pub fn issues(&self, disk: DeviceNumber) -> bool {
        self.disks.contains(&disk)
    }

    /// A request went to the driver. Returns one that must have been complete before: the completion was lost.
    pub fn push(&mut self, request: Request) -> Option<Request> {
        if !self.issues(request.disk) {
            self.disks.push(request.disk);
        }
        let of = place_of(&request);
        let before = if self.doubted > 0 { self.oldest(of, 0, u64::MAX) } else { None };
        let before = before.filter(|key| key.4 < self.doubted).and_then(|key| self.under_way.remove(&key));
        self.insert(request, self.arrived);
        self.arrived += 1;
        before
    }

    fn insert(&mut self, request: Request, age: u64) {
        let sectors = request.bytes.div_ceil(SECTOR_BYTES);
        let (disk, operation, at) = place_of(&request);
        self.under_way.insert((disk, operation, at, sectors, age), request);
    }

    /// What a completion belongs to. Where the device took a part of it without an error, that part; the rest stays.
    pub fn complete(&mut self, told: ToldRequest, error: i64) -> Option<Request> {
        let ToldRequest { sector, bytes, .. } = told;
        let (of, sectors) = (told.place(), bytes.div_ceil(SECTOR_BYTES));
        let longer = || self.oldest(of, sectors.saturating_add(1), u64::MAX);
        let key =
            self.oldest(of, sectors, sectors).or_else(longer).or_else(|| self.oldest(of, 0, sectors))?;
        let mut request = self.under_way.remove(&key)?;
        if bytes > 0 && bytes < request.bytes && error == 0 {
            let rest = cut_off(&mut request, sector.saturating_add(sectors));
            self.insert(rest, key.4);
        }
        Some(request)
    }

    /// What goes back to its queue: that follows its issue at once, so it is the newest.
    pub fn requeue(&mut self, told: ToldRequest) -> Option<Request> {
        let (disk, operation, at) = told.place();
        let sectors = told.bytes.div_ceil(SECTOR_BYTES);
        let newest = |first: u64, last: u64| {
            let all =
                self.under_way.range((disk, operation, at, first, 0)..=(disk, operation, at, last, u64::MAX));
            all.map(|(key, _)| *key).max_by_key(|key| key.4)
        };
        let key = newest(sectors, sectors).or_else(|| newest(0, u64::MAX))?;
        self.under_way.remove(&key)
    }

    /// The oldest that begins at a place and has so many sectors.
    fn oldest(
        &self,
        (disk, operation, sector): (DeviceNumber, Operation, u64),
        fewest: u64,
        most: u64,
    ) -> Option<IssuedKey> {
        let mut all = self
            .under_way
            .range((disk, operation, sector, fewest, 0)..=(disk, operation, sector, most, u64::MAX))
            .map(|(key, _)| *key);
        // Those of one length are in order of age.
        if fewest == most { all.next() } else { all.min_by_key(|key| key.4) }
    }

    /// Takes what holds nothing but data that a call for its file waits for.
    pub fn take_awaited(&mut self, sync: &Sync) -> Vec<Request> {
        let is_its =
            |run: &BlockRun| run.cause == Some(sync.id) && run.file == sync.file && run.class == Class::Data;
        self.take_if(|request| {
            request.operation == Operation::Write
                && !request.runs.is_empty()
                && request.runs.iter().all(is_its)
        })
    }

    /// Takes what is complete when a queue issues a flush: the flush before it, and writes with flushes of their own, which the kernel
    /// lets be over first (block/blk-flush.c; after five seconds it waits for such a write no longer).
    pub fn take_before_flush(&mut self, disk: DeviceNumber, queue: u64, disk_has_fua: bool) -> Vec<Request> {
        let has_flushes = |run: &BlockRun| {
            let intended = run.intended;
            intended.has(RequestFlags::PREFLUSH) || (intended.has(RequestFlags::FUA) && !disk_has_fua)
        };
        self.take_if(|request| {
            (request.disk, request.queue) == (disk, queue)
                && match request.operation {
                    Operation::Flush => true,
                    Operation::Write => request.runs.iter().any(has_flushes),
                    _ => false,
                }
        })
    }

    fn take_if(&mut self, is_wanted: impl Fn(&Request) -> bool) -> Vec<Request> {
        let wanted = self.under_way.iter().filter(|(_, request)| is_wanted(request));
        let keys: Vec<IssuedKey> = wanted.map(|(key, _)| *key).collect();
        in_order(keys.iter().filter_map(|key| self.under_way.remove(key)).collect())
    }

    /// Events were lost, perhaps completions of what is under way now.
    pub fn doubt(&mut self) {
        self.doubted = self.arrived;
    }

    /// The oldest ones, where there are more than can be under way.
    pub fn take_surplus(&mut self) -> Vec<Request> {
        if self.under_way.len() <= MOST {
            return Vec::new();
        }
        let mut ages: Vec<u64> = self.under_way.keys().map(|key| key.4).collect();
        ages.sort_unstable();
        let kept = ages.get(ages.len() - MOST / 2).copied().unwrap_or_default();
        let surplus: Vec<IssuedKey> = self.under_way.keys().filter(|key| key.4 < kept).copied().collect();
        in_order(surplus.iter().filter_map(|key| self.under_way.remove(key)).collect())
    }

    /// All, in the order in which they were issued.
    pub fn take_all(&mut self) -> Vec<Request> {
        in_order(std::mem::take(&mut self.under_way).into_values().collect())
    }
}

fn in_order(mut requests: Vec<Request>) -> Vec<Request> {
    requests.sort_by_key(|request| (request.issued_ns, request.sector));
    requests
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: DeviceNumber = DeviceNumber(1);

    fn told(sector: u64, sectors: u64) -> ToldRequest {
        ToldRequest { disk: DISK, operation: Operation::Write, sector, queue: 1, bytes: sectors * 512 }
    }

    fn request(issued_ns: u64, sector: u64, sectors: u64) -> Request {
        let operation = Operation::Write;
        Request { issued_ns, disk: DISK, operation, sector, bytes: sectors * 512, ..Request::default() }
    }

    fn complete(issued: &mut Issued, sector: u64, sectors: u64) -> Option<(u64, u64)> {
        issued.complete(told(sector, sectors), 0).map(|one| (one.issued_ns, one.bytes / 512))
    }

    #[test]
    fn a_completion_is_of_the_oldest_of_its_length_else_of_a_part_of_a_longer_one() {
        let mut issued = Issued::default();
        for (issued_ns, sectors) in [(1, 16), (2, 8), (3, 16), (4, 8)] {
            assert_eq!(issued.push(request(issued_ns, 0, sectors)), None);
        }
        let found = [8, 16, 8].map(|sectors| complete(&mut issued, 0, sectors));
        assert_eq!(found, [Some((2, 8)), Some((1, 16)), Some((4, 8))]);
        assert_eq!(
            [complete(&mut issued, 0, 4), complete(&mut issued, 4, 12)],
            [Some((3, 4)), Some((3, 12))]
        );
        assert_eq!(complete(&mut issued, 0, 8), None);
    }

    #[test]
    fn a_failed_request_is_over_whatever_length_is_told() {
        let mut issued = Issued::default();
        issued.push(request(1, 0, 8));
        assert_eq!(issued.complete(told(0, 0), -5).map(|one| one.bytes), Some(4096));
        assert!(issued.take_all().is_empty());
    }

    #[test]
    fn what_goes_back_to_its_queue_was_issued_last() {
        let mut issued = Issued::default();
        (1..4).for_each(|time_ns| drop(issued.push(request(time_ns, 0, 8 * (time_ns % 2 + 1)))));
        assert_eq!(issued.requeue(told(0, 16)).map(|one| one.issued_ns), Some(3));
        assert_eq!(complete(&mut issued, 0, 16), Some((1, 16)));
    }

    #[test]
    fn where_events_were_lost_a_request_makes_room_for_the_next_in_its_place() {
        let mut issued = Issued::default();
        issued.push(request(1, 0, 8));
        issued.doubt();
        issued.push(request(2, 100, 8));
        assert_eq!(issued.push(request(3, 0, 8)).map(|one| one.issued_ns), Some(1));
        assert_eq!(issued.push(request(4, 100, 8)), None);
        assert_eq!(complete(&mut issued, 0, 8), Some((3, 8)));
    }

    #[test]
    fn what_is_never_complete_takes_no_more_memory_than_it_must() {
        let mut issued = Issued::default();
        let many = MOST as u64 + 1;
        (0..many).for_each(|time_ns| drop(issued.push(request(time_ns, 0, 8))));
        let surplus = issued.take_surplus();
        assert_eq!(surplus.first().map(|one| one.issued_ns), Some(0));
        assert_eq!((surplus.len() + issued.under_way.len(), issued.under_way.len()), (MOST + 1, MOST / 2));
        assert!(issued.take_surplus().is_empty());
    }
}
