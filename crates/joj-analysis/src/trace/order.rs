//! Events in the order of their times: what comes from several processors' buffers is nearly so.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::trace::event::Event;

/// Holds events back until nothing earlier can come. Events of the same time leave in the order in which they came.
#[derive(Debug)]
pub struct Sorter {
    /// Those that came no earlier than their predecessor here: nearly all.
    in_order: VecDeque<Waiting>,
    /// Events that came after a later one.
    overtaken: BinaryHeap<Reverse<Waiting>>,
    arrived: u64,
    newest_ns: u64,
    window_ns: u64,
    room: usize,
    left_ns: u64,
    late: u64,
}

/// An event and its place in the order, which alone is compared.
#[derive(Debug)]
struct Waiting {
    place: (u64, u64),
    event: Event,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.place == other.place
    }
}
impl Eq for Waiting {}
impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.place.cmp(&other.place)
    }
}

impl Sorter {
    /// One that expects no event more than `window_ns` nanoseconds after a later one.
    pub fn new(window_ns: u64) -> Self {
        Self {
            in_order: VecDeque::new(),
            overtaken: BinaryHeap::new(),
            arrived: 0,
            newest_ns: 0,
            window_ns,
            room: usize::MAX,
            left_ns: 0,
            late: 0,
        }
    }

    /// One that holds back so many events at most, whatever the window: the earliest then leaves too soon, maybe.
    #[must_use]
    pub fn with_room(self, room: usize) -> Self {
        Self { room, ..self }
    }

    /// Takes an event, and hands on those that can no longer be overtaken.
    pub fn push(&mut self, event: Event, sink: &mut dyn FnMut(Event)) {
        self.newest_ns = self.newest_ns.max(event.time_ns);
        let waiting = Waiting { place: (event.time_ns, self.arrived), event };
        self.arrived += 1;
        match self.in_order.back() {
            Some(last) if last.place > waiting.place => self.overtaken.push(Reverse(waiting)),
            _ => self.in_order.push_back(waiting),
        }
        self.release(self.newest_ns.saturating_sub(self.window_ns), sink);
        while self.held() > self.room && self.hand_on(u64::MAX, sink) {}
    }

    /// Hands on everything up to `until_ns`: the caller knows that nothing earlier comes.
    pub fn release(&mut self, until_ns: u64, sink: &mut dyn FnMut(Event)) {
        while self.hand_on(until_ns, sink) {}
    }

    /// How many are held back.
    fn held(&self) -> usize {
        self.in_order.len() + self.overtaken.len()
    }

    /// Hands on the earliest, unless it is later than `until_ns`; false where there is none.
    fn hand_on(&mut self, until_ns: u64, sink: &mut dyn FnMut(Event)) -> bool {
        let first = self.in_order.front().map(|waiting| waiting.place);
        let waiting = match (first, self.overtaken.peek()) {
            (Some(first), None) if first.0 <= until_ns => self.in_order.pop_front(),
            (Some(first), Some(Reverse(other))) if first < other.place && first.0 <= until_ns => {
                self.in_order.pop_front()
            }
            (_, Some(Reverse(other))) if other.place.0 <= until_ns => {
                self.overtaken.pop().map(|Reverse(waiting)| waiting)
            }
            _ => return false,
        };
        let Some(Waiting { mut event, .. }) = waiting else { return false };
        if event.time_ns < self.left_ns {
            self.late += 1;
            event.time_ns = self.left_ns;
        }
        self.left_ns = event.time_ns;
        sink(event);
        true
    }

    /// Hands on the rest. Returns how many events came later than the window allows; they got the time of their predecessor.
    pub fn finish(mut self, sink: &mut dyn FnMut(Event)) -> u64 {
        self.release(u64::MAX, sink);
        self.late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time_ns: u64, sector: u64) -> Event {
        Event { time_ns, sector, ..Event::default() }
    }

    #[test]
    fn events_leave_in_order_and_as_they_came_where_times_are_equal() {
        let mut seen = Vec::new();
        let mut sorter = Sorter::new(10);
        for event in [at(5, 0), at(3, 1), at(5, 2), at(20, 3), at(12, 4)] {
            sorter.push(event, &mut |event| seen.push((event.time_ns, event.sector)));
        }
        assert_eq!(seen, [(3, 1), (5, 0), (5, 2)]);
        assert_eq!(sorter.finish(&mut |event| seen.push((event.time_ns, event.sector))), 0);
        assert_eq!(seen[3..], [(12, 4), (20, 3)]);
    }

    #[test]
    fn what_comes_too_late_is_counted_and_does_not_break_the_order() {
        let mut seen = Vec::new();
        let mut sorter = Sorter::new(10);
        for event in [at(50, 0), at(100, 1), at(20, 2)] {
            sorter.push(event, &mut |event| seen.push(event.time_ns));
        }
        assert_eq!(sorter.finish(&mut |event| seen.push(event.time_ns)), 1);
        assert_eq!(seen, [50, 50, 100]);
    }

    #[test]
    fn no_more_wait_than_there_is_room_for() {
        let mut seen = Vec::new();
        let mut sorter = Sorter::new(1_000).with_room(2);
        for event in [at(5, 0), at(3, 1), at(4, 2), at(2, 3)] {
            sorter.push(event, &mut |event| seen.push(event.time_ns));
        }
        assert_eq!((seen.as_slice(), sorter.held()), ([3, 3].as_slice(), 2));
        assert_eq!(sorter.finish(&mut |event| seen.push(event.time_ns)), 1);
        assert_eq!(seen, [3, 3, 4, 5]);
    }
}
