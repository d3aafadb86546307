//! The configurations that a program is seen in.

use crate::bench::key::words;

words! {
    /// A row of `joj whatif`.
    pub enum Configuration: "configuration" {
        /// All calls, on the disk.
        Recorded = "recorded",
        /// Databases in memory, the rest on the disk.
        DatabasesInMemory = "databases-in-ram",
        /// Caches in memory.
        CachesInMemory = "caches-in-ram",
        /// Everything in memory.
        AllInMemory = "all-in-ram",
        /// Without calls that make something durable.
        NoSync = "no-sync",
        /// Without those that make caches durable.
        CachesNoSync = "caches-no-sync",
        /// Each class of files as durable as it has to be.
        ByClass = "by-class",
        /// Commits through SQLite in WAL mode with `synchronous=FULL`.
        Wal = "wal",
        /// The same with waldio.
        Waldio = "waldio",
        /// The same with `waldio_durability=bounded`.
        Bounded = "waldio-bounded",
        /// WAL with `synchronous=NORMAL`.
        Normal = "wal-normal",
    }
}

impl Configuration {
    /// What people read.
    pub fn title(self) -> &'static str {
        match self {
            Self::Recorded => "as recorded",
            Self::DatabasesInMemory => "databases in RAM",
            Self::CachesInMemory => "caches in RAM",
            Self::AllInMemory => "all in RAM",
            Self::NoSync => "no sync",
            Self::CachesNoSync => "no sync of caches",
            Self::ByClass => "by class",
            Self::Wal => "WAL",
            Self::Waldio => "waldio",
            Self::Bounded => "waldio bounded",
            Self::Normal => "WAL, NORMAL",
        }
    }

    /// What of durability it gives up.
    pub fn gives_up(self) -> &'static str {
        match self {
            Self::Recorded => "nothing: as the program has it",
            Self::DatabasesInMemory => "a restart of the machine takes all databases",
            Self::CachesInMemory => "a restart of the machine takes the caches",
            Self::AllInMemory => "a restart of the machine takes everything",
            Self::NoSync => "a power cut takes the last half minute, and may damage databases",
            Self::CachesNoSync => "a power cut takes the last half minute of caches, and may damage them",
            Self::ByClass => {
                "a power cut takes the last half minute of caches, and may damage them; a restart takes temporary files"
            }
            Self::Wal | Self::Waldio => "nothing: a COMMIT that returned survives a power cut",
            Self::Bounded => "a power cut takes the last 10 ms of commits and a flush or two",
            Self::Normal => "a power cut takes the commits since the last checkpoint",
        }
    }

    /// The same of a recording in which nothing is a cache.
    pub fn gives_up_without_caches(self) -> &'static str {
        match self {
            Self::ByClass => "a restart of the machine takes temporary files",
            other => other.gives_up(),
        }
    }

    /// The same of a recording in which commits change several databases at once, as with ATTACH. Only with a rollback journal are they whole
    /// in all of them, by the super-journal (<https://www.sqlite.org/lang_attach.html>).
    pub fn gives_up_across_databases(self) -> Option<&'static str> {
        match self {
            Self::Wal | Self::Waldio => Some(
                "a power cut may take one database's part of a commit to several; a COMMIT that returned survives",
            ),
            Self::Bounded => Some(
                "a power cut takes the last 10 ms of commits and a flush or two, and may take one database's part of a commit to several",
            ),
            Self::Normal => Some(
                "a power cut takes the commits since the last checkpoint, and may take one database's part of a commit to several",
            ),
            _ => None,
        }
    }

    /// True where a COMMIT that returned survives a power cut.
    pub fn is_durable(self) -> bool {
        matches!(self, Self::Wal | Self::Waldio)
    }

    /// True where the names of files say what may be lost.
    pub fn is_by_names(self) -> bool {
        matches!(self, Self::CachesInMemory | Self::CachesNoSync | Self::ByClass)
    }

    /// True where commits are made through SQLite, and the other calls as recorded.
    pub fn has_commits(self) -> bool {
        matches!(self, Self::Wal | Self::Waldio | Self::Bounded | Self::Normal)
    }
}
