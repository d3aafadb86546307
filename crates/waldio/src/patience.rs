//! How long a busy handler means to wait, in wall time.
//!
//! SQLite's own handler (`sqlite3_busy_timeout`) counts the naps that it asked for and never looks at a clock: it
//! naps 1, 2, 5, 10 ... 100 ms and gives up when their sum reaches the timeout. A nap that was cut short by a
//! hand-over that then failed would be lost; so each nap may last until the sum of all naps asked for since the
//! waiting began. The sum is kept, and with it the timeout: neither earlier nor later.

use std::time::{Duration, Instant};

/// See the file's head.
#[derive(Debug, Default)]
pub struct Patience {
    deadline: Option<Instant>,
    napped: bool,
}

impl Patience {
    /// The lock was refused. A refusal that no nap precedes begins a new wait.
    pub fn refused(&mut self) {
        if !self.napped {
            self.deadline = None;
        }
        self.napped = false;
    }

    /// A nap of `nominal` is asked for at `now`: when it has to end.
    pub fn nap(&mut self, now: Instant, nominal: Duration) -> Instant {
        let deadline = self.deadline.unwrap_or(now) + nominal;
        self.deadline = Some(deadline);
        self.napped = true;
        deadline
    }

    /// The lock was granted: the wait is over.
    pub fn granted(&mut self) {
        *self = Patience::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn naps_cut_short_do_not_shorten_the_wait() {
        let (mut patience, start) = (Patience::default(), Instant::now());
        patience.refused();
        assert_eq!(patience.nap(start, MS), start + MS);
        patience.refused();
        // Woken at once and refused again: the second nap ends where two whole naps would.
        assert_eq!(patience.nap(start, 2 * MS), start + 3 * MS);
        patience.refused();
        assert_eq!(patience.nap(start + 3 * MS, 5 * MS), start + 8 * MS);
    }

    #[test]
    fn a_new_wait_starts_from_its_own_beginning() {
        let (mut patience, start) = (Patience::default(), Instant::now());
        patience.refused();
        patience.nap(start, MS);
        patience.refused();
        // The handler gave up: no nap follows. Later, another statement:
        patience.refused();
        assert_eq!(patience.nap(start + 100 * MS, MS), start + 101 * MS);
        patience.granted();
        patience.refused();
        assert_eq!(patience.nap(start + 200 * MS, MS), start + 201 * MS);
    }
}
