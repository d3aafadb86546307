//! Waits for locks of files that other processes hold: the program asks again until one is free.
//!
//! ```text
//! A  lock -- write -- fsync -- unlock                    who gave it back last
//! B             lock? -- sleep -- lock? -- sleep -- lock   all of it, after the first time, is a wait
//! ```
//!
//! Between two times it only looks: SQLite gives its reader's lock back, takes it again, and reads the first page. What it does else ends the
//! wait in vain. Sources: fcntl_locking(2); os_unix.c of SQLite.

use std::collections::HashMap;

use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::file_tree::FileIndex;
use crate::recording::flags::{EAGAIN, UNLOCKED};

use super::{CallPlace, Wait, is_look};

/// Bytes that a process gave back.
#[derive(Debug)]
struct Unlock {
    process: u32,
    bytes: std::ops::Range<u64>,
    place: CallPlace,
}

/// A lock that a thread asks for in vain.
#[derive(Debug)]
struct LockInVain {
    file: FileIndex,
    first_byte: u64,
    since_ns: u64,
    row: Wait,
}

/// A lock that a thread got, and what it waited for.
#[derive(Debug)]
pub struct LockWait {
    /// Who gave it back.
    pub unlock: CallPlace,
    /// Since when it asked,
    pub since_ns: u64,
    /// and by which row.
    pub asked: Wait,
}

/// The locks so far.
#[derive(Debug, Default)]
pub struct LockWaits {
    /// By thread.
    asked: HashMap<u32, Vec<LockInVain>>,
    /// Of each file the last one of each process.
    unlocks: HashMap<FileIndex, Vec<Unlock>>,
}

impl LockWaits {
    /// The next call. Gives the wait that is over by it.
    pub fn pass(
        &mut self,
        call: &RecordedCall,
        file: Option<FileIndex>,
        place: CallPlace,
    ) -> Option<LockWait> {
        if call.kind != CallKind::Lock {
            if !call.kind.is_no_call() && !is_look(call) {
                self.asked.remove(&call.thread);
            }
            if call.kind == CallKind::Close {
                self.gives_back(file?, call.process, 0..u64::MAX, place);
            }
            return None;
        }
        let (file, bytes) = (file?, call.locked_bytes());
        if call.flags == UNLOCKED {
            self.gives_back(file, call.process, bytes, place);
            return None;
        }
        let asked = self.asked.entry(call.thread).or_default();
        let known = asked.iter().position(|asked| (asked.file, asked.first_byte) == (file, call.offset));
        if call.result == -EAGAIN {
            if known.is_none() {
                let (since_ns, row) = (call.begin_ns, place.waited_for());
                asked.push(LockInVain { file, first_byte: call.offset, since_ns, row });
            }
            return None;
        }
        let LockInVain { since_ns, row, .. } = asked.swap_remove(known?);
        let is_for_it = |unlock: &&Unlock| {
            let is_in_time = unlock.place.end_ns >= since_ns && unlock.place.begin_ns <= call.end_ns();
            let is_same = unlock.bytes.start < bytes.end && unlock.bytes.end > bytes.start;
            is_in_time && is_same && unlock.process != call.process
        };
        let unlocks = self.unlocks.get(&file)?.iter().filter(is_for_it);
        let unlock = unlocks.max_by_key(|unlock| unlock.place.end_ns)?.place;
        Some(LockWait { unlock, since_ns, asked: row })
    }

    fn gives_back(&mut self, file: FileIndex, process: u32, bytes: std::ops::Range<u64>, place: CallPlace) {
        let unlocks = self.unlocks.entry(file).or_default();
        unlocks.retain(|other| other.process != process || other.bytes != bytes);
        unlocks.push(Unlock { process, bytes, place });
    }
}
