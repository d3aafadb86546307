//! How a record of a file reaches the medium: the ways of Mobibench's `-y`, and those that databases have taken since.

use crate::bench::key::words;
use crate::bench::run::SyncCount;

words! {
    /// How a record reaches the medium.
    pub enum SyncWay: "way to sync" {
        /// pwrite through the page cache.
        None = "none",
        /// pwrite with O_SYNC.
        OSync = "osync",
        /// pwrite with O_DSYNC.
        ODsync = "odsync",
        /// pwrite, then fsync.
        Fsync = "fsync",
        /// pwrite, then fdatasync.
        Fdatasync = "fdatasync",
        /// pwritev2 with RWF_DSYNC.
        RwfDsync = "rwf-dsync",
        /// pwrite with O_DIRECT.
        Direct = "direct",
        /// pwrite with O_DIRECT and O_SYNC.
        DirectOSync = "direct-osync",
        /// pwrite with O_DIRECT and O_DSYNC.
        DirectODsync = "direct-odsync",
        /// io_uring with IORING_SETUP_IOPOLL and O_DIRECT: completions are polled for.
        Polled = "polled",
        /// A copy into a shared mapping.
        Mmap = "mmap",
        /// The same, then msync of the record with MS_ASYNC.
        MmapAsync = "mmap-async",
        /// The same, then msync of the record with MS_SYNC.
        MmapSync = "mmap-sync",
    }
}

impl SyncWay {
    /// True for copies into a mapping.
    pub fn is_mapped(self) -> bool {
        matches!(self, Self::Mmap | Self::MmapAsync | Self::MmapSync)
    }

    /// True where records go past the page cache.
    pub fn is_direct(self) -> bool {
        matches!(self, Self::Direct | Self::DirectOSync | Self::DirectODsync | Self::Polled)
    }

    /// True where each record is on the medium when it is written.
    pub fn is_durable(self) -> bool {
        !matches!(self, Self::None | Self::Direct | Self::Polled | Self::Mmap | Self::MmapAsync)
    }

    /// As tables name it.
    pub fn title(self) -> &'static str {
        match self {
            Self::None => "page cache",
            Self::OSync => "O_SYNC",
            Self::ODsync => "O_DSYNC",
            Self::Fsync => "fsync",
            Self::Fdatasync => "fdatasync",
            Self::RwfDsync => "RWF_DSYNC",
            Self::Direct => "O_DIRECT",
            Self::DirectOSync => "O_DIRECT + O_SYNC",
            Self::DirectODsync => "O_DIRECT + O_DSYNC",
            Self::Polled => "io_uring, polled",
            Self::Mmap => "mmap",
            Self::MmapAsync => "mmap, MS_ASYNC",
            Self::MmapSync => "mmap, MS_SYNC",
        }
    }

    /// The calls for durability that writing so many records makes, and one sync of the file behind them.
    pub fn calls(self, records: u64) -> SyncCount {
        let mut calls = SyncCount { transactions: records, ..SyncCount::default() };
        match self {
            Self::Fsync => calls.fsync = records,
            Self::Fdatasync => calls.fdatasync = records,
            Self::OSync | Self::ODsync | Self::RwfDsync | Self::DirectOSync | Self::DirectODsync => {
                calls.durable_writes = records;
            }
            Self::MmapSync => calls.other = records,
            Self::None | Self::Direct | Self::Polled | Self::Mmap | Self::MmapAsync => {}
        }
        // The one at the end.
        let last = if self.is_mapped() { &mut calls.other } else { &mut calls.fsync };
        *last += 1;
        calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::key::Word;

    #[test]
    fn each_way_has_a_sync_at_its_end_and_the_calls_of_its_records() {
        for way in SyncWay::ALL {
            let calls = way.calls(10);
            let all = calls.fsync + calls.fdatasync + calls.durable_writes + calls.other;
            let lazy = [SyncWay::None, SyncWay::Direct, SyncWay::Polled, SyncWay::Mmap, SyncWay::MmapAsync];
            assert_eq!(all, if lazy.contains(way) { 1 } else { 11 }, "{way:?}");
            assert_eq!(way.is_durable(), !lazy.contains(way), "{way:?}");
            assert!(!(way.is_mapped() && way.is_direct()), "{way:?}");
        }
        assert_eq!(SyncWay::Fsync.calls(10).fsync, 11);
        assert_eq!(SyncWay::MmapSync.calls(10).other, 11);
    }
}
