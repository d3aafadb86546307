//! Which record or row comes when: random, without a record twice, and the same in each run. Arithmetic only.
//!
//! Each thread has a generator of its own. Mobibench's threads share one without a lock, and its shuffle (each place with any other)
//! prefers some orders; here every order is as likely.

use crate::bench::worker::workload::next_random;

/// Random numbers of one thread.
#[derive(Debug)]
pub struct Generator {
    state: u64,
}

impl Generator {
    /// The numbers that `stream` of this thread always has.
    pub fn new(thread: u32, stream: u32) -> Generator {
        Generator { state: next_random(u64::from(thread) << 32 | u64::from(stream)) }
    }

    /// A number below `below`, which is 1 at least.
    pub fn draw(&mut self, below: u64) -> u64 {
        self.state = next_random(self.state);
        self.state % below
    }

    fn shuffle(&mut self, list: &mut [u64]) {
        for last in (1..list.len()).rev() {
            let other = usize::try_from(self.draw(last as u64 + 1)).unwrap_or(0);
            list.swap(last, other);
        }
    }

    /// `count` numbers below `below`, none of them twice; all where that is fewer.
    pub fn sample(&mut self, count: u64, below: u64) -> Vec<u64> {
        let mut all: Vec<u64> = (0..below).collect();
        self.shuffle(&mut all);
        all.truncate(usize::try_from(count).unwrap_or(usize::MAX));
        all
    }

    /// An order of `count` records of which `repeat_percent` are repeats of the others, as Mobibench's `-v` has it.
    pub fn records(&mut self, count: u64, repeat_percent: u64) -> Vec<u64> {
        let others = count - count * repeat_percent / 100;
        let mut order = self.sample(others, count);
        let repeats: Vec<u64> = (others..count).map(|_| self.draw(others)).collect();
        order.extend(
            repeats
                .iter()
                .filter_map(|at| order.get(usize::try_from(*at).ok()?))
                .copied()
                .collect::<Vec<_>>(),
        );
        self.shuffle(&mut order);
        order
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn without_repeats_each_record_comes_once() {
        let order = Generator::new(0, 0).records(256, 0);
        assert_ne!(order, (0..256).collect::<Vec<_>>());
        assert_eq!(order.iter().copied().collect::<BTreeSet<_>>(), (0..256).collect());
        assert_eq!(order, Generator::new(0, 0).records(256, 0), "again");
        assert_ne!(order, Generator::new(1, 0).records(256, 0), "another thread");
        assert_ne!(order, Generator::new(0, 1).records(256, 0), "another stream");
    }

    #[test]
    fn a_share_of_the_records_are_repeats() {
        for (percent, distinct) in [(25, 75), (50, 50), (99, 1)] {
            let order = Generator::new(0, 0).records(100, percent);
            assert_eq!(order.len(), 100);
            assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), distinct, "{percent} %");
        }
    }

    #[test]
    fn a_sample_is_of_different_numbers() {
        let sample = Generator::new(0, 0).sample(10, 300);
        assert_eq!((sample.len(), sample.iter().collect::<BTreeSet<_>>().len()), (10, 10));
        assert!(sample.iter().all(|number| *number < 300));
    }
}
