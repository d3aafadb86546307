//! A device described in numbers, each with its source.
//!
//! ```text
//! check   what a description must hold beside its form: ranges, relations, a source for every number
//! error   why a description is refused
//! round   a device of round numbers, for tests
//! ```
//!
//! Source of the form: docs/device_format.md.

pub(crate) mod check;
mod error;
#[cfg(test)]
pub(crate) mod round;

use std::collections::BTreeMap;

use serde::Deserialize;

pub use error::{DescriptionError, DescriptionFault};

/// Version of the form that this joj reads.
pub const VERSION: u64 = 1;

/// One device. Times are nanoseconds; every number of a file has an entry in `sources`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// Always `joj-device`.
    pub format: String,
    /// Version of the form, [`VERSION`].
    pub version: u64,
    /// What `joj device` calls it.
    pub name: String,
    /// The device in a sentence.
    pub summary: String,
    /// Its size in bytes, a multiple of 4096; the lab may make it smaller.
    pub capacity_bytes: u64,
    /// What lies between host and controller.
    pub bus: BusCosts,
    /// The medium.
    pub flash: Flash,
    /// The volatile cache; without one every write is durable when it is done.
    pub cache: Option<CacheCosts>,
    /// How pages find their place.
    pub ftl: FtlKind,
    /// Parts of the map that the controller holds at once; without any, all of it.
    #[serde(default)]
    pub map_cache: BTreeMap<String, MapLevel>,
    /// Dotted path of each number, and where it is from.
    pub sources: toml::Table,
}

/// Commands and transfer, which requests use one after another.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BusCosts {
    /// Fixed part of a read.
    pub read_command_ns: u64,
    /// Fixed part of a write.
    pub write_command_ns: u64,
    /// Fixed part of trim and write-zeroes, which transfer nothing.
    pub trim_command_ns: u64,
    /// Transfer of 4096 bytes to the host.
    pub read_transfer_ns: u64,
    /// Transfer of 4096 bytes from the host.
    pub write_transfer_ns: u64,
    /// Requests under way at once; 1: the next begins when the last is done.
    #[serde(default = "one")]
    pub queue_depth: u64,
    /// Waiting writes that share one command (eMMC 4.5, packed commands); 1: none do.
    #[serde(default = "one")]
    pub packed_writes_max: u64,
}

/// The medium behind the controller.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flash {
    /// Granule of the map; a write of a part of one reads the rest first.
    pub unit_bytes: u64,
    /// What one program writes; a multiple of `unit_bytes`.
    pub page_bytes: u64,
    /// Pages that are read or programmed at the same time.
    pub parallel_units: u64,
    /// Reading a page.
    pub read_ns: u64,
    /// Programming a page.
    pub program_ns: u64,
    /// Erasing a block.
    pub erase_ns: u64,
}

/// The volatile write-back cache.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheCosts {
    /// Dirty bytes it holds.
    pub bytes: u64,
    /// Fixed part of a flush, beside the programs it waits for.
    pub flush_ns: u64,
    /// Whether the device offers FUA to the host.
    pub fua: bool,
    /// What a FUA write costs beside its program.
    #[serde(default)]
    pub fua_ns: u64,
}

/// The flash translation layer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "kebab-case")]
pub enum FtlKind {
    /// Pages are overwritten where they are (RAM, phase-change memory).
    InPlace,
    /// Any unit anywhere; greedy garbage collection.
    PageMapped {
        /// Erase block.
        block_bytes: u64,
        /// Blocks beyond the capacity, in per cent of it.
        spare_percent: u64,
    },
    /// Each overwritten data block has a log block of its own (BAST, Kim et al. 2002).
    Bast {
        /// Erase block.
        block_bytes: u64,
        /// Log blocks.
        log_blocks: u64,
        /// Copying a page in a merge.
        copy_ns: u64,
    },
    /// All data blocks share the log blocks, one of which is for sequential writes (FAST, Lee et al. 2007).
    Fast {
        /// Erase block.
        block_bytes: u64,
        /// Log blocks, the sequential one included.
        log_blocks: u64,
        /// Copying a page in a merge.
        copy_ns: u64,
    },
    /// A log with fast pages (SLC mode) in front of a page map; a full log is folded block by block.
    Hybrid {
        /// Erase block.
        block_bytes: u64,
        /// Blocks beyond the capacity, in per cent of it.
        spare_percent: u64,
        /// Size of the log.
        log_bytes: u64,
        /// Programming a page of the log.
        log_program_ns: u64,
    },
}

/// A part of the map that is held in memory, least recently used first to go.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapLevel {
    /// Pieces held.
    pub entries: u64,
    /// Bytes of the device that one piece maps.
    pub covers_bytes: u64,
    /// Getting a piece that is not held, and writing back the one it replaces.
    pub miss_ns: u64,
}

const fn one() -> u64 {
    1
}

impl Description {
    /// Reads a description. `origin` names it in errors: a path, or a shipped name.
    ///
    /// # Errors
    /// What is wrong, where, and how to mend it: not TOML, a key that does not exist, a value out of its range, values
    /// that contradict each other, a number without a source.
    pub fn parse(text: &str, origin: &str) -> Result<Description, DescriptionError> {
        checked(text).map_err(|fault| fault.at(origin))
    }

    /// The number at `path` (`bus.read_command_ns`), as it stands in `[sources]`.
    pub fn source(&self, path: &str) -> Option<&str> {
        check::leaves(&self.sources).into_iter().find(|(name, _)| name == path)?.1.as_str()
    }

    /// True when a power cut can take what the device has acknowledged.
    pub const fn has_volatile_cache(&self) -> bool {
        self.cache.is_some()
    }

    /// True when the host may send FUA writes.
    pub fn offers_fua(&self) -> bool {
        self.cache.as_ref().is_some_and(|cache| cache.fua)
    }
}

fn checked(text: &str) -> Result<Description, DescriptionFault> {
    let raw: toml::Table = toml::from_str(text).map_err(DescriptionFault::Form)?;
    check::header(&raw)?;
    let description: Description = toml::from_str(text).map_err(DescriptionFault::Form)?;
    check::sources(&raw)?;
    check::ranges(&description)?;
    check::relations(&description)?;
    Ok(description)
}
