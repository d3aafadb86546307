//! Waits that end in vain: a thread would not have gone on after them had it been woken earlier.

use std::collections::{HashMap, HashSet};

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

/// What is taken of waits in vain, where the recording does not tell whether the program has to make them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InVain {
    /// They end early where a thread seems to wait until it is told to end.
    AsTheySeem,
    /// All of them end as soon as what ended the last of them is there.
    EndEarly,
    /// All of them last as long as recorded.
    Stay,
}

/// Those of a thread since it was woken last.
#[derive(Default)]
struct OfThread {
    /// By what it slept for. A wake-up ends all of it.
    sleeps: HashMap<u64, Vec<WaitInVain>>,
    /// By what it waited for. A wake-up ends what is for the same.
    others: HashMap<u64, Vec<WaitInVain>>,
}

impl OfThread {
    /// Those that end early as it seems: of who waits in vain again afterwards none does. `is_last`: the thread ends afterwards, and waits no
    /// more. So it slept until it was told to end.
    fn as_they_seem(
        &mut self,
        call: &RecordedCall,
        is_last_row: bool,
        is_last: impl Fn() -> bool,
    ) -> Vec<WaitInVain> {
        let slept = std::mem::take(&mut self.sleeps).remove(&call.offset);
        let (waits, is_told_to_end) = match call.awaits_time() {
            true => (slept.map(last_loop), is_last()),
            false => (self.others.remove(&call.offset), is_last_row),
        };
        waits.filter(|_| is_told_to_end).unwrap_or_default()
    }

    /// All that may: whatever they are for, and whatever the thread does afterwards. Sleeps where something ended the last of them.
    fn all(&mut self, call: &RecordedCall) -> Vec<WaitInVain> {
        let Self { sleeps, others } = std::mem::take(self);
        let waits = if call.awaits_time() { sleeps } else { others };
        let mut waits: Vec<WaitInVain> = waits.into_values().flatten().collect();
        waits.sort_unstable_by_key(|wait| wait.end_ns);
        waits
    }
}

/// Those of each thread, in their order.
pub struct WaitsInVain {
    taken: InVain,
    threads: Vec<OfThread>,
    /// By thread its last row of such a wait, but for sleeps.
    last_rows: Vec<usize>,
    /// Rows of which the next one tells again, by which another thread woke this one.
    told_again: HashSet<usize>,
    /// By thread when the last one ended in the recording, but for sleeps.
    until_ns: Vec<u64>,
    /// By thread its last row by which another one woke it; `usize::MAX` where nobody knows how it ended.
    last_woken: Vec<usize>,
}

impl WaitsInVain {
    /// None yet.
    pub fn of(calls: &[RecordedCall], order: &CallOrder, taken: InVain) -> Self {
        let rows = || order.threads.iter().map(|own| own.iter().map(|row| *row as usize));
        let told_again: HashSet<usize> =
            order.threads.iter().flat_map(|own| told_again(calls, own)).collect();
        let is_wait = |row: &usize| is_wait(&calls[*row]) && !told_again.contains(row);
        let last_rows = rows().map(|mut own| own.rfind(is_wait).unwrap_or(0)).collect();
        let is_woken = |row: &usize| calls[*row].kind == CallKind::Woken && calls[*row].result != 0;
        // Who is alone waits for time.
        let is_alone = order.threads.len() < 2;
        let last_woken = rows().map(|mut own| {
            let ends = own.clone().any(|row| calls[row].kind == CallKind::Ended);
            if ends && !is_alone { own.rfind(is_woken).unwrap_or(0) } else { usize::MAX }
        });
        let last_woken = last_woken.collect();
        let threads = order.threads.iter().map(|_| OfThread::default()).collect();
        let until_ns = vec![0; order.threads.len()];
        Self { taken, threads, last_rows, told_again, until_ns, last_woken }
    }

    /// How long a woken thread had time of its own before: in the longest forecast to the end of its last wait in vain.
    pub fn own_ns(&self, thread: u32, own_ns: u64, ready_ns: u64) -> u64 {
        match self.taken {
            InVain::Stay => own_ns.max(self.until_ns[thread as usize].saturating_sub(ready_ns)),
            _ => own_ns,
        }
    }

    /// True of a wait in vain behind which others no longer woke its thread, which ended by itself: whatever told it to end may have told it
    /// earlier.
    pub fn is_left_out(&self, thread: u32, row: usize, call: &RecordedCall) -> bool {
        self.taken == InVain::EndEarly && is_wait(call) && row > self.last_woken[thread as usize]
    }

    /// A thread that was free at `free_ns` has waited in vain, and is so for `before_ns` now.
    pub fn add(
        &mut self,
        thread: u32,
        row: usize,
        call: &RecordedCall,
        free_ns: u64,
        before_ns: u64,
    ) -> WaitInVain {
        let end_ns = free_ns + before_ns;
        let wait = WaitInVain { begin_ns: end_ns.saturating_sub(call.bytes).max(free_ns), end_ns };
        if is_wait(call) {
            self.until_ns[thread as usize] = call.begin_ns;
        }
        if call.waits_in_vain() && !(self.taken == InVain::AsTheySeem && self.told_again.contains(&row)) {
            let own = &mut self.threads[thread as usize];
            let own = if call.awaits_time() { &mut own.sleeps } else { &mut own.others };
            own.entry(call.offset).or_default().push(wait);
        }
        wait
    }

    /// When a thread goes on that is woken by a row at `woken_ns`: if it waited for the same then, or later, it was woken there. `u64::MAX`
    /// where it did not, or has all its waits.
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
        let waits = match self.taken {
            InVain::AsTheySeem => own.as_they_seem(call, row > self.last_rows[thread as usize], is_last),
            InVain::EndEarly => own.all(call),
            InVain::Stay => Vec::new(),
        };
        let found = waits.iter().find(|wait| wait.end_ns > woken_ns);
        found.map_or(u64::MAX, |wait| wait.begin_ns.max(woken_ns))
    }
}

/// True of a wait in vain for others.
pub fn is_wait(call: &RecordedCall) -> bool {
    call.waits_in_vain() && !call.awaits_time()
}

/// Of a thread's rows the waits in vain of which the next row tells again: it is the end of a wait for the same, that one among them.
fn told_again<'a>(calls: &'a [RecordedCall], own: &'a [u32]) -> impl Iterator<Item = usize> + 'a {
    let is_same = |one: &RecordedCall, next: &RecordedCall| {
        let is_end = next.kind == CallKind::Woken && next.result != 0 && next.offset == one.offset;
        is_end && next.begin_ns.saturating_sub(next.bytes) < one.begin_ns
    };
    let two = own.windows(2).map(|two| [two[0] as usize, two[1] as usize]);
    two.filter(move |[one, next]| is_wait(&calls[*one]) && is_same(&calls[*one], &calls[*next]))
        .map(|[one, _]| one)
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
        taken_ns(InVain::AsTheySeem, awaited, waits, wakes_between, is_last)
    }

    fn taken_ns(
        taken: InVain,
        awaited: u64,
        waits: &[(u64, u64)],
        wakes_between: bool,
        is_last: bool,
    ) -> u64 {
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
        let mut found = WaitsInVain::of(&calls, &order, taken);
        for (row, (end_ns, _)) in waits.iter().enumerate().take(woken) {
            found.add(0, row, &calls[row], 0, *end_ns);
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
    fn all_or_none_end_early_whatever_the_thread_does_afterwards() {
        let waits = [(30, 15), (60, 20)];
        for awaited in [2, 3] {
            let ns = |taken| taken_ns(taken, awaited, &waits, true, false);
            assert_eq!((ns(InVain::EndEarly), ns(InVain::Stay)), (15, u64::MAX), "{awaited}");
        }
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
