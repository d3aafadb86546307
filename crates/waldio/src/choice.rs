//! How a log is persisted and filled, from what was asked and what the place can do. Decides; does nothing.

use blockio::disk::{Facts, Filesystem, Fill};

use crate::layout::BLOCK_BYTES;
use crate::options::{FillChoice, Options, PersistChoice};

/// How commits of one log become durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Persist {
    /// True for one direct durable write, false for a buffered write and fdatasync.
    pub fua: bool,
    /// Why, for `waldio_status`.
    pub reason: String,
}

/// Decides between one direct durable write and write + flush.
pub fn persist(options: &Options, facts: Facts) -> Persist {
    let flush = |reason: &str| Persist { fua: false, reason: reason.to_owned() };
    if options.persist == PersistChoice::Flush {
        return flush("asked for");
    }
    if options.strict {
        return flush("strict mode keeps file sizes exact");
    }
    if options.no_sync {
        return flush("WALDIO_NO_SYNC is set");
    }
    let align = u64::from(facts.direct_align_bytes);
    if align == 0 || !BLOCK_BYTES.is_multiple_of(align) {
        return flush("the file takes no direct I/O in 4096-byte blocks");
    }
    if options.persist == PersistChoice::Fua {
        return Persist { fua: true, reason: "asked for".to_owned() };
    }
    match facts.filesystem {
        Filesystem::Ext4 | Filesystem::Xfs => {
            Persist { fua: true, reason: "a direct durable write was the faster on ext4 and XFS".to_owned() }
        }
        Filesystem::Btrfs => flush("a direct durable write was half as fast on Btrfs"),
        _ => flush("not measured on this file system"),
    }
}

/// Decides how space ahead is made ready; `None` for not at all. `WriteZeroes` may turn out unsupported.
pub fn fill(options: &Options, filesystem: Filesystem) -> Option<Fill> {
    if options.strict {
        return None;
    }
    match (options.fill, filesystem) {
        // Nothing survives anyway, and nothing is journaled.
        (_, Filesystem::Tmpfs) => None,
        // Log-structured: an overwrite never happens in place.
        (FillChoice::Auto, Filesystem::Nilfs2) => None,
        (FillChoice::Auto, _) => Some(Fill::WriteZeroes),
        (FillChoice::Only(fill), _) => Some(fill),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIRECT: Facts = Facts { filesystem: Filesystem::Ext4, direct_align_bytes: 512 };

    #[test]
    fn fua_needs_direct_io_and_a_measured_file_system() {
        let auto = Options::default();
        assert!(persist(&auto, DIRECT).fua);
        assert!(!persist(&auto, Facts { direct_align_bytes: 0, ..DIRECT }).fua);
        assert!(!persist(&auto, Facts { direct_align_bytes: 16384, ..DIRECT }).fua);
        assert!(!persist(&auto, Facts { filesystem: Filesystem::Btrfs, ..DIRECT }).fua);
        assert!(!persist(&Options { persist: PersistChoice::Flush, ..auto }, DIRECT).fua);
        assert!(!persist(&Options { strict: true, ..auto }, DIRECT).fua);
        let asked = Options { persist: PersistChoice::Fua, ..auto };
        assert!(persist(&asked, Facts { filesystem: Filesystem::Btrfs, ..DIRECT }).fua);
    }

    #[test]
    fn nothing_is_filled_where_it_gains_nothing() {
        let auto = Options::default();
        assert_eq!(fill(&auto, Filesystem::Tmpfs), None);
        assert_eq!(fill(&auto, Filesystem::Nilfs2), None);
        assert_eq!(fill(&Options { strict: true, ..auto }, Filesystem::Ext4), None);
        let unwritten = Options { fill: FillChoice::Only(Fill::Unwritten), ..auto };
        assert_eq!(fill(&unwritten, Filesystem::Ext4), Some(Fill::Unwritten));
    }
}
