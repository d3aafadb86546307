//! A file like the best log there could be: its whole size is there, initialised, overwritten in place block by
//! block. What the disk needs for one block of it is the limit for a commit.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use blockio::aligned::AlignedBuffer;
use joj_analysis::bench::document::LimitKind;
use rustix::fs::{IFlags, OFlags};

use crate::machine::files::measured::record_file::write_durable;
use crate::machine::proc::clock::now_ns;

/// Size of one write, in bytes: SQLite's default page, and what flash devices like.
pub const WRITE_BYTES: usize = 4096;

/// Size of the file, in bytes: what SQLite's log grows to before a checkpoint lets it start over.
const FILE_BYTES: usize = 4 << 20;

const BLOCKS: u64 = (FILE_BYTES / WRITE_BYTES) as u64;

/// The file, open through the page cache.
#[derive(Debug)]
pub struct LimitFile {
    path: PathBuf,
    file: File,
    next_block: u64,
}

impl LimitFile {
    /// Makes and initialises the file in `directory` and brings it to the medium.
    /// # Errors
    /// As write(2) and fsync(2); a part of the file may be left.
    pub fn create(directory: &Path) -> io::Result<LimitFile> {
        let path = directory.join("limit");
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path)?;
        // Only Btrfs knows the flag, and only an empty file takes it; elsewhere nothing is lost without it.
        if let Ok(flags) = rustix::fs::ioctl_getflags(&file) {
            let _ = rustix::fs::ioctl_setflags(&file, flags | IFlags::NOCOW);
        }
        // Written, not reserved: the first write into a reserved block would still change metadata.
        file.write_all_at(&vec![0; FILE_BYTES], 0)?;
        file.sync_all()?;
        Ok(LimitFile { path, file, next_block: 0 })
    }

    /// Runs `count` operations; their latencies in nanoseconds, in the order they were made.
    /// # Errors
    /// `InvalidInput` or `Unsupported` where the file system refuses direct writes; else as write(2).
    pub fn measure(&mut self, kind: LimitKind, count: u64) -> io::Result<Vec<u64>> {
        let direct = match kind {
            LimitKind::DirectDurableWrite => Some(self.open_direct()?),
            LimitKind::WriteFdatasync | LimitKind::LoneFlush => None,
        };
        let mut block = AlignedBuffer::zeroed(WRITE_BYTES);
        let mut latencies_ns = Vec::new();
        for number in 0..count {
            // A device may notice that nothing changed.
            block.bytes_mut()[..8].copy_from_slice(&(number + 1).to_le_bytes());
            let offset = self.next_block * WRITE_BYTES as u64;
            let began_ns = now_ns();
            match &direct {
                Some(file) => write_durable(file, block.bytes(), offset)?,
                None => {
                    if kind.stores_data() {
                        self.file.write_all_at(block.bytes(), offset)?;
                    }
                    self.file.sync_data()?;
                }
            }
            latencies_ns.push(now_ns() - began_ns);
            self.next_block = (self.next_block + 1) % BLOCKS;
        }
        Ok(latencies_ns)
    }

    /// Appends `count` blocks, fsync after each; latencies in nanoseconds. The file is as before afterwards.
    /// # Errors
    /// As write(2) and fsync(2); the file may be longer by some blocks.
    pub fn measure_appends(&mut self, count: u64) -> io::Result<Vec<u64>> {
        let mut latencies_ns = Vec::new();
        for number in 0..count {
            let began_ns = now_ns();
            self.file.write_all_at(&[1; WRITE_BYTES], (BLOCKS + number) * WRITE_BYTES as u64)?;
            self.file.sync_all()?;
            latencies_ns.push(now_ns() - began_ns);
        }
        self.file.set_len(FILE_BYTES as u64)?;
        Ok(latencies_ns)
    }

    fn open_direct(&self) -> io::Result<File> {
        let flag = i32::try_from(OFlags::DIRECT.bits()).map_err(io::Error::other)?;
        OpenOptions::new().write(true).custom_flags(flag).open(&self.path)
    }
}
