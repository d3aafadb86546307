//! How many calls each thread of a replay has made, and waiting until a thread has made so many.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rustix::thread::futex;

/// Looks before a thread sleeps: most waits are for a call that is under way.
const LOOKS: u32 = 200;
/// So long a thread sleeps at most before it looks whether the replay is to end.
const SLEEP_NS: i64 = 50_000_000;

/// One thread's calls so far.
#[derive(Debug, Default)]
pub struct Turn {
    made: AtomicU32,
    waiting: AtomicU32,
}

impl Turn {
    /// How many calls it has made.
    pub fn made(&self) -> u32 {
        self.made.load(Ordering::Acquire)
    }

    /// It has made so many now.
    pub fn advance(&self, made: u32) {
        // Sequentially consistent, as in `wait`: either we see who waits, or it sees our number.
        self.made.store(made, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            let _ = futex::wake(&self.made, futex::Flags::PRIVATE, u32::MAX >> 1);
        }
    }

    /// Waits until it has made so many; false where `stop` came first.
    pub fn wait(&self, calls: u32, stop: &AtomicBool) -> bool {
        for _ in 0..LOOKS {
            if self.made() >= calls {
                return true;
            }
            std::hint::spin_loop();
        }
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let timeout = futex::Timespec { tv_sec: 0, tv_nsec: SLEEP_NS };
        let reached = loop {
            let made = self.made.load(Ordering::SeqCst);
            if made >= calls {
                break true;
            }
            if stop.load(Ordering::Relaxed) {
                break false;
            }
            let _ = futex::wait(&self.made, futex::Flags::PRIVATE, made, Some(&timeout));
        };
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        reached
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_thread_waits_for_another_ones_call_and_no_longer() {
        let (turn, stop) = (Turn::default(), AtomicBool::new(false));
        assert!(turn.wait(0, &stop));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| turn.wait(2, &stop));
            std::thread::sleep(Duration::from_millis(20));
            turn.advance(1);
            std::thread::sleep(Duration::from_millis(20));
            assert!(!waiter.is_finished(), "one call is not two");
            turn.advance(2);
            assert!(waiter.join().unwrap());
        });
        let begin = Instant::now();
        stop.store(true, Ordering::Relaxed);
        assert!(!turn.wait(3, &stop) && begin.elapsed() < Duration::from_secs(5));
    }
}
