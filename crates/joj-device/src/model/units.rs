//! Flash units that work at the same time: a page goes to the one that is free first.

use crate::number::index;

/// What one page needs, nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PageWork {
    pub read_ns: u64,
    pub program_ns: u64,
    pub merge_ns: u64,
    pub map_ns: u64,
}

impl PageWork {
    const fn total_ns(&self) -> u64 {
        self.read_ns + self.program_ns + self.merge_ns + self.map_ns
    }

    const fn plus(self, other: PageWork) -> PageWork {
        PageWork {
            read_ns: self.read_ns + other.read_ns,
            program_ns: self.program_ns + other.program_ns,
            merge_ns: self.merge_ns + other.merge_ns,
            map_ns: self.map_ns + other.map_ns,
        }
    }
}

/// Pages given out together: the end, and how the unit that ended last came to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Batch {
    pub end_ns: u64,
    /// Behind work given out earlier.
    pub wait_ns: u64,
    pub work: PageWork,
}

#[derive(Debug)]
pub(super) struct Units {
    free_ns: Vec<u64>,
}

impl Units {
    pub fn new(count: u64) -> Self {
        Units { free_ns: vec![0; index(count)] }
    }

    /// Gives `pages` out at `at_ns`. Without a page it ends at once.
    pub fn run(&mut self, at_ns: u64, pages: &[PageWork]) -> Batch {
        let waits: Vec<u64> = self.free_ns.iter().map(|free_ns| free_ns.saturating_sub(at_ns)).collect();
        let mut given = vec![PageWork::default(); self.free_ns.len()];
        let mut last = Batch { end_ns: at_ns, wait_ns: 0, work: PageWork::default() };
        for page in pages {
            // The first of those that are free first: min_by_key keeps the order of the units.
            let unit = (0..self.free_ns.len()).min_by_key(|unit| self.free_ns[*unit].max(at_ns)).unwrap_or(0);
            self.free_ns[unit] = self.free_ns[unit].max(at_ns) + page.total_ns();
            given[unit] = given[unit].plus(*page);
            if self.free_ns[unit] >= last.end_ns {
                last = Batch { end_ns: self.free_ns[unit], wait_ns: waits[unit], work: given[unit] };
            }
        }
        last
    }
}
