//! How many calls each thread of a replay has made, and waiting until a thread has made so many.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use rustix::thread::futex;

use crate::machine::proc::clock;

/// Looks before a thread sleeps: most waits are for a call that is under way.
const LOOKS: u32 = 200;
/// So long a thread sleeps at most before it looks whether the replay is to end.
const SLEEP_NS: u64 = 50_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// One thread's calls so far.
#[derive(Debug, Default)]
pub struct Turn {
    made: AtomicU32,
    waiting: AtomicU32,
    /// When each was over, as far as anybody asks for that.
    ended_ns: Box<[AtomicU64]>,
}

impl Turn {
    /// Of a thread of which the end of so many calls is kept.
    pub fn keeping(calls: usize) -> Self {
        Self { ended_ns: (0..calls).map(|_| AtomicU64::new(0)).collect(), ..Self::default() }
    }

    /// Tells when a call was over, before [`Turn::advance`]. `made`: its number, from 1 on.
    pub fn ended(&self, made: u32, now_ns: impl FnOnce() -> u64) {
        if let Some(ended_ns) = self.place(made) {
            ended_ns.store(now_ns(), Ordering::Relaxed);
        }
    }

    /// When a call was over that [`Turn::wait`] waited for; 0 where that is not kept.
    pub fn ended_ns(&self, made: u32) -> u64 {
        self.place(made).map_or(0, |ended_ns| ended_ns.load(Ordering::Relaxed))
    }

    fn place(&self, made: u32) -> Option<&AtomicU64> {
        self.ended_ns.get((made as usize).checked_sub(1)?)
    }

    /// How many calls it has made.
    pub fn made(&self) -> u32 {
        self.made.load(Ordering::Acquire)
    }

    /// It has made so many now: one more than before.
    pub fn advance(&self, made: u32) {
        // Sequentially consistent, as in `wait`: either we see who waits, or it sees our number.
        self.made.store(made, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            let _ = futex::wake_bitset(&self.made, futex::Flags::PRIVATE, u32::MAX >> 1, bit(made));
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
        let reached = loop {
            let made = self.made.load(Ordering::SeqCst);
            if made >= calls {
                break true;
            }
            if stop.load(Ordering::Relaxed) {
                break false;
            }
            let until_ns = clock::shared_ns() + SLEEP_NS;
            let until = futex::Timespec {
                tv_sec: (until_ns / SECOND_NS).cast_signed(),
                tv_nsec: (until_ns % SECOND_NS).cast_signed(),
            };
            let _ = futex::wait_bitset(&self.made, futex::Flags::PRIVATE, made, Some(&until), bit(calls));
        };
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        reached
    }
}

/// Who waits for a number has its bit: the numbers in between, up to 31, wake nobody.
fn bit(calls: u32) -> NonZeroU32 {
    NonZeroU32::new(1 << (calls % u32::BITS)).unwrap_or(NonZeroU32::MAX)
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
        assert_eq!(
            (Turn::default().ended_ns(1), Turn::keeping(2).ended_ns(2)),
            (0, 0),
            "not over, or not kept"
        );
        let turn = Turn::keeping(2);
        turn.ended(2, || 7);
        turn.ended(3, || 8);
        assert_eq!([1, 2, 3].map(|made| turn.ended_ns(made)), [0, 7, 0]);
        let (turn, begin) = (Turn::default(), Instant::now());
        stop.store(true, Ordering::Relaxed);
        assert!(!turn.wait(3, &stop) && begin.elapsed() < Duration::from_secs(5));
    }
}
