//! Whether several threads sync in the same time. Then it matters when each sync is made: two at once may take twice as long.

use std::collections::HashMap;

use crate::recording::Recording;

/// True where a thread makes its first sync before another one that has begun makes its last.
pub fn threads_sync_together(recording: &Recording) -> bool {
    let mut spans: HashMap<u32, (u64, u64)> = HashMap::new();
    for call in recording.calls.iter().filter(|call| call.kind.is_sync()) {
        spans.entry(call.thread).or_insert((call.begin_ns, 0)).1 = call.begin_ns;
    }
    let mut spans: Vec<(u64, u64)> = spans.into_values().collect();
    spans.sort_unstable();
    spans.windows(2).any(|two| two[1].0 < two[0].1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::call::{CallKind, RecordedCall};

    #[test]
    fn spans_of_two_threads_overlap_or_follow_each_other() {
        let sync = |thread, begin_ns| RecordedCall {
            kind: CallKind::Fsync,
            thread,
            begin_ns,
            ..RecordedCall::default()
        };
        let of = |calls: &[(u32, u64)]| {
            let calls = calls.iter().map(|(thread, begin_ns)| sync(*thread, *begin_ns)).collect();
            threads_sync_together(&Recording { calls, ..Recording::default() })
        };
        assert!(!of(&[]) && !of(&[(1, 5)]) && !of(&[(1, 5), (1, 7)]));
        assert!(!of(&[(1, 5), (1, 7), (2, 8), (2, 9)]));
        assert!(of(&[(1, 5), (2, 6), (1, 7)]));
        assert!(of(&[(1, 5), (2, 6), (2, 8), (1, 9)]));
    }
}
