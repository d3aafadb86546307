//! SQLite's wal-index in shared memory: the few fields that waldio reads, never writes.
//!
//!   offset 14 | page size, 2 bytes (1 means 65536)     16 | last published frame, 4      32 | salts, 8
//!          96 | frames that checkpoints copied, 4
//!
//! Source: wal.c, `WalIndexHdr` and `WalCkptInfo`; the first of its two copies. In the host's byte order, but for the salts, which
//! are copied as the log header has them.

use std::ptr;

use crate::frame::{LOG_HEADER_BYTES, Salts};
use crate::layout::frame_bytes;

/// Where region 0 of the wal-index is mapped.
#[derive(Debug, Clone, Copy)]
pub struct WalIndex {
    address: usize,
}

impl WalIndex {
    /// Wraps region 0.
    /// # Safety
    /// `region` is what the base VFS's `xShmMap` returned for region 0, of 32 KiB; the value is dropped before the
    /// file's `xShmUnmap` or `xClose` goes to the base VFS.
    pub unsafe fn new(region: *mut std::ffi::c_void) -> Option<WalIndex> {
        (!region.is_null()).then(|| WalIndex { address: region.expose_provenance() })
    }

    fn read<T: Copy>(self, offset: usize) -> T {
        let field = ptr::with_exposed_provenance::<T>(self.address + offset);
        // SAFETY: mapped and large enough (`new`); aligned, as the region is page-aligned and offsets are multiples
        // of the field's size. Other processes write it meanwhile, hence volatile; any value is valid for T, an
        // integer or bytes.
        unsafe { ptr::read_volatile(field) }
    }

    /// The generation that is current.
    pub fn salts(self) -> Salts {
        Salts(self.read::<u64>(32).to_ne_bytes())
    }

    /// The database's page size in bytes; `None` before the index was made.
    pub fn page_bytes(self) -> Option<u32> {
        match self.read::<u16>(14) {
            0 => None,
            1 => Some(65536),
            size => Some(u32::from(size)),
        }
    }

    /// The newest commit: its generation and its last frame.
    pub fn newest(self) -> (Salts, u32) {
        (self.salts(), self.read::<u32>(16))
    }

    /// How many frames the log has, and how many of them checkpoints have copied into the database.
    pub fn frames_and_copied(self) -> (u32, u32) {
        (self.read::<u32>(16), self.read::<u32>(96))
    }

    /// Where the last published frame ends in the log.
    pub fn published_end(self) -> Option<u64> {
        let frames = u64::from(self.read::<u32>(16));
        Some(LOG_HEADER_BYTES + frames * frame_bytes(self.page_bytes()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_where_sqlite_puts_them() {
        let mut region = vec![0_u32; 8192];
        region[3] = u32::from_ne_bytes([0, 0, 0, 0x10]).to_le(); // bytes 14 and 15: 4096 on a little-endian host
        region[4] = 3;
        region[8] = u32::from_ne_bytes(*b"salt");
        region[9] = u32::from_ne_bytes(*b"SALT");
        // SAFETY: `region` is 32 KiB and outlives the value.
        let index = unsafe { WalIndex::new(region.as_mut_ptr().cast()) }.unwrap();
        assert_eq!(index.salts(), Salts(*b"saltSALT"));
        if cfg!(target_endian = "little") {
            assert_eq!(index.page_bytes(), Some(4096));
            assert_eq!(index.published_end(), Some(32 + 3 * 4120));
        }
        drop(region);
    }
}
