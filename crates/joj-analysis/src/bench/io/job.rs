//! What is done with the records of a file.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bench::io::way::SyncWay;
use crate::bench::key::{Word, words};

words! {
    /// In which order records are written or read; the words are fio's, but for `append`.
    pub enum IoJob: "job" {
        /// Written in order, in a file that is there.
        Write = "write",
        /// Written in random order, in a file that is there.
        RandWrite = "randwrite",
        /// Written in order, in a new file.
        Append = "append",
        /// Read in order.
        Read = "read",
        /// Read in random order.
        RandRead = "randread",
    }
}

impl IoJob {
    pub fn is_read(self) -> bool {
        matches!(self, Self::Read | Self::RandRead)
    }

    pub fn is_random(self) -> bool {
        matches!(self, Self::RandWrite | Self::RandRead)
    }

    /// As tables name it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Write => "sequential write",
            Self::RandWrite => "random write",
            Self::Append => "append",
            Self::Read => "sequential read",
            Self::RandRead => "random read",
        }
    }

    /// True where the way is another one than those in front of it for this job. A read syncs nothing, and file systems poll for no write
    /// that makes a file longer.
    pub fn takes(self, way: SyncWay) -> bool {
        match self {
            Self::Write | Self::RandWrite => true,
            Self::Append => way != SyncWay::Polled,
            Self::Read | Self::RandRead => {
                matches!(way, SyncWay::None | SyncWay::Direct | SyncWay::Polled | SyncWay::Mmap)
            }
        }
    }
}

/// What a row measures. Two results are comparable where this is equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct IoKey {
    pub job: IoJob,
    pub way: SyncWay,
    /// Bytes of a record.
    pub record_bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
}

impl IoKey {
    /// How many whole records the file has.
    pub fn records(&self) -> u64 {
        self.file_bytes / self.record_bytes.max(1)
    }

    /// True where both belong into one table.
    pub fn same_group(&self, other: &IoKey) -> bool {
        (self.job, self.record_bytes, self.file_bytes) == (other.job, other.record_bytes, other.file_bytes)
    }

    /// `random write, records of 4 KiB in a file of 10 MiB`
    pub fn group_title(&self) -> String {
        let (record, file) = (size(self.record_bytes), size(self.file_bytes));
        format!("{}, records of {record} in a file of {file}", self.job.title())
    }

    /// True where each record is as durable as a commit, and as long as a write of the disk's limit.
    pub fn is_bound_by_flushes(&self) -> bool {
        self.way.is_durable() && !self.job.is_read() && self.record_bytes == 4096
    }
}

impl fmt::Display for IoKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}, {}", self.group_title(), self.way.word())
    }
}

/// A size in the largest unit that it is a whole number of: `4 KiB`, `10 MiB`, `700 bytes`.
pub fn size(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let found = units.iter().find(|(shift, _)| bytes > 0 && bytes.is_multiple_of(1_u64 << shift));
    found.map_or_else(|| format!("{bytes} bytes"), |(shift, unit)| format!("{} {unit}", bytes >> shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_unit_that_leaves_no_rest() {
        let shown = [0, 700, 4096, 6144, 10 << 20, 1 << 30].map(size);
        assert_eq!(shown, ["0 bytes", "700 bytes", "4 KiB", "6 KiB", "10 MiB", "1 GiB"]);
    }

    #[test]
    fn a_read_has_no_ways_to_sync() {
        let ways = |job: IoJob| SyncWay::ALL.iter().filter(|way| job.takes(**way)).count();
        assert_eq!(ways(IoJob::Read), 4);
        assert_eq!(ways(IoJob::Append), SyncWay::ALL.len() - 1);
    }

    #[test]
    fn a_key_says_what_it_is() {
        let key = IoKey {
            job: IoJob::RandWrite,
            way: SyncWay::Fsync,
            record_bytes: 4096,
            file_bytes: (10 << 20) + 100,
        };
        assert_eq!(key.records(), 2560);
        assert!(key.is_bound_by_flushes() && !IoKey { job: IoJob::Read, ..key }.is_bound_by_flushes());
        let whole = IoKey { file_bytes: 10 << 20, ..key };
        assert_eq!(whole.to_string(), "random write, records of 4 KiB in a file of 10 MiB, fsync");
    }
}
