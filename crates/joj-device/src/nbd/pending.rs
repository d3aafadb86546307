//! Answers that wait for their time.

use std::collections::BTreeMap;

/// Ordered by completion, then by submission.
#[derive(Debug, Default)]
pub(super) struct Pending {
    replies: BTreeMap<(u64, u64), Vec<u8>>,
    added: u64,
}

impl Pending {
    pub fn add(&mut self, done_ns: u64, reply: Vec<u8>) {
        self.added += 1;
        self.replies.insert((done_ns, self.added), reply);
    }

    /// Completion of the next answer.
    pub fn next_ns(&self) -> Option<u64> {
        self.replies.first_key_value().map(|((done_ns, _), _)| *done_ns)
    }

    /// The next answer and its completion, if that is not after `now_ns`.
    pub fn take_due(&mut self, now_ns: u64) -> Option<(u64, Vec<u8>)> {
        let done_ns = self.next_ns().filter(|done_ns| *done_ns <= now_ns)?;
        self.replies.pop_first().map(|(_, reply)| (done_ns, reply))
    }
}
