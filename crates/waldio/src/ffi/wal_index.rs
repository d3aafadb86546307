//! SQLite's wal-index in shared memory: the few fields that waldio reads. It writes none but to have all of it made anew, to
//! take back what a checkpoint that copied nothing announced, and to have frames copied again.
//!
//!   offset 14 | page size, 2 bytes (1 means 65536)     16 | last published frame, 4      24 | its checksum, 8
//!          32 | salts, 8
//!          96 | frames that checkpoints copied, 4        100 | read marks 0 to 4, 4 each
//!         128 | frames that a checkpoint began to copy, 4
//!
//! The header stands there twice, 48 bytes apart; a writer changes the second copy, then the first.
//!
//! Source: wal.c, `WalIndexHdr` and `WalCkptInfo`; the first copy where nothing else is said. In the host's byte order, but for the salts, which
//! are copied as the log header has them.

use std::ptr;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::fence;

use crate::log::frame::{Checksum, LOG_HEADER_BYTES, Prefix, Salts, Version};
use crate::log::layout::frame_bytes;

/// The header's second copy stands behind the first.
const COPY_BYTES: usize = 48;

/// Where the frames stand that checkpoints copied.
const COPIED: usize = 96;

/// Where the frames stand that a checkpoint began to copy.
const ATTEMPTED: usize = 128;

/// Where the read marks stand, and one that no reader may use.
const MARKS: usize = 100;
const UNUSED: u32 = u32::MAX;

const HEADER_WORDS: usize = 2 * COPY_BYTES / size_of::<u32>();

/// The header, both copies of it.
pub type Header = [u32; HEADER_WORDS];

/// How much of the log there is, how much of it is copied, and what read locks stand for: as it was at one moment, or nearly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogView {
    /// The newest commit.
    pub newest: Version,
    /// The database's page size.
    pub page_bytes: u32,
    /// Frames that checkpoints copied.
    pub copied: u32,
    /// Up to which frame read locks 0 to 4 stand for the log; `None` for one that nobody may have.
    pub marks: [Option<u32>; 5],
}

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

    /// A region of a test's own.
    #[cfg(test)]
    pub fn of_words(words: &'static [std::sync::atomic::AtomicU32; 8192]) -> WalIndex {
        WalIndex { address: words.as_ptr().expose_provenance() }
    }

    /// The four bytes from `offset` on, a multiple of four. SQLite writes them without a lock that readers have, and says by two copies and
    /// a checksum what belongs together: no order is asked for here.
    fn word(&self, offset: usize) -> &AtomicU32 {
        let field = ptr::with_exposed_provenance_mut::<u32>(self.address + offset);
        // SAFETY: mapped and large enough (`new`), for as long as the value; aligned, as the region is page-aligned.
        unsafe { AtomicU32::from_ptr(field) }
    }

    fn read(self, offset: usize) -> u32 {
        self.word(offset).load(Relaxed)
    }

    fn salts_at(self, offset: usize) -> Salts {
        let [[a, b, c, d], [e, f, g, h]] = [0, 4].map(|more| self.read(offset + more).to_ne_bytes());
        Salts([a, b, c, d, e, f, g, h])
    }

    /// The generation that is current.
    pub fn salts(self) -> Salts {
        self.salts_at(32)
    }

    /// The database's page size in bytes; `None` before the index was made.
    pub fn page_bytes(self) -> Option<u32> {
        let [.., first, second] = self.read(12).to_ne_bytes();
        match u16::from_ne_bytes([first, second]) {
            0 => None,
            1 => Some(65536),
            size => Some(u32::from(size)),
        }
    }

    /// The newest commit: its generation and its last frame.
    pub fn newest(self) -> Version {
        Version { salts: self.salts(), frames: self.read(16) }
    }

    fn prefix_at(self, copy: usize) -> Prefix {
        Prefix {
            salts: self.salts_at(copy + 32),
            frames: self.read(copy + 16),
            checksum: Checksum(self.read(copy + 24), self.read(copy + 28)),
        }
    }

    /// The name of what is published, where no writer is at work on the header: both copies agree. Somebody may be at work
    /// for as long as its process is stopped; then there is none.
    pub fn published(self) -> Option<Prefix> {
        let first = self.prefix_at(0);
        fence(SeqCst);
        let second = self.prefix_at(COPY_BYTES);
        fence(SeqCst);
        // A writer that has finished meanwhile has changed the first copy as well.
        (first == second && self.prefix_at(0) == first).then_some(first)
    }

    /// True where a checkpoint has copied everything up to the frame of `version`, or there was nothing to copy.
    pub fn is_copied(self, version: Version) -> bool {
        let (_, copied) = self.frames_and_copied();
        // A new generation's header is there before the count of copied frames falls to zero.
        fence(SeqCst);
        version.frames == 0 || copied >= version.frames && self.salts() == version.salts
    }

    /// The same for the newest version.
    pub fn is_all_copied(self) -> bool {
        self.is_copied(self.newest())
    }

    /// How many frames the log has, and how many of them checkpoints have copied into the database.
    pub fn frames_and_copied(self) -> (u32, u32) {
        (self.read(16), self.read(COPIED))
    }

    /// No checkpoint copied a frame behind this one, not even in part.
    pub fn copied_at_most(self) -> u32 {
        self.read(COPIED).max(self.attempted())
    }

    /// How far checkpoints began to copy.
    pub fn attempted(self) -> u32 {
        self.read(ATTEMPTED)
    }

    /// The checkpoint under way copied nothing, and gives up: none began behind `frames`. The caller has the checkpoint lock.
    pub fn put_attempted(self, frames: u32) {
        self.word(ATTEMPTED).store(frames, Relaxed);
        fence(SeqCst);
    }

    /// Only so many frames count as copied from now on: fewer than before, which any reader may take for what it is. The caller has the
    /// checkpoint lock.
    pub fn put_copied(self, frames: u32) {
        self.word(COPIED).store(frames, Relaxed);
        fence(SeqCst);
    }

    /// Takes the header away: whoever reads next makes the wal-index anew, from the log. The caller has the locks that SQLite takes
    /// for that, and gives them back when the log is as it should be found, or the header is back in its place.
    pub fn take_header(self) -> Header {
        let header = std::array::from_fn(|word| self.read(word * size_of::<u32>()));
        self.put_header(&[0; HEADER_WORDS]);
        header
    }

    /// Puts the header, both copies of it, back.
    pub fn put_header(self, header: &Header) {
        for (word, value) in header.iter().enumerate() {
            self.word(word * size_of::<u32>()).store(*value, Relaxed);
        }
        fence(SeqCst);
    }

    /// What of the log is where; `None` before the index was made.
    pub fn log_view(self) -> Option<LogView> {
        let mark = |number| match self.read(MARKS + 4 * number) {
            UNUSED => None,
            frames => Some(frames),
        };
        Some(LogView {
            newest: self.newest(),
            page_bytes: self.page_bytes()?,
            copied: self.read(COPIED),
            marks: std::array::from_fn(mark),
        })
    }

    /// True where read lock `number` (1 to 4) stands for a snapshot older than the newest commit: whoever holds it keeps
    /// a checkpoint from copying what came later. Nobody need hold it.
    pub fn is_old_snapshot(self, number: usize) -> bool {
        let mark = self.snapshot_of(number).frames;
        mark != UNUSED && mark < self.newest().frames
    }

    /// What read lock `number` (1 to 4) stands for: the current generation, up to a frame.
    pub fn snapshot_of(self, number: usize) -> Version {
        assert!((1..=4).contains(&number), "read lock {number} stands for no snapshot of the log");
        Version { salts: self.salts(), frames: self.read(MARKS + 4 * number) }
    }

    /// Where the last published frame ends in the log.
    pub fn published_end(self) -> Option<u64> {
        let frames = u64::from(self.read(16));
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
        assert_eq!(index.published(), None, "the copies differ");
        (region[6], region[7]) = (11, 12);
        region[12 + 4] = 3;
        region.copy_within(6..10, 12 + 6);
        // SAFETY: as above.
        let index = unsafe { WalIndex::new(region.as_mut_ptr().cast()) }.unwrap();
        let newest = Version { salts: Salts(*b"saltSALT"), frames: 3 };
        let published = Prefix { salts: newest.salts, frames: 3, checksum: Checksum(11, 12) };
        assert_eq!((index.published(), index.newest()), (Some(published), newest));
        assert!(!index.is_copied(newest) && index.is_copied(Version { frames: 0, ..newest }));
        region[24] = 3;
        (region[26], region[27], region[28]) = (2, 3, u32::MAX);
        // SAFETY: as above.
        let index = unsafe { WalIndex::new(region.as_mut_ptr().cast()) }.unwrap();
        assert_eq!([1, 2, 3].map(|number| index.is_old_snapshot(number)), [true, false, false]);
        assert!(index.is_copied(newest) && !index.is_copied(Version { salts: Salts([0; 8]), ..newest }));
        let view = index.log_view().map(|view| (view.newest, view.copied, view.marks));
        assert_eq!(view, Some((newest, 3, [Some(0), Some(2), Some(3), None, Some(0)])));
        if cfg!(target_endian = "little") {
            assert_eq!(index.page_bytes(), Some(4096));
            assert_eq!(index.published_end(), Some(32 + 3 * 4120));
        }
        assert_eq!(index.copied_at_most(), 3);
        region[32] = 4;
        // SAFETY: as above.
        let index = unsafe { WalIndex::new(region.as_mut_ptr().cast()) }.unwrap();
        assert_eq!(index.copied_at_most(), 4);
        let before = region.clone();
        let header = index.take_header();
        assert_eq!(region[..24], [0; 24]);
        assert_eq!(region[24..], before[24..], "the header goes, and nothing else");
        index.put_header(&header);
        assert_eq!(region, before);
        index.put_copied(0);
        assert_eq!(
            (index.frames_and_copied(), index.copied_at_most()),
            ((3, 0), 4),
            "some may be copied in part"
        );
        drop(region);
    }
}
