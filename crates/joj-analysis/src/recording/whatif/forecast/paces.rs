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

/// Fewer times between ends of sleeps show no pace.
const INTERVALS_MIN: usize = 4;
/// The lengths of sleeps differ so many times as much as the times between their ends.
const LENGTHS_DIFFER_MIN: u64 = 4;
/// A time between two ends differs from the next one by no larger a part.
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
            let interval_ns = |two: &[usize]| calls[two[1]].begin_ns - calls[two[0]].begin_ns;
            let intervals: Vec<(usize, u64)> =
                sleeps.windows(2).map(|two| (two[1], interval_ns(two))).collect();
            let is_even = |one: &(usize, u64), next: &(usize, u64)| {
                one.1.abs_diff(next.1).saturating_mul(TIMES_DIFFER_MAX) <= one.1
            };
            for run in intervals.chunk_by(is_even).filter(|run| run.len() >= INTERVALS_MIN) {
                let times_ns: Vec<u64> = run.iter().map(|(_, time_ns)| *time_ns).collect();
                let (_, times_differ_ns) = spread(&times_ns);
                let slept_ns: Vec<u64> = run.iter().map(|(row, _)| calls[*row].bytes).collect();
                let (_, slept_differ_ns) = spread(&slept_ns);
                if times_differ_ns.saturating_mul(LENGTHS_DIFFER_MIN) < slept_differ_ns {
                    intervals_ns.extend(run.iter().copied());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::call::CallKind;

    /// How many sleeps keep a pace that end then, and were so long.
    fn paced(sleeps: &[(u64, u64)]) -> usize {
        let call = |(begin_ns, bytes): &(u64, u64)| RecordedCall {
            kind: CallKind::Woken,
            offset: 1,
            begin_ns: *begin_ns,
            bytes: *bytes,
            ..RecordedCall::default()
        };
        let calls: Vec<RecordedCall> = sleeps.iter().map(call).collect();
        let mut order = CallOrder::default();
        order.threads.push((0..).take(calls.len()).collect());
        Paces::of(&calls, &order).intervals_ns.len()
    }

    #[test]
    fn sleeps_of_several_lengths_that_end_after_equal_times_keep_a_pace() {
        let ends = |time_ns: u64, lengths: &[u64]| -> Vec<(u64, u64)> {
            (1..).zip(lengths).map(|(number, length_ns)| (number * time_ns, *length_ns)).collect()
        };
        assert_eq!(paced(&ends(1000, &[400, 300, 500, 350, 450])), 4);
        assert_eq!(paced(&ends(1000, &[400, 300, 500, 350])), 0, "too few");
        assert_eq!(paced(&ends(1000, &[400; 9])), 0, "one length, and the same work between");
        let late = [(1000, 400), (2000, 300), (3100, 500), (4000, 350), (5000, 450)];
        assert_eq!(paced(&late), 0, "not after equal times");
    }
}
