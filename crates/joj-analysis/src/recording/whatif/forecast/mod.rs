//! How long a program takes when its calls take other times than in the recording.
//!
//! ```text
//! recorded   call 10 ms | think 5 ms | call 10 ms          25 ms
//! measured   call  2 ms              | call  1 ms
//! forecast   call  2 ms | think 5 ms | call  1 ms           8 ms
//! ```
//!
//! The rules are those of a replay in order `dependent`. A call begins when those that it waits for are over, and after the think time
//! since the call before it on its thread. Here that time passes at once: this is arithmetic. Calls are measured in a replay without think
//! time. A thread that another one woke did something by itself before it waited: that stays.
//!
//! ```text
//! recorded   A  call 10 ms | wakes B         B  own time 4 ms | waits 6 ms | call
//! forecast   A  call  1 ms | wakes B         B  own time 4 ms | call
//! ```
//!
//! Or it waited in vain before, for as long as it had time, and went on: it would not have done so had it been woken then.
//!
//! ```text
//! recorded   A  call 50 ms             | wakes B         B  waits 20 ms | call | waits 20 ms | call | waits 8 ms | ends
//! forecast   A  call  5 ms | wakes B                     B  waits  5 ms | ends
//! ```

mod paces;
mod waits_in_vain;

use std::collections::{HashMap, HashSet};

use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::order::{CallOrder, Wait, Wakeup};
use paces::Paces;
use waits_in_vain::{InVain, WaitsInVain, is_last_wait, is_wait};

/// When each call of each thread ends, as far as is known.
struct Ends {
    /// By thread and number of the call.
    threads: Vec<Vec<u64>>,
}

impl Ends {
    /// Of a thread's first `calls` calls the last one; 0 where there is none.
    fn of(&self, thread: u32, calls: u32) -> u64 {
        let ends = &self.threads[thread as usize];
        let last = (calls as usize).min(ends.len()).checked_sub(1);
        last.map_or(0, |last| ends[last])
    }
}

/// The row by which the program ends: its first process. `None` where the recording does not have it.
pub fn program_end(calls: &[RecordedCall]) -> Option<usize> {
    let first = calls.iter().find(|call| !call.kind.is_no_call())?;
    calls.iter().rposition(|call| ends_process(call) && call.process == first.process)
}

fn ends_process(call: &RecordedCall) -> bool {
    call.kind == CallKind::Ended && call.result != 0
}

/// The processes that were over by themselves when the program ended, and so were those that began them; the first one is among them.
fn over_before(calls: &[RecordedCall], end: usize) -> HashSet<u32> {
    let mut began_by: HashMap<u32, u32> = HashMap::new();
    let mut ended: HashSet<u32> = HashSet::new();
    for call in &calls[..=end] {
        if let (CallKind::Fork, Ok(child)) = (call.kind, u32::try_from(call.result)) {
            began_by.insert(child, call.process);
        }
        if ends_process(call) {
            ended.insert(call.process);
        }
    }
    let is_over = |process: &u32| {
        let line = std::iter::successors(Some(*process), |process| began_by.get(process).copied());
        line.take(began_by.len() + 1).all(|process| ended.contains(&process))
    };
    ended.iter().copied().filter(is_over).collect()
}

/// How long the program took in the recording: until its end, or else to the end of the last call or thread.
pub fn recorded_ns(calls: &[RecordedCall]) -> u64 {
    let counts = |call: &&RecordedCall| call.kind.is_replayed() || call.kind == CallKind::Ended;
    let last = || calls.iter().filter(counts).map(RecordedCall::end_ns).max().unwrap_or(0);
    program_end(calls).map_or_else(last, |end| calls[end].begin_ns)
}

/// How long a program takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forecast {
    /// As it seems.
    pub elapsed_ns: u64,
    /// Where its waits in vain end as soon as what ended the last of them is there.
    pub shortest_ns: u64,
    /// Where it waits in vain for as long as recorded.
    pub longest_ns: u64,
}

impl Forecast {
    /// From the begin of the recording to the program's end when calls take `durations_ns`. So much of the time before a call is SQLite's,
    /// and not the program's, as `sqlite_ns` says.
    /// # Panics
    /// Where a list is not as long as the calls.
    pub fn of(
        calls: &[RecordedCall],
        order: &CallOrder,
        durations_ns: &[u64],
        sqlite_ns: impl Fn(usize) -> u64,
    ) -> Self {
        let ns = |taken| elapsed_ns(calls, order, durations_ns, &sqlite_ns, taken);
        let seems_ns = ns(InVain::AsTheySeem);
        Self {
            elapsed_ns: seems_ns,
            shortest_ns: ns(InVain::EndEarly).min(seems_ns),
            longest_ns: ns(InVain::Stay).max(seems_ns),
        }
    }
}

/// From the begin of the recording to the program's end when calls take `durations_ns`; where the recording does not have that, to the end of
/// the last call or thread. Threads and processes that were over by themselves before the program are over before it here, too: it may have
/// looked for that, and did not have to wait. Where nobody knows how they ended, all that they did before counts.
fn elapsed_ns(
    calls: &[RecordedCall],
    order: &CallOrder,
    durations_ns: &[u64],
    sqlite_ns: impl Fn(usize) -> u64,
    taken: InVain,
) -> u64 {
    assert_eq!(calls.len(), durations_ns.len(), "each call has a duration");
    let mut thread_of = vec![0_u32; calls.len()];
    for (thread, own) in (0..).zip(&order.threads) {
        own.iter().for_each(|call| thread_of[*call as usize] = thread);
    }
    let mut ends = Ends { threads: order.threads.iter().map(|own| Vec::with_capacity(own.len())).collect() };
    let (mut in_vain, mut paces) = (WaitsInVain::of(calls, order, taken), Paces::of(calls, order));
    let program_end = program_end(calls);
    let over = program_end.filter(|end| calls[*end].result == RecordedCall::PROCESS_ENDS);
    let over = over.map(|end| over_before(calls, end));
    let counts = |index: usize| {
        let is_over = || over.as_ref().is_none_or(|over| over.contains(&calls[index].process));
        program_end.is_none_or(|end| index <= end) && is_over()
    };
    let mut elapsed_ns = 0;
    for (index, call) in calls.iter().enumerate() {
        let thread = thread_of[index];
        let of = |wait: &Wait| ends.of(wait.thread, wait.calls);
        let free_ns = ends.of(thread, u32::MAX).max(order.begins[thread as usize].as_ref().map_or(0, of));
        let ready_ns = order.waits(index).iter().map(of).max().unwrap_or(0);
        let since_ns = order.ready_ns[index].max(paces.kept_ns(thread));
        let think_ns = call.begin_ns.saturating_sub(since_ns);
        let wakeup = u32::try_from(index).ok().and_then(|index| order.wakeups.get(&index));
        let end_ns = if let Some(wakeup) = wakeup {
            let waker_ns = of(&wakeup.waker);
            let behind = &order.threads[thread as usize][ends.threads[thread as usize].len() + 1..];
            let is_last = || is_last_wait(calls, behind);
            let earlier_ns = in_vain.woken(thread, index, call, waker_ns + wakeup.after_ns, is_last);
            let own_ns = wakeup.own_ns.min(think_ns.saturating_sub(call.bytes));
            let own_ns = in_vain.own_ns(thread, own_ns, since_ns);
            paces.woken(thread);
            let wakeup = Wakeup { own_ns, ..*wakeup };
            wakeup.goes_on_ns(waker_ns, of(&wakeup.asked), free_ns).min(earlier_ns).max(ready_ns)
        } else if call.kind == CallKind::Woken {
            // Nobody knows who woke it, or nobody did: it waits for nothing, but for its pace.
            let waited = in_vain.add(thread, index, call, free_ns, think_ns);
            if in_vain.is_left_out(thread, index, call) {
                paces.leave_out(thread, call, waited)
            } else if taken == InVain::Stay && is_wait(call) {
                paces.keep_timer(thread, call, waited).unwrap_or(free_ns)
            } else {
                paces.keep(thread, index, call, waited).unwrap_or(free_ns)
            }
        } else if call.kind == CallKind::Ended {
            if counts(index) {
                elapsed_ns = elapsed_ns.max(free_ns + think_ns);
            }
            free_ns
        } else if call.kind.is_no_call() && call.kind != CallKind::Released {
            free_ns.max(ready_ns)
        } else {
            let think_ns = think_ns.saturating_sub(sqlite_ns(index));
            // Where a program ends, or another one begins in its place, it does not wait for what its threads do with their files.
            let ready_ns = if call.kind == CallKind::Released { 0 } else { ready_ns };
            let end_ns = ready_ns.max(free_ns + think_ns) + durations_ns[index];
            if over.is_none() && counts(index) {
                elapsed_ns = elapsed_ns.max(end_ns);
            }
            end_ns
        };
        ends.threads[thread as usize].push(end_ns);
    }
    elapsed_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::order::OrderFinder;
    use crate::trace::texts::Texts;

    /// A call of a thread on a description, from its begin on for so long.
    fn call(thread: u32, description: u32, begin_ns: u64, duration_ns: u64) -> RecordedCall {
        let kind = CallKind::Pwrite;
        RecordedCall { kind, thread, description, begin_ns, duration_ns, ..RecordedCall::default() }
    }

    fn order(calls: &[RecordedCall]) -> CallOrder {
        let (mut finder, mut texts) = (OrderFinder::default(), Texts::default());
        calls.iter().for_each(|call| finder.push(call, [None, None], &mut texts));
        finder.finish()
    }

    fn forecast(calls: &[RecordedCall], durations_ns: &[u64]) -> u64 {
        Forecast::of(calls, &order(calls), durations_ns, |_| 0).elapsed_ns
    }

    #[test]
    fn with_the_recorded_times_it_takes_as_long_as_in_the_recording() {
        let calls = [call(1, 1, 5, 10), call(1, 1, 20, 10), call(2, 2, 7, 100), call(1, 1, 40, 3)];
        assert_eq!(forecast(&calls, &[10, 10, 100, 3]), 107);
    }

    #[test]
    fn think_time_stays_and_calls_take_their_own_time() {
        let calls = [call(1, 1, 0, 10), call(1, 1, 15, 10)];
        assert_eq!(forecast(&calls, &[2, 1]), 8);
        assert_eq!(forecast(&calls, &[0, 0]), 5, "think time alone");
        for (sqlite_ns, expected) in [(3, 5), (9, 3)] {
            let of_sqlite = Forecast::of(&calls, &order(&calls), &[2, 1], |call| call as u64 * sqlite_ns);
            assert_eq!(of_sqlite.elapsed_ns, expected, "{sqlite_ns} of 5");
        }
    }

    #[test]
    fn a_thread_waits_for_the_other_one_where_both_use_a_file() {
        // Thread 2 does something by itself until 105, 5 ns after thread 1 is done with the description of both.
        let calls = [call(1, 1, 0, 100), call(2, 2, 0, 5), call(2, 1, 105, 10), call(3, 3, 0, 20)];
        assert_eq!(forecast(&calls, &[100, 5, 10, 20]), 115);
        assert_eq!(forecast(&calls, &[200, 5, 10, 20]), 210, "it waits");
        assert_eq!(forecast(&calls, &[1, 5, 10, 20]), 115, "its own time stays");
        assert_eq!(forecast(&calls, &[1, 5, 10, 200]), 200, "the third one is the longest");
    }

    #[test]
    fn a_thread_that_uses_a_file_of_before_waits_for_its_fork_all_the_same() {
        let present = RecordedCall { kind: CallKind::Present, ..call(2, 0, 0, 0) };
        let fork = RecordedCall { kind: CallKind::Fork, result: 2, ..call(1, 0, 110, 0) };
        let calls = [present, call(1, 1, 0, 100), fork, call(2, 2, 115, 10)];
        assert_eq!(forecast(&calls, &[0, 100, 0, 10]), 125);
        assert_eq!(forecast(&calls, &[0, 1, 0, 10]), 26);
    }

    #[test]
    fn who_is_woken_by_a_thread_that_has_done_nothing_yet_goes_on_after_its_fork() {
        let present = RecordedCall { kind: CallKind::Present, ..call(2, 0, 0, 0) };
        let fork = RecordedCall { kind: CallKind::Fork, result: 2, ..call(1, 0, 110, 0) };
        let woken = RecordedCall { kind: CallKind::Woken, result: 2, ..call(1, 0, 112, 0) };
        let calls = [present, call(1, 1, 0, 100), fork, woken, call(1, 1, 115, 10)];
        assert_eq!(forecast(&calls, &[0, 100, 0, 0, 10]), 125);
        assert_eq!(forecast(&calls, &[0, 1, 0, 0, 10]), 26);
    }

    #[test]
    fn a_woken_thread_goes_on_after_its_waker() {
        let woken = RecordedCall { kind: CallKind::Woken, result: 1, ..call(2, 0, 130, 0) };
        let calls = [call(2, 2, 0, 10), call(1, 1, 20, 100), woken, call(2, 2, 140, 10)];
        assert_eq!(forecast(&calls, &[10, 100, 0, 10]), 150);
        // The waker is over at 21, it wakes 10 later, and the call comes 10 after that.
        assert_eq!(forecast(&calls, &[10, 1, 0, 10]), 51);
    }

    #[test]
    fn what_a_thread_does_before_it_waits_stays() {
        // Thread 2 works for 90 after its call, and waits for 30 until the other one's call is over.
        let woken = RecordedCall { kind: CallKind::Woken, result: 1, bytes: 30, ..call(2, 0, 130, 0) };
        let calls = [call(2, 2, 0, 10), call(1, 1, 20, 100), woken, call(2, 2, 140, 10)];
        assert_eq!(forecast(&calls, &[10, 100, 0, 10]), 150);
        assert_eq!(forecast(&calls, &[10, 1, 0, 10]), 10 + 90 + 10 + 10);
        assert_eq!(forecast(&calls, &[0, 1, 0, 1]), 90 + 10 + 1);
    }

    /// Thread 2 saves each 20 ns or so until thread 1 tells it to end, 2 ns behind its call, and is told that it ended.
    #[test]
    fn a_thread_that_goes_on_until_it_is_told_to_end_ends_earlier() {
        let row = |thread, kind, at, result| RecordedCall { kind, result, ..call(thread, 0, at, 0) };
        let (a_file, a_sleep, earlier) = (6, 7, [61, 15, 28]);
        let goes_on = (a_sleep, false, [61, 53, 53]);
        for (awaited, ends, expected) in
            [(a_file, true, earlier), (a_file, false, earlier), (a_sleep, true, earlier), goes_on]
        {
            let waits = |at, bytes, waker| {
                let row = row(2, CallKind::Woken, at, waker);
                RecordedCall { bytes, offset: awaited, ..row }
            };
            let mut calls = vec![call(2, 2, 0, 1), call(1, 1, 0, 56), waits(21, 20, 0), call(2, 2, 23, 2)];
            calls.extend([waits(45, 20, 0), call(2, 2, 47, 1), waits(58, 8, 1)]);
            if ends {
                calls.push(row(2, CallKind::Ended, 59, 0));
            }
            calls.push(row(1, CallKind::Woken, 60, 2));
            calls.push(row(1, CallKind::Ended, 61, RecordedCall::PROCESS_ENDS));
            let found = [56, 10, 22].map(|call_ns| {
                let mut durations_ns: Vec<u64> = calls.iter().map(|call| call.duration_ns).collect();
                durations_ns[1] = call_ns;
                forecast(&calls, &durations_ns)
            });
            assert_eq!(found, expected, "{awaited}, {ends}");
        }
    }

    /// Thread 1 makes one call, or two, and wakes thread 2, or waits until that ends. Now its calls take a nanosecond.
    #[test]
    fn where_it_is_not_known_whether_waits_end_earlier_there_is_a_shortest_and_a_longest_forecast() {
        let woken = |thread, at, bytes, waker| {
            let row = RecordedCall { kind: CallKind::Woken, result: waker, ..call(thread, 0, at, 0) };
            RecordedCall { bytes, offset: 6, ..row }
        };
        let ended = |at, result| RecordedCall { kind: CallKind::Ended, result, ..call(2, 0, at, 0) };
        let ticks = |at| [woken(2, at, 20, 0), call(2, 2, at + 1, 1)];
        // The first call of 1 takes 40: 2 waits twice in vain, and is woken. Nothing is between.
        let alone = vec![call(1, 1, 0, 40), woken(2, 30, 30, 0), woken(2, 42, 42, 1), call(2, 2, 45, 1)];
        // It waits in vain again afterwards.
        let again = [alone.clone(), ticks(70).to_vec()].concat();
        // It is woken between waits of its own timer.
        let wakes = [call(1, 1, 0, 10), woken(2, 11, 11, 1), woken(2, 20, 9, 0), call(2, 2, 21, 1)];
        let timer =
            [&wakes[..], &[call(1, 1, 15, 13), woken(2, 29, 7, 1), woken(2, 40, 11, 0), call(2, 2, 41, 1)]]
                .concat();
        // It ticks, looks whether it is told, and ends.
        let looks =
            [&[call(1, 1, 0, 30), call(2, 2, 1, 1)][..], &ticks(22), &ticks(43), &[ended(46, 0)]].concat();
        // The same without the other thread: only time ends its waits.
        let by_time = looks[1..].to_vec();
        for (calls, expected) in [
            (alone, [7, 7, 34]),
            (again, [33, 33, 72]),
            (timer, [26, 21, 42]),
            (looks, [46, 7, 46]),
            (by_time, [46; 3]),
        ] {
            let durations_ns: Vec<u64> = calls.iter().map(|call| call.duration_ns.min(1)).collect();
            let Forecast { elapsed_ns, shortest_ns, longest_ns } =
                Forecast::of(&calls, &order(&calls), &durations_ns, |_| 0);
            assert_eq!([elapsed_ns, shortest_ns, longest_ns], expected, "{calls:#?}");
        }
    }

    /// A thread works for 60, 70, 50 ... ns and sleeps until 100, 200 ... are over; its work is a call.
    #[test]
    fn who_keeps_a_pace_sleeps_longer_where_its_calls_are_shorter() {
        let worked_ns = [60, 70, 50, 65, 75, 55];
        let recorded = |slept_ns: &dyn Fn(u64) -> u64| {
            let (mut calls, mut now_ns) = (Vec::new(), 0);
            for (number, worked_ns) in (0..).zip(worked_ns) {
                let slept_ns = slept_ns(worked_ns);
                calls.push(call(1, 1, now_ns, worked_ns));
                now_ns += worked_ns + slept_ns;
                let sleep = RecordedCall { kind: CallKind::Woken, bytes: slept_ns, ..call(1, 0, now_ns, 0) };
                calls.push(RecordedCall { offset: 2 * number + 1, ..sleep });
            }
            calls.push(call(1, 1, now_ns + 15, 1));
            calls
        };
        let with = |calls: &[RecordedCall], call_ns: u64| {
            let durations_ns: Vec<u64> = calls.iter().map(|call| call.duration_ns.min(call_ns)).collect();
            forecast(calls, &durations_ns)
        };
        let paced = recorded(&|worked_ns| 100 - worked_ns);
        assert_eq!(with(&paced, 100), 616);
        // The first sleep is as long as it was, so it ends at 50.
        assert_eq!(with(&paced, 10), 10 + 40 + 5 * 100 + 15 + 1);
        let fixed = recorded(&|_| 40);
        assert_eq!(with(&fixed, 10), 6 * (10 + 40) + 15 + 1, "sleeps of one length keep it");
    }

    #[test]
    fn what_a_new_thread_does_before_it_waits_stays() {
        // It begins at 110, works for 40, and waits for 50.
        let fork = RecordedCall { kind: CallKind::Fork, result: 2, ..call(1, 0, 110, 0) };
        let woken = RecordedCall { kind: CallKind::Woken, result: 1, bytes: 50, ..call(2, 0, 200, 0) };
        let calls = [call(1, 1, 0, 100), fork, call(1, 1, 115, 80), woken, call(2, 2, 205, 10)];
        assert_eq!(forecast(&calls, &[100, 0, 80, 0, 10]), 215);
        // The fork is at 11, the waker's call over at 17, and its wake-up 5 later.
        assert_eq!(forecast(&calls, &[1, 0, 1, 0, 10]), 11 + 40 + 5 + 10);
    }

    /// Thread 2 and another process go on when the program's end comes.
    #[test]
    fn it_lasts_until_the_program_ends_whatever_goes_on() {
        let of = |process, call: RecordedCall| RecordedCall { process, ..call };
        let ended =
            RecordedCall { kind: CallKind::Ended, result: RecordedCall::PROCESS_ENDS, ..call(1, 0, 300, 0) };
        let calls = [
            of(1, call(1, 1, 0, 100)),
            of(1, call(2, 2, 0, 20)),
            of(2, call(3, 3, 0, 20)),
            of(1, call(2, 2, 280, 10)),
            of(1, ended),
            of(2, call(3, 3, 350, 10)),
            of(2, RecordedCall { begin_ns: 370, thread: 3, ..ended }),
        ];
        assert_eq!(forecast(&calls, &[100, 20, 20, 10, 0, 10, 0]), 300);
        assert_eq!(forecast(&calls, &[1, 20, 20, 10, 0, 10, 0]), 201);
        assert_eq!((program_end(&calls), recorded_ns(&calls)), (Some(4), 300));
        // One that was over is so again.
        let over = of(1, RecordedCall { result: 0, begin_ns: 290, thread: 2, ..ended });
        let before: Vec<RecordedCall> =
            calls[..4].iter().copied().chain([over]).chain(calls[4..].iter().copied()).collect();
        assert_eq!(forecast(&before, &[1, 20, 20, 60, 0, 0, 10, 0]), 340);
        assert_eq!(forecast(&before, &[1, 20, 20, 10, 0, 0, 10, 0]), 290);
        // Process 3 was over, but process 2, which began it, was not.
        let fork = |process, child| {
            of(process, RecordedCall { kind: CallKind::Fork, result: child, ..call(2, 0, 20, 0) })
        };
        let child_ended = of(3, RecordedCall { begin_ns: 280, thread: 4, ..ended });
        let mut begun = vec![fork(1, 2), fork(2, 3)];
        begun.extend(&calls[..4]);
        begun.extend([child_ended, calls[4]]);
        assert_eq!(over_before(&begun, 7), HashSet::from([1]));
        begun.insert(6, of(2, RecordedCall { begin_ns: 281, thread: 3, ..ended }));
        assert_eq!(over_before(&begun, 8), HashSet::from([1, 2, 3]));
        // By a tracer nobody knows how others ended.
        let told = RecordedCall { result: RecordedCall::PROGRAM_ENDS, ..calls[4] };
        let by_tracer = [calls[0], calls[3], told, calls[5]];
        assert_eq!(forecast(&by_tracer, &[1, 10, 0, 10]), 290);
        // A thread's end is not the program's.
        let calls = [calls[0], calls[1], RecordedCall { result: 0, ..calls[4] }, calls[5]];
        assert_eq!((program_end(&calls), recorded_ns(&calls)), (None, 360));
    }

    #[test]
    fn a_thread_that_goes_on_after_its_last_call_takes_until_its_end() {
        let ended = RecordedCall { kind: CallKind::Ended, ..call(1, 0, 300, 0) };
        let calls = [call(1, 1, 0, 100), call(2, 2, 0, 20), ended];
        assert_eq!(forecast(&calls, &[100, 20, 0]), 300);
        assert_eq!(forecast(&calls, &[1, 20, 0]), 201);
        assert_eq!(forecast(&calls, &[1, 400, 0]), 400, "the other one is longer");
        let fork = RecordedCall { kind: CallKind::Fork, result: 3, ..call(1, 0, 110, 0) };
        let calls = [call(1, 1, 0, 100), fork, RecordedCall { thread: 3, ..ended }];
        assert_eq!(forecast(&calls, &[1, 0, 0]), 201, "after its fork");
    }
}
