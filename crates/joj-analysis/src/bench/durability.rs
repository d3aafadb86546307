//! How a write to a log is made durable: the three ways of the WALDIO paper (USENIX ATC 2015), as they are today.

use serde::{Deserialize, Serialize};

use crate::bench::key::Word;

/// How a write is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Full Sync: a write through the page cache, then fdatasync. Survives a power cut.
    Fs,
    /// Persistent Direct I/O: one write with O_DIRECT and RWF_DSYNC. Survives a power cut.
    Pd,
    /// No Sync: a write through the page cache, nothing more. Survives a killed process, not a power cut.
    Ns,
}

impl Word for Durability {
    const DIMENSION: &'static str = "durability";
    const ALL: &'static [Self] = &[Self::Fs, Self::Pd, Self::Ns];
    fn word(self) -> &'static str {
        match self {
            Self::Fs => "fs",
            Self::Pd => "pd",
            Self::Ns => "ns",
        }
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
