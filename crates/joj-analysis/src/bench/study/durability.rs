//! How a write to a log is made durable: the three ways of the WALDIO paper (USENIX ATC 2015), as they are today.

use crate::bench::key::words;

words! {
    /// How a write is made durable.
    pub enum Durability: "durability" {
        /// Full Sync: a write through the page cache, then fdatasync. Survives a power cut.
        Fs = "fs",
        /// Persistent Direct I/O: one write with O_DIRECT and RWF_DSYNC. Survives a power cut.
        Pd = "pd",
        /// No Sync: a write through the page cache, nothing more. Survives a killed process, not a power cut.
        Ns = "ns",
    }
}

impl Durability {
    /// The paper's letters.
    pub fn short(self) -> &'static str {
        match self {
            Self::Fs => "FS",
            Self::Pd => "PD",
            Self::Ns => "NS",
        }
    }

    /// As tables name it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Fs => "FS: write, fdatasync",
            Self::Pd => "PD: O_DIRECT + RWF_DSYNC",
            Self::Ns => "NS: write, no flush",
        }
    }
}
