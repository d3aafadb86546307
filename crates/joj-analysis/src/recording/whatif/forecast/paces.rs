//! Threads that keep a pace: they begin something each 100 ms, say, and sleep for what is left.
//!
//! ```text
//! recorded   work 60 ms        | sleeps 40 ms | work 70 ms         | sleeps 30 ms | work 55 ms ...
//! forecast   work 10 ms | sleeps 90 ms        | work 10 ms | sleeps 90 ms         | work 10 ms ...
//! ```
//!
//! Such sleeps differ in length, and yet end after equal times. Where one lot of work took too long for a sleep, two of them were due.
//!
//! Who waits for others as well, by a timer of its own, has waits in vain of any length: what was left when others woke it last. Whether
//! these are such timers the recording does not tell: so they keep their pace in the longest forecast alone.

use std::collections::HashMap;

use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::order::CallOrder;

use super::waits_in_vain::WaitInVain;

/// Fewer times between ends of sleeps show no pace.
const INTERVALS_MIN: usize = 4;
/// The lengths of sleeps differ so many times as much as the times between their ends.
const LENGTHS_DIFFER_MIN: u64 = 4;
/// A time between two ends differs from the next one by no larger a part.
const TIMES_DIFFER_MAX: u64 = 20;

/// Of a thread what its waits go by.
#[derive(Debug, Default, Clone, Copy)]
struct ThreadPace {
    /// The end of its last sleep in the forecast.
    slept_ns: u64,
    /// When in the recording its last wait ended that kept a pace.
    kept_ns: u64,
    /// The end of its last wait in vain, in the forecast and in the recording.
    waited_ns: (u64, u64),
    /// Others woke it since.
    is_woken: bool,
}

/// The sleeps of all threads, and what of their waits keeps a pace.
pub struct Paces {
    /// By row of a sleep that keeps a pace: how long after the end of the one before it ends.
    intervals: HashMap<usize, Interval>,
    threads: Vec<ThreadPace>,
}

/// The time between a sleep's end and that of the one before.
#[derive(Debug, Clone, Copy)]
struct Interval {
    row: usize,
    time_ns: u64,
    /// Two were due.
    is_double: bool,
}

impl Paces {
    /// Finds them.
    pub fn of(calls: &[RecordedCall], order: &CallOrder) -> Self {
        let mut intervals = HashMap::new();
        for own in &order.threads {
            // A wait for others has a length of its own.
            let is_wait = |row: &u32| {
                calls[*row as usize].kind == CallKind::Woken && !calls[*row as usize].awaits_time()
            };
            for part in own.split(is_wait) {
                let sleeps: Vec<usize> =
                    part.iter().map(|row| *row as usize).filter(|row| is_sleep(&calls[*row])).collect();
                let between = |two: &[usize]| (two[1], calls[two[1]].begin_ns - calls[two[0]].begin_ns);
                let between: Vec<(usize, u64)> = sleeps.windows(2).map(between).collect();
                for run in runs(&between).iter().filter(|run| keeps_pace(calls, run)) {
                    intervals.extend(run.iter().map(|interval| (interval.row, *interval)));
                }
            }
        }
        Self { intervals, threads: vec![ThreadPace::default(); order.threads.len()] }
    }

    /// When in the recording a thread's last wait ended that kept a pace.
    pub fn kept_ns(&self, thread: u32) -> u64 {
        self.threads[thread as usize].kept_ns
    }

    /// A sleep is over in the forecast; gives its end where it keeps a pace.
    pub fn keep(&mut self, thread: u32, row: usize, call: &RecordedCall, wait: WaitInVain) -> Option<u64> {
        if !call.awaits_time() {
            return None;
        }
        let own = &mut self.threads[thread as usize];
        let ends_ns = |interval: &Interval| {
            // The second one began when the first was over, however late that was.
            let own_ns = if interval.is_double { wait.end_ns } else { wait.begin_ns };
            own_ns.max(own.slept_ns + interval.time_ns)
        };
        let kept_ns = self.intervals.get(&row).map(ends_ns);
        own.slept_ns = kept_ns.unwrap_or(wait.end_ns);
        own.kept_ns = kept_ns.map_or(own.kept_ns, |_| call.begin_ns);
        kept_ns
    }

    /// A wait in vain for others is over in the longest forecast; gives its end where it may be a timer's, which goes on while others wake
    /// the thread.
    pub fn keep_timer(&mut self, thread: u32, call: &RecordedCall, wait: WaitInVain) -> Option<u64> {
        let own = &mut self.threads[thread as usize];
        let (before_ns, recorded_ns) = own.waited_ns;
        let due_ns = before_ns + call.begin_ns.saturating_sub(recorded_ns);
        let kept_ns = own.is_woken.then_some(wait.end_ns.max(due_ns));
        own.waited_ns = (kept_ns.unwrap_or(wait.end_ns), call.begin_ns);
        own.is_woken = false;
        own.kept_ns = kept_ns.map_or(own.kept_ns, |_| call.begin_ns);
        kept_ns
    }

    /// A wait is over before it began.
    pub fn leave_out(&mut self, thread: u32, call: &RecordedCall, wait: WaitInVain) -> u64 {
        self.threads[thread as usize].kept_ns = call.begin_ns;
        wait.begin_ns
    }

    /// Another thread woke this one.
    pub fn woken(&mut self, thread: u32) {
        self.threads[thread as usize].is_woken = true;
    }
}

fn is_sleep(call: &RecordedCall) -> bool {
    call.waits_in_vain() && call.awaits_time()
}

/// Times that are alike, one after the other. Among them one may be longer by so much that another one was due in it: it is two, then.
fn runs(between: &[(usize, u64)]) -> Vec<Vec<Interval>> {
    let mut runs: Vec<Vec<Interval>> = Vec::new();
    // The last one that is no double one.
    let mut pace_ns = 0_u64;
    for (row, time_ns) in between {
        let is_like = pace_ns.abs_diff(*time_ns).saturating_mul(TIMES_DIFFER_MAX) <= pace_ns;
        let is_double = (pace_ns.saturating_mul(2)..pace_ns.saturating_mul(4)).contains(time_ns);
        match runs.last_mut() {
            Some(run) if run.len() > 1 && is_double => {
                run.push(Interval { row: *row, time_ns: 2 * pace_ns, is_double });
                continue;
            }
            Some(run) if is_like => run.push(Interval { row: *row, time_ns: *time_ns, is_double: false }),
            _ => runs.push(vec![Interval { row: *row, time_ns: *time_ns, is_double: false }]),
        }
        pace_ns = *time_ns;
    }
    runs
}

/// Enough of them, of sleeps that differ.
fn keeps_pace(calls: &[RecordedCall], run: &[Interval]) -> bool {
    let times_ns: Vec<u64> = run.iter().map(|interval| interval.time_ns).collect();
    let (_, times_differ_ns) = spread(&times_ns);
    let slept_ns: Vec<u64> = run.iter().map(|interval| calls[interval.row].bytes).collect();
    let (_, slept_differ_ns) = spread(&slept_ns);
    run.len() >= INTERVALS_MIN && times_differ_ns.saturating_mul(LENGTHS_DIFFER_MIN) < slept_differ_ns
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
        Paces::of(&calls, &order).intervals.len()
    }

    #[test]
    fn sleeps_of_several_lengths_that_end_after_equal_times_keep_a_pace() {
        let ends = |time_ns: u64, lengths: &[u64]| -> Vec<(u64, u64)> {
            (1..).zip(lengths).map(|(number, length_ns)| (number * time_ns, *length_ns)).collect()
        };
        assert_eq!(paced(&ends(1000, &[400, 300, 500, 350, 450])), 4);
        assert_eq!(paced(&ends(1000, &[400, 300, 500, 350])), 0, "too few");
        assert_eq!(paced(&ends(1000, &[400; 9])), 0, "one length, and the same work between");
        let uneven = [(1000, 400), (2000, 300), (3100, 500), (4000, 350), (5000, 450)];
        assert_eq!(paced(&uneven), 0, "not after equal times");
        let late = [(1000, 400), (2000, 300), (3000, 500), (5300, 350), (6300, 450), (7300, 300)];
        assert_eq!(paced(&late), 5, "in one of them the work took too long");
    }
}
