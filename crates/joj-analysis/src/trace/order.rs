//! Events in the order of their times: what comes from several processors' buffers is nearly so.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::event::Event;

/// Holds events back until nothing earlier can come. Events of the same time leave in the order in which they came.
#[derive(Debug)]
pub struct Sorter {
    waiting: BinaryHeap<Reverse<(u64, u64, Kept)>>,
    arrived: u64,
    newest_ns: u64,
    window_ns: u64,
    left_ns: u64,
    late: u64,
}

/// An event that takes no part in comparisons.
#[derive(Debug)]
struct Kept(Event);

impl PartialEq for Kept {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for Kept {}
impl PartialOrd for Kept {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Kept {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl Sorter {
    /// One that expects no event more than `window_ns` nanoseconds after a later one.
    pub fn new(window_ns: u64) -> Self {
        Self { waiting: BinaryHeap::new(), arrived: 0, newest_ns: 0, window_ns, left_ns: 0, late: 0 }
    }

    /// Takes an event, and hands on those that can no longer be overtaken.
    pub fn push(&mut self, event: Event, sink: &mut dyn FnMut(Event)) {
        self.newest_ns = self.newest_ns.max(event.time_ns);
        self.waiting.push(Reverse((event.time_ns, self.arrived, Kept(event))));
        self.arrived += 1;
        self.release(self.newest_ns.saturating_sub(self.window_ns), sink);
    }

    /// Hands on everything up to `until_ns`: the caller knows that nothing earlier comes.
    pub fn release(&mut self, until_ns: u64, sink: &mut dyn FnMut(Event)) {
        while self.waiting.peek().is_some_and(|Reverse((time_ns, ..))| *time_ns <= until_ns) {
            let Some(Reverse((_, _, Kept(mut event)))) = self.waiting.pop() else { return };
            if event.time_ns < self.left_ns {
                self.late += 1;
                event.time_ns = self.left_ns;
            }
            self.left_ns = event.time_ns;
            sink(event);
        }
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
}
