//! What Mobibench's options ask for. Its numbers are the places in the lists here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bench::io::way::SyncWay;
use crate::bench::key::JournalMode;

/// What is done with the records of a file (`-a`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileAccess {
    /// In order, in a file that is there.
    Write,
    /// In random order, in a file that is there.
    RandomWrite,
    Read,
    RandomRead,
    /// In order, in a new file.
    Append,
}

impl FileAccess {
    /// By their numbers.
    pub const ALL: [Self; 5] = [Self::Write, Self::RandomWrite, Self::Read, Self::RandomRead, Self::Append];

    /// Mobibench's number.
    pub fn number(self) -> usize {
        self as usize
    }

    pub fn is_read(self) -> bool {
        matches!(self, Self::Read | Self::RandomRead)
    }

    pub fn is_random(self) -> bool {
        matches!(self, Self::RandomWrite | Self::RandomRead)
    }
}

/// How records reach the medium (`-y`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileSync {
    /// Through the page cache.
    Normal,
    OSync,
    /// fsync after each write.
    Fsync,
    /// O_DIRECT.
    Direct,
    /// O_SYNC and O_DIRECT.
    SyncDirect,
    /// Through a mapping.
    Mmap,
    /// msync with MS_ASYNC after each record.
    MmapAsync,
    /// msync with MS_SYNC after each record.
    MmapSync,
    /// fdatasync after each write.
    Fdatasync,
}

impl FileSync {
    /// By their numbers.
    pub const ALL: [Self; 9] = [
        Self::Normal,
        Self::OSync,
        Self::Fsync,
        Self::Direct,
        Self::SyncDirect,
        Self::Mmap,
        Self::MmapAsync,
        Self::MmapSync,
        Self::Fdatasync,
    ];

    /// Mobibench's number.
    pub fn number(self) -> usize {
        self as usize
    }

    /// What is done with each record.
    pub fn way(self) -> SyncWay {
        match self {
            Self::Normal => SyncWay::None,
            Self::OSync => SyncWay::OSync,
            Self::Fsync => SyncWay::Fsync,
            Self::Direct => SyncWay::Direct,
            Self::SyncDirect => SyncWay::DirectOSync,
            Self::Mmap => SyncWay::Mmap,
            Self::MmapAsync => SyncWay::MmapAsync,
            Self::MmapSync => SyncWay::MmapSync,
            Self::Fdatasync => SyncWay::Fdatasync,
        }
    }

    pub fn is_mapped(self) -> bool {
        self.way().is_mapped()
    }

    pub fn is_direct(self) -> bool {
        self.way().is_direct()
    }
}

/// What a transaction does (`-d`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DatabaseOperation {
    Insert,
    Update,
    Delete,
}

impl DatabaseOperation {
    /// By their numbers.
    pub const ALL: [Self; 3] = [Self::Insert, Self::Update, Self::Delete];

    /// Mobibench's number.
    pub fn number(self) -> usize {
        self as usize
    }
}

/// Journal modes by their numbers (`-j`).
pub const JOURNAL_MODES: [JournalMode; 6] = [
    JournalMode::Delete,
    JournalMode::Truncate,
    JournalMode::Persist,
    JournalMode::Wal,
    JournalMode::Memory,
    JournalMode::Off,
];

/// What each thread does with its file.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct FileWork {
    /// KiB of each thread's file.
    pub file_kb: u64,
    /// KiB of a record.
    pub record_kb: u64,
    pub access: FileAccess,
    pub sync: FileSync,
    /// How many per cent of the random records are repeats of others.
    pub repeat_percent: u64,
}

impl FileWork {
    /// How many records a thread writes or reads.
    pub fn records(&self) -> u64 {
        self.file_kb / self.record_kb
    }

    pub fn record_bytes(&self) -> u64 {
        self.record_kb * 1024
    }

    /// Bytes of all whole records.
    pub fn file_bytes(&self) -> u64 {
        self.records() * self.record_bytes()
    }
}

/// What each thread does with its databases.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct DatabaseWork {
    pub operation: DatabaseOperation,
    /// Of each thread.
    pub transactions: u64,
    pub journal_mode: JournalMode,
    /// The value of PRAGMA synchronous.
    pub synchronous: u32,
    /// Milliseconds after each transaction.
    pub pause_ms: u64,
    /// Of each database.
    pub tables: u32,
    /// Of each thread.
    pub databases: u32,
    /// Whether inserts have their ids in random order.
    pub random_ids: bool,
}

/// Files or databases.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MobibenchWork {
    Files(FileWork),
    Databases(DatabaseWork),
}

/// All that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct MobibenchSetup {
    /// Where the files are.
    pub directory: String,
    pub threads: u32,
    pub work: MobibenchWork,
}

impl MobibenchSetup {
    /// The files of the test, without the logs and journals of databases.
    pub fn files(&self) -> Vec<String> {
        let path = |name: String| format!("{}/{name}", self.directory);
        match &self.work {
            MobibenchWork::Files(_) => {
                (0..self.threads).map(|thread| path(format!("test.dat{thread}"))).collect()
            }
            MobibenchWork::Databases(work) => {
                let of_thread = |thread| (0..work.databases).map(move |database| (thread, database));
                let all = (0..self.threads).flat_map(of_thread);
                all.map(|(thread, database)| path(format!("test.db{thread}_{database}"))).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places_in_the_lists() {
        assert!(FileAccess::ALL.iter().enumerate().all(|(number, access)| access.number() == number));
        assert!(FileSync::ALL.iter().enumerate().all(|(number, sync)| sync.number() == number));
        assert!(DatabaseOperation::ALL.iter().enumerate().all(|(number, one)| one.number() == number));
    }

    #[test]
    fn a_part_of_a_record_is_none() {
        let work = FileWork {
            file_kb: 341,
            record_kb: 4,
            access: FileAccess::Write,
            sync: FileSync::Normal,
            repeat_percent: 0,
        };
        assert_eq!((work.records(), work.file_bytes()), (85, 340 * 1024));
    }

    #[test]
    fn each_thread_has_its_files() {
        let work = DatabaseWork {
            operation: DatabaseOperation::Insert,
            transactions: 1,
            journal_mode: JournalMode::Wal,
            synchronous: 2,
            pause_ms: 0,
            tables: 3,
            databases: 2,
            random_ids: false,
        };
        let setup =
            MobibenchSetup { directory: "d".into(), threads: 2, work: MobibenchWork::Databases(work) };
        assert_eq!(setup.files(), ["d/test.db0_0", "d/test.db0_1", "d/test.db1_0", "d/test.db1_1"]);
    }
}
