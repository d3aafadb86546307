//! Waits that end in vain: a thread would not have gone on after them had it been woken earlier.

use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::order::CallOrder;

/// A wait in vain of a thread, in the forecast.
#[derive(Debug, Clone, Copy)]
pub struct WaitInVain {
    awaited: u64,
    /// When it begins.
    pub begin_ns: u64,
    /// When it ends.
    pub end_ns: u64,
}

/// Those of each thread, in their order.
pub struct WaitsInVain {
    threads: Vec<Vec<WaitInVain>>,
}

impl WaitsInVain {
    /// None yet.
    pub fn of(order: &CallOrder) -> Self {
        Self { threads: order.threads.iter().map(|_| Vec::new()).collect() }
    }

    /// A thread that was free at `free_ns` has waited in vain, and is so for `before_ns` now.
    pub fn add(&mut self, thread: u32, call: &RecordedCall, free_ns: u64, before_ns: u64) -> WaitInVain {
        let end_ns = free_ns + before_ns;
        let begin_ns = end_ns.saturating_sub(call.bytes);
        let wait = WaitInVain { awaited: call.offset, begin_ns, end_ns };
        if call.waits_in_vain() {
            self.threads[thread as usize].push(wait);
        }
        wait
    }

    /// When a thread goes on that is woken at `woken_ns`: if it waited for the same then, or later, it was woken there. `u64::MAX` where it did
    /// not. Sleeps count where the thread ends afterwards, and waits no more: it slept until it was told to end.
    pub fn woken(&mut self, thread: u32, call: &RecordedCall, woken_ns: u64, is_last: bool) -> u64 {
        if call.kind != CallKind::Woken {
            return u64::MAX;
        }
        let own = &mut self.threads[thread as usize];
        let counts = |wait: &&WaitInVain| wait.awaited == call.offset && wait.end_ns > woken_ns;
        let found = own.iter().find(counts).filter(|_| is_last || !call.awaits_time());
        let goes_on_ns = found.map_or(u64::MAX, |wait| wait.begin_ns.max(woken_ns));
        own.retain(|wait| wait.awaited != call.offset && wait.awaited % 2 == 0);
        goes_on_ns
    }
}

/// True of a row of a thread behind which it ends by itself, and waits no more.
pub fn is_last_wait(calls: &[RecordedCall], behind: &[u32]) -> bool {
    let no_call = |row: &&u32| matches!(calls[**row as usize].kind, CallKind::Woken | CallKind::Ended);
    behind.iter().find(no_call).is_some_and(|row| calls[*row as usize].kind == CallKind::Ended)
}
