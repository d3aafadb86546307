//! Flash translation layers: what a program costs beside itself. One file each, and what they share:
//!
//! ```text
//! bast          each data block that is overwritten gets a log block of its own
//! fast          data blocks share the log blocks
//! hybrid        a log of fast pages in front of a page map: an SLC cache
//! page_mapped   any unit anywhere; garbage collection frees blocks
//! placement     which block holds a unit
//! ```

mod bast;
mod fast;
mod hybrid;
mod page_mapped;
mod placement;

use std::ops::RangeInclusive;

use crate::description::{self, Flash};
use crate::number::size;
use bast::Bast;
use fast::Fast;
use hybrid::Hybrid;
use page_mapped::PageMapped;

/// Work behind a write: pages (or units) copied, blocks erased.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Work {
    copies: u64,
    erasures: u64,
}

impl Work {
    const fn plus(self, other: Work) -> Work {
        Work { copies: self.copies + other.copies, erasures: self.erasures + other.erasures }
    }
}

#[derive(Debug)]
enum Kind {
    InPlace,
    PageMapped(PageMapped),
    Bast(Bast),
    Fast(Fast),
    Hybrid(Hybrid),
}

#[derive(Debug)]
pub(super) struct Ftl {
    kind: Kind,
    program_ns: u64,
    copy_ns: u64,
    erase_ns: u64,
}

impl Ftl {
    pub fn new(described: &description::FtlKind, flash: &Flash, capacity_bytes: u64) -> Self {
        let units = |bytes: u64| bytes / flash.unit_bytes;
        let pages = |bytes: u64| bytes / flash.page_bytes;
        let blocks = |block_bytes: u64, spare_percent: u64| {
            (capacity_bytes.div_ceil(block_bytes) * (100 + spare_percent)).div_ceil(100)
        };
        // A unit's share of reading a page and programming another.
        let move_ns = (flash.read_ns + flash.program_ns) * flash.unit_bytes / flash.page_bytes;
        let (kind, program_ns, copy_ns) = match *described {
            description::FtlKind::InPlace => (Kind::InPlace, flash.program_ns, 0),
            description::FtlKind::PageMapped { block_bytes, spare_percent } => (
                Kind::PageMapped(PageMapped::new(units(block_bytes), blocks(block_bytes, spare_percent))),
                flash.program_ns,
                move_ns,
            ),
            description::FtlKind::Bast { block_bytes, log_blocks, copy_ns } => {
                (Kind::Bast(Bast::new(pages(block_bytes), log_blocks)), flash.program_ns, copy_ns)
            }
            description::FtlKind::Fast { block_bytes, log_blocks, copy_ns } => {
                (Kind::Fast(Fast::new(pages(block_bytes), log_blocks)), flash.program_ns, copy_ns)
            }
            description::FtlKind::Hybrid { block_bytes, spare_percent, log_bytes, log_program_ns } => {
                let main = PageMapped::new(units(block_bytes), blocks(block_bytes, spare_percent));
                let log_blocks = (log_bytes / block_bytes).max(1);
                (Kind::Hybrid(Hybrid::new(main, units(block_bytes), log_blocks)), log_program_ns, move_ns)
            }
        };
        Ftl { kind, program_ns, copy_ns, erase_ns: flash.erase_ns }
    }

    /// Writes the units of one page; (program, merges and garbage collection), nanoseconds.
    pub fn write(&mut self, units: &[u64]) -> (u64, u64) {
        let mut work = Work::default();
        for unit in units {
            work = work.plus(match &mut self.kind {
                Kind::InPlace => Work::default(),
                Kind::PageMapped(pages) => pages.write(*unit),
                Kind::Bast(log) => log.write(*unit),
                Kind::Fast(log) => log.write(*unit),
                Kind::Hybrid(log) => log.write(*unit),
            });
        }
        debug_assert!(size(units.len()) > 0, "a program without a unit");
        (self.program_ns, work.copies * self.copy_ns + work.erasures * self.erase_ns)
    }

    /// The host does not need these units.
    pub fn trim(&mut self, range: RangeInclusive<u64>) {
        match &mut self.kind {
            Kind::PageMapped(pages) => pages.trim(range),
            Kind::Hybrid(log) => log.trim(range),
            // A log block keeps what it has: its merge copies trimmed pages too.
            Kind::InPlace | Kind::Bast(_) | Kind::Fast(_) => {}
        }
    }
}
