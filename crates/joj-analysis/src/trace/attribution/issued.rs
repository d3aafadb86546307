//! Requests that went to the driver and are not complete.
//!
//! Where the trace has its slot, a completion belongs to the request there. When another request gets the slot, the completion of the one
//! before was not seen. Nor was it when a queue gets a flush and has one under way: block/blk-flush.c has one for each queue.
//!
//! Without slots a completion has place and length. Several over the same sectors may be under way at once: it belongs to the oldest
//! request with both. Where there is none, the driver took a part of a longer one.

use std::collections::{BTreeMap, HashMap};

use crate::filesystem::class::Class;
use crate::trace::attribution::queued::cut_off;
use crate::trace::attribution::request::{BlockRun, Request, Sync};
use crate::trace::event::{DeviceNumber, DriverSlot, Event, Operation, SECTOR_BYTES};

/// Which request it is: by disk, what it does, first sector and sectors, then by age.
type IssuedKey = (DeviceNumber, Operation, u64, u64, u64);

/// More are not under way on any machine: what is beyond had a completion that nobody told.
const MOST: usize = 1 << 16;

/// A request as an event names it.
#[derive(Debug, Clone, Copy)]
pub struct ToldRequest {
    pub disk: DeviceNumber,
    pub operation: Operation,
    pub sector: u64,
    pub slot: DriverSlot,
    /// Length; 0 for a flush.
    pub bytes: u64,
}

/// A flush has no place; some kernels tell -1.
pub fn key_sector(event: &Event) -> u64 {
    if event.operation == Operation::Flush { 0 } else { event.sector }
}

/// Requests that are under way.
#[derive(Debug, Default)]
pub struct Issued {
    under_way: BTreeMap<IssuedKey, Request>,
    /// By disk and slot, where both are one request's.
    slots: HashMap<(DeviceNumber, DriverSlot), IssuedKey>,
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

    /// Takes what must have been complete before a request went to the driver: the completions were not seen.
    pub fn take_before(&mut self, next: ToldRequest) -> Vec<Request> {
        let ToldRequest { disk, operation, sector, slot, .. } = next;
        let mut keys: Vec<IssuedKey> = self.slots.get(&(disk, slot)).copied().into_iter().collect();
        if operation == Operation::Flush && slot.queue().is_some() {
            let flushes =
                self.under_way.range((disk, operation, 0, 0, 0)..=(disk, operation, 0, 0, u64::MAX));
            let of_queue = flushes.filter(|(_, flush)| flush.slot.queue() == slot.queue());
            keys.extend(of_queue.map(|(key, _)| *key));
        }
        if self.doubted > 0 {
            let oldest = self.oldest((disk, operation, sector), 0, u64::MAX);
            keys.extend(oldest.filter(|key| key.4 < self.doubted));
        }
        in_order(keys.into_iter().filter_map(|key| self.remove(&key)).collect())
    }

    /// A request went to the driver.
    pub fn push(&mut self, request: Request) {
        if !self.issues(request.disk) {
            self.disks.push(request.disk);
        }
        self.insert(request, self.arrived);
        self.arrived += 1;
    }

    fn insert(&mut self, request: Request, age: u64) {
        let Request { disk, operation, sector, slot, bytes, .. } = request;
        let key = (disk, operation, sector, bytes.div_ceil(SECTOR_BYTES), age);
        if slot.is_one() {
            self.slots.insert((disk, slot), key);
        }
        self.under_way.insert(key, request);
    }

    fn remove(&mut self, key: &IssuedKey) -> Option<Request> {
        let request = self.under_way.remove(key)?;
        let slot = (request.disk, request.slot);
        if self.slots.get(&slot) == Some(key) {
            self.slots.remove(&slot);
        }
        Some(request)
    }

    /// What a completion belongs to. Where the device took a part of it without an error, that part; the rest stays.
    pub fn complete(&mut self, told: ToldRequest, error: i64) -> Option<Request> {
        let ToldRequest { disk, operation, sector, slot, bytes } = told;
        let (of, sectors) = ((disk, operation, sector), bytes.div_ceil(SECTOR_BYTES));
        let key = if slot.is_one() {
            self.slots.get(&(disk, slot)).copied().filter(|key| (key.0, key.1, key.2) == of)?
        } else {
            let longer = || self.oldest(of, sectors.saturating_add(1), u64::MAX);
            self.oldest(of, sectors, sectors).or_else(longer).or_else(|| self.oldest(of, 0, sectors))?
        };
        let mut request = self.remove(&key)?;
        if bytes > 0 && bytes < request.bytes && error == 0 {
            let rest = cut_off(&mut request, sector.saturating_add(sectors));
            self.insert(rest, key.4);
        }
        Some(request)
    }

    /// What goes back to its queue: that follows its issue at once, so it is the newest. Its tag may be gone already.
    pub fn requeue(&mut self, told: ToldRequest) -> Option<Request> {
        let ToldRequest { disk, operation, sector, bytes, .. } = told;
        let sectors = bytes.div_ceil(SECTOR_BYTES);
        let newest = |first: u64, last: u64| {
            let all = self
                .under_way
                .range((disk, operation, sector, first, 0)..=(disk, operation, sector, last, u64::MAX));
            all.map(|(key, _)| *key).max_by_key(|key| key.4)
        };
        let key = newest(sectors, sectors).or_else(|| newest(0, u64::MAX))?;
        self.remove(&key)
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

    /// Takes what a call waits for: writes with nothing but data for it of its file. Where completions `may_lack`, also a flush without a
    /// slot that its own process wanted.
    pub fn take_awaited(&mut self, sync: &Sync, may_lack: bool) -> Vec<Request> {
        let is_its = |request: &Request, run: &BlockRun| {
            let is_awaited = match request.operation {
                Operation::Write => run.file == sync.file && run.class == Class::Data,
                Operation::Flush => may_lack && request.slot.queue().is_none() && run.process == sync.process,
                _ => false,
            };
            is_awaited && run.cause == Some(sync.id)
        };
        let awaited = |(_, request): &(&IssuedKey, &Request)| {
            !request.runs.is_empty() && request.runs.iter().all(|run| is_its(request, run))
        };
        let keys: Vec<IssuedKey> = self.under_way.iter().filter(awaited).map(|(key, _)| *key).collect();
        in_order(keys.iter().filter_map(|key| self.remove(key)).collect())
    }

    /// True where a flush of that disk is under way.
    pub fn flushes(&self, disk: DeviceNumber) -> bool {
        self.oldest((disk, Operation::Flush, 0), 0, u64::MAX).is_some()
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
        in_order(surplus.iter().filter_map(|key| self.remove(key)).collect())
    }

    /// All, in the order in which they were issued.
    pub fn take_all(&mut self) -> Vec<Request> {
        self.slots.clear();
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
        ToldRequest {
            disk: DISK,
            operation: Operation::Write,
            sector,
            slot: DriverSlot::default(),
            bytes: sectors * 512,
        }
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
            issued.push(request(issued_ns, 0, sectors));
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
        (1..4).for_each(|time_ns| issued.push(request(time_ns, 0, 8 * (time_ns % 2 + 1))));
        assert_eq!(issued.requeue(told(0, 16)).map(|one| one.issued_ns), Some(3));
        assert_eq!(complete(&mut issued, 0, 16), Some((1, 16)));
    }

    #[test]
    fn where_events_were_lost_a_request_makes_room_for_the_next_in_its_place() {
        let mut issued = Issued::default();
        issued.push(request(1, 0, 8));
        issued.doubt();
        issued.push(request(2, 100, 8));
        let before = |issued: &mut Issued, sector| {
            issued.take_before(told(sector, 8)).iter().map(|one| one.issued_ns).collect::<Vec<_>>()
        };
        assert_eq!(before(&mut issued, 0), [1]);
        issued.push(request(3, 0, 8));
        assert_eq!(before(&mut issued, 100), [0; 0]);
        assert_eq!(complete(&mut issued, 0, 8), Some((3, 8)));
    }

    #[test]
    fn a_completion_is_of_the_request_in_its_slot_and_another_one_there_says_that_it_is_over() {
        let mut issued = Issued::default();
        let [first, second] = [1, 2].map(|tag| DriverSlot((1 << 32) + tag));
        let told = |slot| ToldRequest { slot, ..told(0, 8) };
        for (issued_ns, slot) in [(1, first), (2, second)] {
            issued.push(Request { slot, ..request(issued_ns, 0, 8) });
        }
        let done = |issued: &mut Issued, slot| issued.complete(told(slot), 0).map(|one| one.issued_ns);
        // The first one's completion is not seen.
        assert_eq!([done(&mut issued, second), done(&mut issued, second)], [Some(2), None]);
        assert_eq!(issued.take_before(told(second)), []);
        assert_eq!(issued.take_before(told(first)).len(), 1);
        assert_eq!(done(&mut issued, first), None);
    }

    #[test]
    fn a_queue_without_a_tag_is_no_slot_of_one_request() {
        let mut issued = Issued::default();
        let slot = DriverSlot(1 << 32);
        issued.push(Request { slot, ..request(1, 0, 8) });
        assert_eq!(issued.take_before(ToldRequest { slot, ..told(100, 8) }), []);
        let done = issued.complete(ToldRequest { slot, ..told(0, 8) }, 0);
        assert_eq!(done.map(|one| one.issued_ns), Some(1));
    }

    #[test]
    fn a_queue_has_one_flush_under_way() {
        const FIRST: u64 = 1 << 32;
        const SECOND: u64 = 2 << 32;
        let mut issued = Issued::default();
        let flush = |slot| ToldRequest { operation: Operation::Flush, slot: DriverSlot(slot), ..told(0, 0) };
        for (issued_ns, slot) in [(1, FIRST + 7), (2, SECOND + 7)] {
            let operation = Operation::Flush;
            issued.push(Request { operation, slot: DriverSlot(slot), ..request(issued_ns, 0, 0) });
        }
        let before = issued.take_before(flush(SECOND + 9));
        assert_eq!(before.iter().map(|one| one.issued_ns).collect::<Vec<_>>(), [2]);
        assert_eq!(issued.complete(flush(FIRST + 7), 0).map(|one| one.issued_ns), Some(1));
        // Without queues several may be.
        issued.push(Request { operation: Operation::Flush, ..request(3, 0, 0) });
        assert_eq!(issued.take_before(flush(0)), []);
    }

    #[test]
    fn what_is_never_complete_takes_no_more_memory_than_it_must() {
        let mut issued = Issued::default();
        let many = MOST as u64 + 1;
        (0..many).for_each(|time_ns| issued.push(request(time_ns, 0, 8)));
        let surplus = issued.take_surplus();
        assert_eq!(surplus.first().map(|one| one.issued_ns), Some(0));
        assert_eq!((surplus.len() + issued.under_way.len(), issued.under_way.len()), (MOST + 1, MOST / 2));
        assert!(issued.take_surplus().is_empty());
    }
}
