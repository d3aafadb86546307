//! How a log is persisted and filled, from what was asked and what the place can do. Decides; does nothing.

use blockio::disk::{Facts, Filesystem, Fill};

use crate::log::layout::BLOCK_BYTES;
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
    match options.persist {
        PersistChoice::Flush => return flush("asked for"),
        // With a log in use direct writes are 3 to 5 % slower on a disk without FUA (docs/decisions), and nobody has
        // measured one with it.
        PersistChoice::Auto => return flush("direct writes were nowhere measured to be faster"),
        PersistChoice::Fua => {}
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
    Persist { fua: true, reason: "asked for".to_owned() }
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
    fn fua_is_used_where_it_was_asked_for_and_is_possible() {
        let auto = Options::default();
        let asked = Options { persist: PersistChoice::Fua, ..auto };
        assert!(persist(&asked, DIRECT).fua);
        assert!(!persist(&auto, DIRECT).fua);
        assert!(!persist(&asked, Facts { direct_align_bytes: 0, ..DIRECT }).fua);
        assert!(!persist(&asked, Facts { direct_align_bytes: 16384, ..DIRECT }).fua);
        assert!(!persist(&Options { persist: PersistChoice::Flush, ..auto }, DIRECT).fua);
        assert!(!persist(&Options { strict: true, ..asked }, DIRECT).fua);
        assert!(!persist(&Options { no_sync: true, ..asked }, DIRECT).fua);
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
