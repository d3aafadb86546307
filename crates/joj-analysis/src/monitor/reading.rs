//! One look at all texts of /proc.

use crate::monitor::proc::diskstats::{self, DiskLine};
use crate::monitor::proc::interrupts::Interrupts;
use crate::monitor::proc::meminfo::Memory;
use crate::monitor::proc::net_dev::{self, Interface};
use crate::monitor::proc::proc_text::ProcError;
use crate::monitor::proc::stat::Stat;

/// The texts that can be read, by their place under /proc.
pub const FILES: [&str; 5] = ["stat", "meminfo", "diskstats", "net/dev", "interrupts"];

/// What the texts said at one time; a text that this machine does not show is missing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// When, in nanoseconds of a clock that never jumps.
    pub at_ns: u64,
    /// What /proc/stat said; `None` where it cannot be read.
    pub stat: Option<Stat>,
    /// What /proc/meminfo said; `None` where it cannot be read.
    pub memory: Option<Memory>,
    /// The lines of /proc/diskstats.
    pub disks: Vec<DiskLine>,
    /// The lines of /proc/net/dev.
    pub interfaces: Vec<Interface>,
    /// What /proc/interrupts said; `None` where it cannot be read.
    pub interrupts: Option<Interrupts>,
}

impl Reading {
    /// Reads the texts, in the order of [`FILES`].
    /// # Errors
    /// The first damaged line.
    pub fn parse(at_ns: u64, texts: [Option<&str>; FILES.len()]) -> Result<Reading, ProcError> {
        let [stat, memory, disks, interfaces, interrupts] = texts;
        Ok(Reading {
            at_ns,
            stat: stat.map(Stat::parse).transpose()?,
            memory: memory.map(Memory::parse).transpose()?,
            disks: disks.map(diskstats::parse).transpose()?.unwrap_or_default(),
            interfaces: interfaces.map(net_dev::parse).transpose()?.unwrap_or_default(),
            interrupts: interrupts.map(Interrupts::parse).transpose()?,
        })
    }
}
