//! What joj knows of filesystems, a file each: its row of the table, and what reads its structures.
//!
//! ```text
//! ext4, xfs, btrfs, nilfs2, f2fs   the rows
//! facts             the columns, and what each of them is for
//! layout            what several readers share: regions, checksums, jbd2's log, errors
//! region, class     what a filesystem keeps in its places, and what written bytes are for
//! damage, samples   tests: damaged superblocks, and the sound ones that they are made from
//! ```
//!
//! To add one: a file with its `FACTS`, and its name in the four lists of this one. The compiler asks for the rest.

pub mod ext4;
pub mod xfs;
pub mod btrfs;
pub mod nilfs2;
pub mod f2fs;
pub mod facts;
pub mod layout;
pub mod region;
pub mod class;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod samples;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bench::key::{Word, parsed_as_words};
use crate::filesystem::facts::Facts;
use crate::filesystem::layout::{Extent, Layout, LayoutError, ReadAt};

/// A filesystem that joj knows: the lab makes it, and a trace tells its blocks apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Filesystem {
    /// ext4, and ext3 and ext2 under its driver. The lab's is in ordered mode unless a feature says otherwise.
    Ext4,
    /// XFS.
    Xfs,
    /// Btrfs. The lab's has one device: metadata is stored twice (DUP), as mkfs has it.
    Btrfs,
    /// NILFS2.
    Nilfs2,
    /// F2FS.
    F2fs,
}

impl Filesystem {
    /// Its row of the table.
    pub fn facts(self) -> &'static Facts {
        match self {
            Self::Ext4 => &ext4::FACTS,
            Self::Xfs => &xfs::FACTS,
            Self::Btrfs => &btrfs::FACTS,
            Self::Nilfs2 => &nilfs2::FACTS,
            Self::F2fs => &f2fs::FACTS,
        }
    }

    /// The one that a mount of this kind is, as mountinfo spells it; `None` for one of which joj knows nothing.
    pub fn of_mount(kind: &str) -> Option<Self> {
        let is_it = |facts: &Facts| facts.name == kind || facts.older_names.contains(&kind);
        Self::ALL.iter().copied().find(|filesystem| is_it(filesystem.facts()))
    }
}

impl Word for Filesystem {
    const DIMENSION: &'static str = "filesystem";
    const ALL: &'static [Self] = &[Self::Ext4, Self::Xfs, Self::Btrfs, Self::Nilfs2, Self::F2fs];
    fn word(self) -> &'static str {
        self.facts().name
    }
}

parsed_as_words!(Filesystem);

/// Reads the layout of a filesystem of this `kind`, as mountinfo spells it; `None` for one of which joj knows nothing.
/// # Errors
/// The bytes cannot be read, or are not those of such a filesystem on such a device.
pub fn layout_of(kind: &str, device: Extent, bytes: &mut ReadAt<'_>) -> Result<Option<Layout>, LayoutError> {
    Filesystem::of_mount(kind).map(|filesystem| (filesystem.facts().layout)(device, bytes)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_in_the_list_once_and_is_spelled_in_plans_as_mounts_are() {
        for (index, filesystem) in Filesystem::ALL.iter().enumerate() {
            assert_eq!(*filesystem as usize, index, "tables have them in the order of the enum");
            let word = serde_json::to_value(filesystem).unwrap();
            assert_eq!(word, filesystem.word());
            let facts = filesystem.facts();
            for name in facts.older_names.iter().chain([&facts.name]) {
                assert_eq!(Filesystem::of_mount(name), Some(*filesystem), "{name}");
            }
        }
        assert_eq!(Filesystem::of_mount("vfat"), None);
    }
}
