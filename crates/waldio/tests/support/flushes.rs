//! Which flush made a commit durable, read from the log of the disk: an opinion that owes nothing to waldio's own counts.

use std::collections::BTreeSet;
use std::path::Path;

use blockio::simulated::log::{Inode, Op, Record, WriteFlags};

use super::actor::Commit;

/// The records of one run, and which files of it are logs.
pub struct Flushes<'run> {
    records: &'run [Record],
    logs: BTreeSet<Inode>,
}

impl<'run> Flushes<'run> {
    /// Finds the logs: files that ever had a log's name.
    pub fn of(records: &'run [Record]) -> Self {
        let is_log = |path: &Path| path.to_string_lossy().ends_with("-wal");
        let log = |record: &Record| match &record.op {
            Op::Create { path, inode } if is_log(path) => Some(*inode),
            Op::Rename { to, inode, .. } if is_log(to) => Some(*inode),
            _ => None,
        };
        Flushes { records, logs: records.iter().filter_map(log).collect() }
    }

    /// Whether this record is a flush of a log that failed, or a sync of its name that did.
    fn is_failed(&self, record: &Record) -> bool {
        record.failed
            && match &record.op {
                Op::SyncData { inode } => self.logs.contains(inode),
                Op::Write { inode, flags, .. } => *flags == WriteFlags::Durable && self.logs.contains(inode),
                Op::SyncDir { .. } => true,
                _ => false,
            }
    }

    /// Where the first flush of a log failed.
    pub fn first_failed(&self) -> Option<usize> {
        self.records.iter().position(|record| self.is_failed(record))
    }

    /// Whether the log's name was not made durable before COMMIT returned: then its bytes are of no use.
    pub fn is_name_lost(&self, commit: &Commit) -> bool {
        let name = |record: &Record| record.failed && matches!(record.op, Op::SyncDir { .. });
        self.records[commit.frame_at..commit.returned_at].iter().any(name)
    }

    /// Where the flush stands that made `commit` durable: one that began after its last frame was in the file, with no
    /// failed one in between, because the kernel calls pages clean after that.
    pub fn covering(&self, commit: &Commit) -> Option<usize> {
        let published_at = commit.published_at.unwrap_or(commit.returned_at);
        // Reserved space is zeros.
        let is_frame = |record: &Record| match &record.op {
            Op::Write { inode, data, .. } => self.logs.contains(inode) && data.iter().any(|byte| *byte != 0),
            _ => false,
        };
        let own = &self.records[commit.frame_at..published_at];
        let last = commit.frame_at + own.iter().rposition(is_frame)?;
        if self.records[last].failed {
            return None;
        }
        if matches!(self.records[last].op, Op::Write { flags: WriteFlags::Durable, .. }) {
            return Some(last);
        }
        for (at, record) in self.records.iter().enumerate().skip(last + 1) {
            match &record.op {
                _ if self.is_failed(record) => return None,
                Op::SyncData { inode } if self.logs.contains(inode) => return Some(at),
                _ => {}
            }
        }
        None
    }
}
