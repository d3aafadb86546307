//! Where a write or read goes in its file: at its own offset, or where the description stands.

use std::collections::HashMap;

use crate::recording::call::{CallKind, RecordedCall};

/// No call of Linux moves more (MAX_RW_COUNT, fs.h); a recording that says so is not believed.
const MOVED_BYTES_MAX: i64 = 0x7fff_f000;

/// Where each open file description stands.
#[derive(Debug, Default)]
pub struct Positions(HashMap<u32, u64>);

impl Positions {
    /// Takes the next call. Of one that moved bytes, the offset of the first.
    pub fn place(&mut self, call: &RecordedCall) -> Option<u64> {
        match call.kind {
            CallKind::Open if call.result >= 0 => {
                self.0.insert(call.description, 0);
                None
            }
            CallKind::Lseek if call.result >= 0 => {
                self.0.insert(call.description, call.result.unsigned_abs());
                None
            }
            CallKind::Pread | CallKind::Preadv | CallKind::Pwrite | CallKind::Pwritev => {
                (1..=MOVED_BYTES_MAX).contains(&call.result).then_some(call.offset)
            }
            CallKind::Read | CallKind::Readv | CallKind::Write | CallKind::Writev
                if (1..=MOVED_BYTES_MAX).contains(&call.result) =>
            {
                let position = self.0.entry(call.description).or_default();
                let offset = *position;
                *position = position.saturating_add(call.moved_bytes());
                Some(offset)
            }
            _ => None,
        }
    }
}
