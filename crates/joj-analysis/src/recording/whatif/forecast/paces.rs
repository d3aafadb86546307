//! Threads that keep a pace: they begin something each 100 ms, say, and sleep for what is left.
//!
//! ```text
//! recorded   work 60 ms        | sleeps 40 ms | work 70 ms         | sleeps 30 ms | work 55 ms ...
//! forecast   work 10 ms | sleeps 90 ms        | work 10 ms | sleeps 90 ms         | work 10 ms ...
//! ```
//!
//! Such sleeps differ in length, and yet end after equal times.

use std::collections::HashMap;

use crate::recording::call::RecordedCall;
use crate::recording::order::CallOrder;

use super::waits_in_vain::WaitInVain;

/// Fewer sleeps show no pace.
const SLEEPS_MIN: usize = 5;
/// The lengths of sleeps differ so many times as much as the times between their ends.
const LENGTHS_DIFFER_MIN: u64 = 4;
/// The times between ends differ by no larger a part.
const TIMES_DIFFER_MAX: u64 = 20;

/// The sleeps of all threads.
pub struct Paces {
    /// By row of a sleep that keeps a pace: how long after the end of the one before it ends.
    intervals_ns: HashMap<usize, u64>,
    /// By thread the end of its last sleep: in the forecast, and in the recording if it kept a pace.
    ends_ns: Vec<(u64, u64)>,
}

impl Paces {
    /// Finds them.
    pub fn of(calls: &[RecordedCall], order: &CallOrder) -> Self {
        let mut intervals_ns = HashMap::new();
        for own in &order.threads {
            let rows = own.iter().map(|row| *row as usize);
            let sleeps: Vec<usize> =
                rows.filter(|row| calls[*row].waits_in_vain() && calls[*row].awaits_time()).collect();
            let differ = |one: &usize, other: &usize| calls[*one].offset != calls[*other].offset;
            for run in sleeps.chunk_by(differ).filter(|run| run.len() >= SLEEPS_MIN) {
                let interval_ns = |two: &[usize]| calls[two[1]].begin_ns - calls[two[0]].begin_ns;
                let times_ns: Vec<u64> = run.windows(2).map(interval_ns).collect();
                let (time_ns, times_differ_ns) = spread(&times_ns);
                let slept_ns: Vec<u64> = run.iter().map(|row| calls[*row].bytes).collect();
                let (_, slept_differ_ns) = spread(&slept_ns);
                let is_pace = times_differ_ns.saturating_mul(LENGTHS_DIFFER_MIN) <= slept_differ_ns
                    && times_differ_ns.saturating_mul(TIMES_DIFFER_MAX) <= time_ns;
                if is_pace {
                    intervals_ns.extend(run[1..].iter().copied().zip(times_ns));
                }
            }
        }
        Self { intervals_ns, ends_ns: vec![(0, 0); order.threads.len()] }
    }

    /// When in the recording a thread's last sleep ended that kept a pace.
    pub fn kept_ns(&self, thread: u32) -> u64 {
        self.ends_ns[thread as usize].1
    }

    /// A sleep is over in the forecast; gives its end where it keeps a pace.
    pub fn keep(&mut self, thread: u32, row: usize, call: &RecordedCall, wait: WaitInVain) -> Option<u64> {
        if !call.awaits_time() {
            return None;
        }
        let end_ns = &mut self.ends_ns[thread as usize];
        let kept_ns =
            self.intervals_ns.get(&row).map(|interval_ns| wait.begin_ns.max(end_ns.0 + interval_ns));
        *end_ns = (kept_ns.unwrap_or(wait.end_ns), if kept_ns.is_some() { call.begin_ns } else { end_ns.1 });
        kept_ns
    }
}

/// The median of times, and that of their distances from it.
fn spread(times_ns: &[u64]) -> (u64, u64) {
    let median = |mut times_ns: Vec<u64>| {
        times_ns.sort_unstable();
        times_ns.get(times_ns.len() / 2).copied().unwrap_or(0)
    };
    let middle_ns = median(times_ns.to_vec());
    (middle_ns, median(times_ns.iter().map(|time_ns| time_ns.abs_diff(middle_ns)).collect()))
}
