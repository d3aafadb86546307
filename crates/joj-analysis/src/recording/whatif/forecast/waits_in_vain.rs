//! Waits that end in vain: a thread would not have gone on after them had it been woken earlier.

use std::collections::HashMap;

use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::order::CallOrder;

/// A wait in vain of a thread, in the forecast.
#[derive(Debug, Clone, Copy)]
pub struct WaitInVain {
    /// When it begins.
    pub begin_ns: u64,
    /// When it ends.
    pub end_ns: u64,
}

/// Those of a thread since it was woken last.
#[derive(Default)]
struct OfThread {
    /// By what it slept for. A wake-up ends all of it.
    sleeps: HashMap<u64, Vec<WaitInVain>>,
    /// By what it waited for. A wake-up ends what is for the same.
    others: HashMap<u64, Vec<WaitInVain>>,
}

/// Those of each thread, in their order.
pub struct WaitsInVain {
    threads: Vec<OfThread>,
    /// By thread its last row of such a wait, but for sleeps.
    last_rows: Vec<usize>,
}

impl WaitsInVain {
    /// None yet.
    pub fn of(calls: &[RecordedCall], order: &CallOrder) -> Self {
        let waits = |row: &&u32| {
            let call = &calls[**row as usize];
            call.waits_in_vain() && !call.awaits_time()
        };
        let last = |own: &Vec<u32>| own.iter().rfind(waits).map_or(0, |row| *row as usize);
        let threads = order.threads.iter().map(|_| OfThread::default()).collect();
        Self { threads, last_rows: order.threads.iter().map(last).collect() }
    }

    /// A thread that was free at `free_ns` has waited in vain, and is so for `before_ns` now.
    pub fn add(&mut self, thread: u32, call: &RecordedCall, free_ns: u64, before_ns: u64) -> WaitInVain {
        let end_ns = free_ns + before_ns;
        let wait = WaitInVain { begin_ns: end_ns.saturating_sub(call.bytes), end_ns };
        if call.waits_in_vain() {
            let own = &mut self.threads[thread as usize];
            let own = if call.awaits_time() { &mut own.sleeps } else { &mut own.others };
            own.entry(call.offset).or_default().push(wait);
        }
        wait
    }

    /// When a thread goes on that is woken by a row at `woken_ns`: if it waited for the same then, or later, it was woken there. `u64::MAX`
    /// where it did not. Who waits in vain again afterwards was not told to end: it keeps a time of its own. Sleeps count where the thread
    /// ends afterwards, and waits no more (`is_last`): it slept until it was told to end.
    pub fn woken(
        &mut self,
        thread: u32,
        row: usize,
        call: &RecordedCall,
        woken_ns: u64,
        is_last: impl Fn() -> bool,
    ) -> u64 {
        if call.kind != CallKind::Woken {
            return u64::MAX;
        }
        let own = &mut self.threads[thread as usize];
        let slept = std::mem::take(&mut own.sleeps).remove(&call.offset);
        let (waits, is_told_to_end) = match call.awaits_time() {
            true => (slept.map(last_loop), is_last()),
            false => (own.others.remove(&call.offset), row > self.last_rows[thread as usize]),
        };
        let waits = waits.filter(|_| is_told_to_end).unwrap_or_default();
        let found = waits.iter().find(|wait| wait.end_ns > woken_ns);
        found.map_or(u64::MAX, |wait| wait.begin_ns.max(woken_ns))
    }
}

/// The last loop of sleeps. One that does nothing between is a single long one, and what was before it is not of it.
fn last_loop(mut slept: Vec<WaitInVain>) -> Vec<WaitInVain> {
    let length_ns = |wait: &WaitInVain| wait.end_ns - wait.begin_ns;
    if let [.., before, last] = slept[..]
        && length_ns(&last) > length_ns(&before) / 2 * 3
    {
        slept = vec![last];
    }
    slept
}

/// True where a thread ends by itself after a row, and waits no more; these are its rows after that one.
pub fn is_last_wait(calls: &[RecordedCall], behind: &[u32]) -> bool {
    let no_call = |row: &&u32| matches!(calls[**row as usize].kind, CallKind::Woken | CallKind::Ended);
    behind.iter().find(no_call).is_some_and(|row| calls[*row as usize].kind == CallKind::Ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits in vain of this thread, each with its end and its length, and when the row goes on that is woken from such a wait at 10 ns.
    fn goes_on_ns(awaited: u64, waits: &[(u64, u64)], wakes_between: bool, is_last: bool) -> u64 {
        let row = |bytes, result| RecordedCall {
            kind: CallKind::Woken,
            bytes,
            result,
            offset: awaited,
            ..RecordedCall::default()
        };
        let mut calls: Vec<RecordedCall> = waits.iter().map(|(_, bytes)| row(*bytes, 0)).collect();
        let woken = if wakes_between { 1 } else { calls.len() };
        calls.insert(woken, row(5, 1));
        let mut order = CallOrder::default();
        order.threads.push((0..).take(calls.len()).collect());
        let mut found = WaitsInVain::of(&calls, &order);
        for (call, (end_ns, _)) in calls[..woken].iter().zip(waits) {
            found.add(0, call, 0, *end_ns);
        }
        found.woken(0, woken, &calls[woken], 10, || is_last)
    }

    #[test]
    fn who_is_woken_earlier_goes_on_in_the_first_wait_that_was_not_over() {
        let waits = [(8, 5), (30, 15), (60, 20)];
        assert_eq!(goes_on_ns(2, &waits, false, false), 15);
        assert_eq!(goes_on_ns(2, &waits[1..], true, false), u64::MAX, "it waits in vain again afterwards");
        assert_eq!(goes_on_ns(2, &waits[..1], false, false), u64::MAX, "it was over");
    }

    #[test]
    fn sleeps_are_one_loop_where_they_are_alike_and_the_thread_ends() {
        let waits = [(30, 15), (60, 20)];
        assert_eq!(goes_on_ns(3, &waits, false, true), 15);
        assert_eq!(goes_on_ns(3, &waits, false, false), u64::MAX, "it goes on");
        assert_eq!(
            goes_on_ns(3, &[(30, 15), (80, 40)], false, true),
            40,
            "the last one is many, with nothing between"
        );
    }
}
