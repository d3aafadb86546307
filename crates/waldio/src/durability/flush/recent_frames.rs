//! Bytes of the newest published frames, where they were written past the page cache (`waldio_persist=fua`). Memory only.
//!
//! A direct write leaves nothing in the page cache, so a read of a fresh frame would go to the device; and the next
//! direct write must repeat the bytes in front of it in its first block. Both come from here, as long as the wal-index has
//! the name that they end with: whatever else happened to the log, its name is another one then.

use crate::log::frame::Prefix;

/// The newest published frames of one log.
#[derive(Debug, Default)]
pub struct RecentFrames {
    /// What the log ends with behind them.
    name: Option<Prefix>,
    start: u64,
    bytes: Vec<u8>,
}

impl RecentFrames {
    /// A commit was written at `offset`, behind what ended with `before`, and ends with `name`. At most `bytes_max` are kept.
    pub fn append(&mut self, before: Prefix, name: Prefix, offset: u64, data: &[u8], bytes_max: usize) {
        let goes_on = self.name == Some(before) && before.salts == name.salts && offset == self.end();
        if !goes_on || self.bytes.len() + data.len() > bytes_max {
            *self = RecentFrames { name: None, start: offset, bytes: Vec::new() };
        }
        // Where memory is short the frames are read from the file.
        if data.len() <= bytes_max && self.bytes.try_reserve(data.len()).is_ok() {
            self.bytes.extend_from_slice(data);
            self.name = Some(name);
        }
    }

    /// Copies bytes of a log that ends with `published` now; false where the range is not wholly known.
    pub fn read(&self, published: Option<Prefix>, into: &mut [u8], offset: u64) -> bool {
        let current = published.is_some() && published == self.name;
        if !current || offset < self.start || offset + into.len() as u64 > self.end() {
            return false;
        }
        let at = usize::try_from(offset - self.start).unwrap_or(usize::MAX);
        into.copy_from_slice(&self.bytes[at..at + into.len()]);
        true
    }

    /// Forgets everything, and gives the memory back.
    pub fn clear(&mut self) {
        *self = RecentFrames::default();
    }

    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::frame::{Checksum, Salts};

    const MAX: usize = 1 << 16;

    fn name(frames: u32, checksum: u32) -> Prefix {
        Prefix { salts: Salts([1; 8]), frames, checksum: Checksum(checksum, 0) }
    }

    fn read(recent: &RecentFrames, published: Prefix, offset: u64, len_bytes: usize) -> Option<Vec<u8>> {
        let mut into = vec![0; len_bytes];
        recent.read(Some(published), &mut into, offset).then_some(into)
    }

    #[test]
    fn commits_one_behind_the_other_read_back_under_the_name_of_the_last() {
        let mut recent = RecentFrames::default();
        recent.append(name(0, 0), name(1, 1), 32, &[1; 100], MAX);
        recent.append(name(1, 1), name(2, 2), 132, &[2; 100], MAX);
        assert_eq!(read(&recent, name(2, 2), 130, 4), Some(vec![1, 1, 2, 2]));
        assert_eq!(read(&recent, name(1, 1), 130, 2), None, "the second is not published");
        assert_eq!(read(&recent, name(2, 3), 130, 4), None, "another log");
        assert_eq!(read(&recent, name(2, 2), 231, 2), None);
        assert!(!recent.read(None, &mut [0], 32));
    }

    #[test]
    fn a_commit_behind_other_frames_starts_anew() {
        let mut recent = RecentFrames::default();
        recent.append(name(0, 0), name(1, 1), 32, &[1; 100], MAX);
        recent.append(name(2, 2), name(3, 3), 232, &[3; 100], MAX);
        assert_eq!(read(&recent, name(3, 3), 32, 1), None);
        assert_eq!(read(&recent, name(3, 3), 232, 100), Some(vec![3; 100]));
    }

    #[test]
    fn memory_stays_within_its_bound() {
        let mut recent = RecentFrames::default();
        for commit in 0..200_u32 {
            let (before, after) = (name(commit, commit), name(commit + 1, commit + 1));
            recent.append(before, after, u64::from(commit) * 1000, &[3; 1000], MAX);
            assert!(recent.bytes.len() <= MAX);
            assert_eq!(read(&recent, after, u64::from(commit) * 1000, 1000), Some(vec![3; 1000]));
        }
        recent.append(name(200, 200), name(201, 201), 200_000, &vec![1; MAX + 1], MAX);
        assert_eq!(read(&recent, name(201, 201), 200_000, 1), None);
    }
}
