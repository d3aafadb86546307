//! A file like a log that is made ready ahead of its writes, in each of the ways that there are. What reserves and
//! writes is blockio, as in waldio.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use blockio::aligned::AlignedBuffer;
use blockio::disk::{Disk, DiskFile, Fill, OpenOptions};
use blockio::real::disk::RealDisk;
use joj_analysis::bench::study::durability::Durability;
use joj_analysis::bench::study::initialisation::Approach;
use rustix::fs::FallocateFlags;

/// Size of a block, in bytes: SQLite's default page.
pub const BLOCK_BYTES: usize = 4096;

/// Zeros are written over reserved space in pieces of this many bytes, as blockio appends them.
const PIECE_BYTES: usize = 64 << 10;

/// `FALLOC_FL_WRITE_ZEROES` (Linux 6.17), which rustix does not name yet.
const FALLOC_FL_WRITE_ZEROES: u32 = 0x80;

/// A file like a log, open, and the way in which its space is made ready.
#[derive(Debug)]
pub struct PreparedLog {
    path: PathBuf,
    file: Box<dyn DiskFile>,
    approach: Approach,
    block: AlignedBuffer,
}

impl PreparedLog {
    /// Makes an empty file in `directory`, which has none yet; NOCOW on Btrfs, as waldio's log.
    /// # Errors
    /// As open(2); nothing is left.
    pub fn create(directory: &Path, approach: Approach) -> io::Result<PreparedLog> {
        let path = directory.join("log");
        let options =
            OpenOptions { create: true, exclusive: true, read_only: false, mode: 0o600, owner: None };
        let file = RealDisk.open(&path, options)?;
        Ok(PreparedLog { path, file, approach, block: AlignedBuffer::zeroed(BLOCK_BYTES) })
    }

    /// Makes the file ready up to `end_bytes` and brings that to the medium.
    /// # Errors
    /// `Unsupported` where the way is not open here, see `refusal`; else as write(2), fallocate(2) and fdatasync(2).
    pub fn extend(&self, end_bytes: u64) -> io::Result<()> {
        match self.approach {
            Approach::Appended => return Ok(()),
            Approach::Zeroes => self.file.extend(end_bytes, Fill::Zeroes)?,
            Approach::FallocateZeroes => self.reserve_and_zero(end_bytes)?,
            Approach::Unwritten => self.file.extend(end_bytes, Fill::Unwritten)?,
            Approach::WriteZeroes => self.file.extend(end_bytes, Fill::WriteZeroes)?,
        };
        self.file.sync_data()
    }

    fn reserve_and_zero(&self, end_bytes: u64) -> io::Result<u64> {
        let mut offset = self.file.size()?;
        self.file.extend(end_bytes, Fill::Unwritten)?;
        let zeros = vec![0; PIECE_BYTES];
        while offset < end_bytes {
            let bytes = usize::try_from(end_bytes - offset).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            self.file.write_at(&zeros[..bytes], offset)?;
            offset += bytes as u64;
        }
        Ok(end_bytes)
    }

    /// Writes block `index`, whose first bytes tell `serial`, and makes it durable.
    /// # Errors
    /// As [`PreparedLog::write`].
    pub fn write_block(&mut self, index: u64, serial: u64, durability: Durability) -> io::Result<()> {
        self.block.bytes_mut()[..8].copy_from_slice(&serial.to_le_bytes());
        self.write(self.block.bytes(), index * BLOCK_BYTES as u64, durability)
    }

    /// Writes `data` at `offset` and makes it durable; for a direct write both are aligned.
    /// # Errors
    /// `Unsupported` where the file takes no such direct write; else as write(2) and fdatasync(2).
    pub fn write(&self, data: &[u8], offset: u64, durability: Durability) -> io::Result<()> {
        match durability {
            Durability::Pd => self.file.write_durable(data, offset),
            Durability::Ns => self.file.write_at(data, offset),
            Durability::Fs => {
                self.file.write_at(data, offset)?;
                self.file.sync_data()
            }
        }
    }

    /// Writes aligned `data` at `offset` past the page cache, and waits for no medium.
    /// # Errors
    /// `Unsupported` where the file takes no direct write; else as write(2).
    pub fn write_direct(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_direct(data, offset)
    }

    /// fdatasync.
    /// # Errors
    /// As fdatasync(2).
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// True where the file holds `data` from its beginning, zeros at the end of `data` aside that the file lacks.
    /// # Errors
    /// As pread(2).
    pub fn begins_with(&self, data: &[u8]) -> io::Result<bool> {
        let mut found = vec![0; data.len()];
        self.file.read_at(&mut found, 0)?;
        Ok(found == data)
    }

    /// What block `index` tells; `None` past the end of the file.
    /// # Errors
    /// As pread(2).
    pub fn serial(&self, index: u64) -> io::Result<Option<u64>> {
        let mut serial = [0; 8];
        let read = self.file.read_at(&mut serial, index * BLOCK_BYTES as u64)?;
        Ok((read == serial.len()).then(|| u64::from_le_bytes(serial)))
    }

    /// Size in bytes.
    /// # Errors
    /// As fstat(2).
    pub fn size_bytes(&self) -> io::Result<u64> {
        self.file.size()
    }

    /// Who does not take the way that `error` came from, with its errno; `disk` is the block device's kernel name.
    pub fn refusal(&self, error: &io::Error, disk: Option<&str>) -> String {
        if self.approach != Approach::WriteZeroes {
            return format!("the file system refuses it: {error}");
        }
        // blockio tells only that it is unsupported; asked again here, past it, for the errno.
        let flags = FallocateFlags::from_bits_retain(FALLOC_FL_WRITE_ZEROES);
        let opened = fs::OpenOptions::new().write(true).open(&self.path);
        let asked = opened.and_then(|file| Ok(rustix::fs::fallocate(&file, flags, 0, BLOCK_BYTES as u64)?));
        let errno = match asked {
            Err(error) => error.to_string(),
            Ok(()) => error.to_string(),
        };
        let limit = disk
            .map(|disk| fs::read_to_string(format!("/sys/block/{disk}/queue/write_zeroes_unmap_max_bytes")));
        format!("{}: {errno}", who_refused(limit.as_ref().map(|read| read.as_deref().ok())))
    }
}

/// By what the device says about itself: outer `None` without a device, inner `None` where it says nothing.
fn who_refused(write_zeroes_unmap_max_bytes: Option<Option<&str>>) -> &'static str {
    match write_zeroes_unmap_max_bytes.map(|text| text.map(str::trim)) {
        None => "the file system refuses it, and has no block device that could zero",
        // The limit came with the flag.
        Some(None) => "the kernel refuses it: before Linux 6.17 there is no FALLOC_FL_WRITE_ZEROES",
        Some(Some("0")) => {
            "the device cannot (queue/write_zeroes_unmap_max_bytes is 0); whether the file system could cannot be told"
        }
        Some(Some(_)) => "the file system refuses it: its device could zero",
    }
}

/// Writes everything that waits for the file system of `directory`, whoever wrote it, so that it is not counted with
/// what follows.
/// # Errors
/// As syncfs(2).
pub fn settle(directory: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(directory)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_log(approach: Approach, check: impl Fn(PreparedLog)) {
        let name = format!("joj-prepared-{}-{approach:?}", std::process::id());
        let place = std::env::temp_dir().join(name);
        fs::create_dir_all(&place).unwrap();
        check(PreparedLog::create(&place, approach).unwrap());
        settle(&place).unwrap();
        fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn every_way_gives_the_size_and_zeros_and_keeps_what_was_written() {
        for approach in
            [Approach::Zeroes, Approach::FallocateZeroes, Approach::Unwritten, Approach::WriteZeroes]
        {
            with_log(approach, |mut log| {
                let blocks = 40;
                match log.extend(blocks * BLOCK_BYTES as u64) {
                    Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                        let reason = log.refusal(&error, None);
                        assert!(reason.contains("os error"), "{reason}");
                        return;
                    }
                    other => other.unwrap(),
                }
                log.write_block(39, 7, Durability::Fs).unwrap();
                log.extend(2 * blocks * BLOCK_BYTES as u64).unwrap();
                assert_eq!(log.size_bytes().unwrap(), 2 * blocks * BLOCK_BYTES as u64, "{approach:?}");
                let serials: Vec<_> =
                    [38, 39, 40, 79, 80].iter().map(|at| log.serial(*at).unwrap()).collect();
                assert_eq!(serials, [Some(0), Some(7), Some(0), Some(0), None], "{approach:?}");
            });
        }
    }

    #[test]
    fn who_refuses_to_zero_is_named() {
        let cases = [
            (None, "no block device"),
            (Some(None), "kernel"),
            (Some(Some("0\n")), "device"),
            (Some(Some("8")), "file system"),
        ];
        for (limit, word) in cases {
            assert!(who_refused(limit).contains(word), "{limit:?}");
        }
    }
}
