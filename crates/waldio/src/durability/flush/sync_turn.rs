//! Whose turn it is to sync a log: one after the other, in the order of coming.
//!
//! The order matters: the thread that fills a log ahead of need syncs piece after piece. A mutex of the system is taken by the thread that
//! runs when it is free, which is that one. So a commit waited for all pieces, 1.3 s on a slow card.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The turns of one log.
#[derive(Debug, Default)]
pub struct SyncTurn {
    numbers: Mutex<Numbers>,
    over: Condvar,
}

#[derive(Debug, Default)]
struct Numbers {
    /// Of the next who comes.
    next: u64,
    /// Of the one whose turn it is. It is `next` where nobody has a turn.
    current: u64,
}

/// It is the holder's turn until this is dropped.
#[derive(Debug)]
pub struct TurnHeld<'a>(&'a SyncTurn);

impl SyncTurn {
    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is the caller's turn.
    pub fn take(&self) -> TurnHeld<'_> {
        let mut numbers = self.numbers();
        let own = numbers.next;
        numbers.next += 1;
        while numbers.current != own {
            numbers = self.over.wait(numbers).unwrap_or_else(PoisonError::into_inner);
        }
        TurnHeld(self)
    }

    /// Whether somebody has it.
    #[cfg(test)]
    pub fn is_taken(&self) -> bool {
        let numbers = self.numbers();
        numbers.current != numbers.next
    }
}

impl Drop for TurnHeld<'_> {
    fn drop(&mut self) {
        self.0.numbers().current += 1;
        self.0.over.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// A thread that has a turn and asks for another one comes after those that wait.
    #[test]
    fn turns_are_taken_in_the_order_of_coming() {
        const WAIT: usize = 3;
        let turn = SyncTurn::default();
        let (took, order) = mpsc::channel();
        std::thread::scope(|scope| {
            let first = turn.take();
            for waits in 1..=WAIT {
                let (turn, took) = (&turn, took.clone());
                scope.spawn(move || {
                    let _held = turn.take();
                    took.send(waits)
                });
                while turn.numbers().next < waits as u64 + 1 {
                    std::thread::yield_now();
                }
            }
            drop(first);
            let _again = turn.take();
            assert_eq!(order.try_iter().collect::<Vec<_>>(), [1, 2, 3]);
        });
    }

    #[test]
    fn a_panic_ends_a_turn() {
        let turn = SyncTurn::default();
        let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _held = turn.take();
            panic!("planted");
        }));
        assert!(panics.is_err());
        drop(turn.take());
    }
}
