//! For tests: one connection on a simulated disk, with a wal-index that the test writes itself.

use std::path::Path;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use blockio::disk::{Disk, OpenOptions};
use blockio::simulated::crash_states::Bounds;
use blockio::simulated::disk::SimDisk;
use blockio::simulated::fault::{Counted, Fault, FaultKind, Kept};
use blockio::simulated::image::Image;

use super::*;
use crate::database::Helpers;
use crate::log::frame::{FrameHeader, Salts};
use crate::log::recovery::synthetic_log;
use crate::options::FlushDelay;

pub(super) const LOG: &str = "/app.db-wal";
pub(super) const FRAME_BYTES: usize = 24 + 4096;
pub(super) const SALTS: Salts = Salts([7; 8]);
/// A read lock with a snapshot of the log.
pub(super) const READ_LOCK: i32 = WAL_READ_LOCK_0 + 1;
/// The number of a connection that is only a name in the queue.
pub(super) const OTHER: usize = usize::MAX;

/// A database, one connection to it, and the wal-index that it has mapped.
pub(super) struct Bench {
    pub(super) disk: SimDisk,
    pub(super) connection: Connection,
    pub(super) region: &'static [AtomicU32; 8192],
    /// What SQLite would write: each transaction is one frame.
    pub(super) log: Vec<u8>,
}

impl Bench {
    pub(super) fn new(options: Options) -> Bench {
        let disk = SimDisk::new();
        disk.open(Path::new("/app.db"), CREATE).unwrap();
        let helpers = Helpers::inline();
        let database =
            Database::new("/app.db".into(), None, "sim".to_owned(), Arc::new(disk.clone()), helpers, options);
        let connection = Connection::new(Arc::new(database), options);
        let region: &'static [AtomicU32; 8192] = Box::leak(Box::new([const { AtomicU32::new(0) }; 8192]));
        connection.set_wal_index(Some(WalIndex::of_words(region)));
        let transactions: [&[u32]; 6] = [&[1], &[2], &[3], &[4], &[5], &[6]];
        Bench { disk, connection, region, log: synthetic_log(4096, SALTS, &transactions) }
    }

    /// With an open log, new and empty.
    pub(super) fn opened(options: Options) -> Bench {
        let bench = Bench::new(options);
        bench.connection.log_open(true, Layout::Stock, false).unwrap();
        bench
    }

    /// Another connection to the same database, with the log open.
    pub(super) fn another(&self, options: Options) -> Connection {
        let connection = Connection::new(Arc::clone(&self.connection.database), options);
        connection.set_wal_index(Some(WalIndex::of_words(self.region)));
        connection.log_open(true, Layout::Stock, false).unwrap();
        connection
    }

    /// The log up to frame `count`.
    pub(super) fn frames(&self, count: usize) -> &[u8] {
        &self.log[..32 + count * FRAME_BYTES]
    }

    /// The wal-index tells of `count` frames, as if somebody had committed them.
    pub(super) fn publish(&self, count: usize) {
        let last = 32 + (count - 1) * FRAME_BYTES;
        let header = FrameHeader::parse(self.log[last..last + 24].try_into().unwrap());
        let salts = [0, 4].map(|at| u32::from_ne_bytes(SALTS.0[at..at + 4].try_into().unwrap()));
        let frames = u32::try_from(count).unwrap();
        for copy in [0, 12] {
            let page_bytes = u32::from_ne_bytes([0, 0, 0, 0x10]).to_le();
            let fields = [
                (3, page_bytes),
                (4, frames),
                (6, header.checksum.0),
                (7, header.checksum.1),
                (8, salts[0]),
                (9, salts[1]),
            ];
            for (word, value) in fields {
                self.region[copy + word].store(value, Relaxed);
            }
        }
    }

    /// The wal-index tells of a log without frames.
    pub(super) fn published_none(&self) {
        self.publish(1);
        for copy in [0, 12] {
            self.region[copy + 4].store(0, Relaxed);
        }
    }

    /// A checkpoint has copied `count` frames.
    pub(super) fn copied(&self, count: u32) {
        self.region[24].store(count, Relaxed);
    }

    pub(super) fn take_write_lock(&self) -> Granted {
        self.connection.exclusive_lock_granted(WAL_WRITE_LOCK)
    }

    /// Writes transaction `number`, from 1, as SQLite does: with the log's header in front of the first.
    pub(super) fn write(&self, number: usize) {
        let connection = &self.connection;
        if number == 1 {
            connection.log_write(&self.log[..32], 0).unwrap();
            connection.log_sync().unwrap();
        }
        let (start, end) = (self.frames(number - 1).len(), self.frames(number).len());
        connection.log_write(&self.log[start..start + 24], start as u64).unwrap();
        connection.log_write(&self.log[start + 24..end], start as u64 + 24).unwrap();
    }

    /// Ends the transaction that was written, with a sync.
    pub(super) fn sync(&self, number: usize) {
        self.connection.log_sync().unwrap();
        self.publish(number);
        self.connection.before_unlock(WAL_WRITE_LOCK);
        self.connection.commit_phase_two().unwrap();
    }

    /// A whole transaction with a sync.
    pub(super) fn commit(&self, number: usize) {
        self.take_write_lock();
        self.write(number);
        self.sync(number);
    }

    pub(super) fn stats(&self) -> &Stats {
        &self.connection.database.stats
    }

    pub(super) fn flushes(&self) -> u64 {
        self.stats().flushes.load(Relaxed)
    }

    pub(super) fn fail_flushes(&self) {
        let (counted, number) = (Counted::Flushes, self.disk.count(Counted::Flushes));
        let fault = Fault { counted, number, kind: FaultKind::Io, kept: Kept::Nothing, lasting: true };
        self.disk.set_fault(Some(fault));
    }

    /// Every state that a power cut can leave now.
    pub(super) fn states(&self) -> Vec<Image> {
        let mut replay = self.disk.replay();
        for record in self.disk.records() {
            replay.begin(&record);
            replay.end(&record);
        }
        replay.states(&Bounds::default()).into_iter().map(|(_, image)| image).collect()
    }

    /// Whether every state that a power cut can leave now has these frames.
    pub(super) fn survive(&self, count: usize) -> bool {
        self.states().iter().all(|image| {
            let log = image.files.get(Path::new(LOG)).map(|content| content.bytes());
            log.is_some_and(|log| log.starts_with(self.frames(count)))
        })
    }
}

pub(super) const CREATE: OpenOptions = OpenOptions { create: true, mode: 0o600, ..OpenOptions::EXISTING };

pub(super) fn delay() -> Options {
    let delay = FlushDelay { bytes: 1 << 20, time: Duration::from_secs(60) };
    Options { durability: DurabilityChoice::Bounded(delay), ..Options::default() }
}

/// One whose log is not open.
pub(crate) fn connection() -> Connection {
    Bench::new(Options::default()).connection
}
