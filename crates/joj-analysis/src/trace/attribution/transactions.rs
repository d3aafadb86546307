//! SQLite's commits and checkpoints, seen by the locks that it takes.
//!
//! A rollback-journal transaction holds RESERVED (byte 0x40000001 of the database) from its first change to its end; a
//! transaction in WAL mode holds byte 120 of the wal-index, a checkpoint byte 121 (sqlite.org/lockingv3.html, walformat.html).
//! A sync of the log that follows in the same thread after the lock was given back belongs to the commit still: that is how
//! an extension shares flushes. In exclusive locking mode there are no such locks, and so no commits.

use std::collections::HashMap;

use crate::trace::attribution::files::FileInfo;
use crate::trace::attribution::request::{Work, WorkId, WorkKind};
use crate::trace::class::Class;
use crate::trace::event::{Event, FileKey};
use crate::trace::file_type::FileType;

const RESERVED_BYTE: u64 = 0x4000_0001;
const WAL_WRITE_BYTE: u64 = 120;
const WAL_CHECKPOINT_BYTE: u64 = 121;
/// `detail` of a lock event (F_WRLCK, F_UNLCK).
const WRITE_LOCK: i64 = 1;
const UNLOCK: i64 = 2;

/// Work under way, and the last of each thread.
#[derive(Debug, Default)]
pub struct Works {
    of_thread: HashMap<u32, Work>,
    /// Who has a file's lock byte.
    holders: HashMap<(u32, FileKey, u64), u32>,
    threads: HashMap<WorkId, u32>,
    begun: u64,
}

impl Works {
    /// A lock was set or given back. Returns the thread's work before, if it is over now for good.
    pub fn lock(&mut self, event: &Event, info: FileInfo) -> Option<Work> {
        match event.detail {
            WRITE_LOCK => self.begin(event, info),
            UNLOCK => {
                for byte in [RESERVED_BYTE, WAL_WRITE_BYTE, WAL_CHECKPOINT_BYTE] {
                    if event.offset <= byte && (event.bytes == 0 || byte - event.offset < event.bytes) {
                        self.end(event, byte);
                    }
                }
                None
            }
            _ => None,
        }
    }

    fn begin(&mut self, event: &Event, info: FileInfo) -> Option<Work> {
        let kind = match (event.offset, event.bytes) {
            (RESERVED_BYTE, 1) => WorkKind::Commit,
            (WAL_WRITE_BYTE, 1) => WorkKind::Commit,
            (WAL_CHECKPOINT_BYTE, 1) => WorkKind::Checkpoint,
            _ => return None,
        };
        // A checkpoint that starts the log anew takes the write lock as well.
        let busy = self.of_thread.get(&event.thread).is_some_and(|work| work.ended_ns.is_none());
        if busy {
            return None;
        }
        let id = WorkId(self.begun);
        self.begun += 1;
        self.holders.insert((event.process, event.file, event.offset), event.thread);
        self.threads.insert(id, event.thread);
        let work = Work {
            id,
            kind,
            file: event.file,
            name: info.name,
            thread: event.thread,
            process: event.process,
            command: event.command,
            begun_ns: event.time_ns,
            ended_ns: None,
            syncs: 0,
            bytes: [0; Class::ALL.len()],
            journal_of_journal_bytes: 0,
            writes: 0,
            flushes: 0,
        };
        let before = self.of_thread.insert(event.thread, work);
        if let Some(before) = &before {
            self.threads.remove(&before.id);
        }
        before
    }

    fn end(&mut self, event: &Event, byte: u64) {
        let Some(thread) = self.holders.remove(&(event.process, event.file, byte)) else { return };
        if let Some(work) = self.of_thread.get_mut(&thread).filter(|work| work.file == event.file) {
            work.ended_ns.get_or_insert(event.time_ns);
        }
    }

    /// The work that a sync call of a thread belongs to, which counts it.
    pub fn sync(&mut self, thread: u32, file_type: FileType) -> Option<WorkId> {
        let work = self.of_thread.get_mut(&thread)?;
        let late = work.kind == WorkKind::Commit && work.syncs == 0 && file_type == FileType::WriteAheadLog;
        (work.ended_ns.is_none() || late).then(|| {
            work.syncs += 1;
            work.id
        })
    }

    /// What a thread is in the middle of.
    pub fn under_way(&self, thread: u32) -> Option<WorkId> {
        self.of_thread.get(&thread).filter(|work| work.ended_ns.is_none()).map(|work| work.id)
    }

    /// Work that may still get requests.
    pub fn get_mut(&mut self, id: WorkId) -> Option<&mut Work> {
        self.of_thread.get_mut(self.threads.get(&id)?)
    }

    /// What kind of work it is, as long as it may get requests.
    pub fn kind(&self, id: WorkId) -> Option<WorkKind> {
        Some(self.of_thread.get(self.threads.get(&id)?)?.kind)
    }

    /// Everything that is left, in the order in which it began.
    pub fn finish(&mut self) -> Vec<Work> {
        let mut left: Vec<Work> = std::mem::take(&mut self.of_thread).into_values().collect();
        left.sort_by_key(|work| work.id);
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(time_ns: u64, thread: u32, offset: u64, bytes: u64, detail: i64) -> Event {
        let file = FileKey { inode: 7, ..FileKey::NONE };
        Event { time_ns, thread, process: 1, offset, bytes, detail, file, ..Event::default() }
    }

    #[test]
    fn a_transaction_lasts_from_reserved_to_its_unlock() {
        let mut works = Works::default();
        assert_eq!(works.lock(&lock(1, 5, RESERVED_BYTE, 1, 1), FileInfo::default()), None);
        let inside = works.sync(5, FileType::SqliteDatabase);
        // SQLite gives back PENDING and RESERVED at once.
        works.lock(&lock(9, 5, RESERVED_BYTE - 1, 2, 2), FileInfo::default());
        assert_eq!(
            (inside, works.under_way(5), works.sync(5, FileType::SqliteDatabase)),
            (Some(WorkId(0)), None, None)
        );
        let before = works.lock(&lock(11, 5, RESERVED_BYTE, 1, 1), FileInfo::default()).expect("the first");
        assert_eq!((before.begun_ns, before.ended_ns, before.syncs), (1, Some(9), 1));
    }

    #[test]
    fn a_shared_flush_after_the_lock_belongs_to_the_commit() {
        let mut works = Works::default();
        works.lock(&lock(1, 5, WAL_WRITE_BYTE, 1, 1), FileInfo::default());
        works.lock(&lock(2, 5, WAL_WRITE_BYTE, 1, 2), FileInfo::default());
        assert_eq!(works.sync(5, FileType::WriteAheadLog), Some(WorkId(0)));
        assert_eq!(works.sync(5, FileType::WriteAheadLog), None, "one flush is enough for a commit");
    }

    #[test]
    fn a_checkpoint_is_no_commit_even_where_it_takes_the_write_lock() {
        let mut works = Works::default();
        works.lock(&lock(1, 5, WAL_CHECKPOINT_BYTE, 1, 1), FileInfo::default());
        works.lock(&lock(2, 5, WAL_WRITE_BYTE, 1, 1), FileInfo::default());
        works.lock(&lock(3, 5, WAL_WRITE_BYTE, 1, 2), FileInfo::default());
        assert_eq!(works.under_way(5), Some(WorkId(0)));
        works.lock(&lock(4, 6, 0, 0, 2), FileInfo::default());
        let left = works.finish();
        assert_eq!((left.len(), left[0].kind, left[0].ended_ns), (1, WorkKind::Checkpoint, Some(4)));
    }
}
