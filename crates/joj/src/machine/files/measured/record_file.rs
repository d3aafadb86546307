//! A file of records, written and synced in each of Mobibench's ways.
//!
//!   normal, O_SYNC, O_DIRECT    pwrite
//!   fsync, fdatasync            pwrite, then the call
//!   mmap                        a copy into the mapping; with MS_ASYNC or MS_SYNC msync of that record behind it

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::ptr::{self, NonNull};

use blockio::aligned::AlignedBuffer;
use joj_analysis::mobibench::setup::FileSync;
use rustix::fs::OFlags;
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};

/// What Mobibench fills its buffer with.
pub const RECORD_BYTE: u8 = 0xfe;

/// The file, and a record in memory.
#[derive(Debug)]
pub struct RecordFile {
    file: File,
    sync: FileSync,
    record: AlignedBuffer,
    mapping: Option<Mapping>,
}

impl RecordFile {
    /// Opens or creates the file for records of `record_bytes`. A mapping needs all `file_bytes` of it, so a shorter file gets them as a
    /// hole.
    /// # Errors
    /// As open(2), ftruncate(2), mmap(2): `InvalidInput` where the filesystem has no O_DIRECT.
    pub fn open(path: &Path, sync: FileSync, file_bytes: u64, record_bytes: usize) -> io::Result<RecordFile> {
        let flags = match sync {
            FileSync::OSync => OFlags::SYNC,
            FileSync::Direct => OFlags::DIRECT,
            FileSync::SyncDirect => OFlags::SYNC | OFlags::DIRECT,
            _ => OFlags::empty(),
        };
        let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
        let mut options = OpenOptions::new();
        let file =
            options.read(true).write(true).create(true).truncate(false).custom_flags(flags).open(path)?;
        let mapping = match sync.is_mapped() {
            true => Some(Mapping::of(&file, file_bytes)?),
            false => None,
        };
        let mut record = AlignedBuffer::zeroed(record_bytes);
        record.bytes_mut().fill(RECORD_BYTE);
        Ok(RecordFile { file, sync, record, mapping })
    }

    /// Writes record `index`, and syncs it as the mode says.
    /// # Errors
    /// As pwrite(2), fsync(2), msync(2).
    pub fn write(&mut self, index: u64) -> io::Result<()> {
        let offset_bytes = index * self.record.len() as u64;
        if let Some(mapping) = &mut self.mapping {
            mapping.write(self.record.bytes(), offset_bytes);
            return match self.sync {
                FileSync::MmapAsync => mapping.sync(offset_bytes, self.record.len(), MsyncFlags::ASYNC),
                FileSync::MmapSync => mapping.sync(offset_bytes, self.record.len(), MsyncFlags::SYNC),
                _ => Ok(()),
            };
        }
        self.file.write_all_at(self.record.bytes(), offset_bytes)?;
        match self.sync {
            FileSync::Fsync => self.file.sync_all(),
            FileSync::Fdatasync => self.file.sync_data(),
            _ => Ok(()),
        }
    }

    /// Reads record `index`.
    /// # Errors
    /// As pread(2); `UnexpectedEof` where the file ends before.
    pub fn read(&mut self, index: u64) -> io::Result<()> {
        let offset_bytes = index * self.record.len() as u64;
        if let Some(mapping) = &self.mapping {
            mapping.read(self.record.bytes_mut(), offset_bytes);
            return Ok(());
        }
        self.file.read_exact_at(self.record.bytes_mut(), offset_bytes)
    }

    /// The sync of the whole file after the last write: msync of a mapping, else fsync.
    /// # Errors
    /// As these.
    pub fn sync_all(&self) -> io::Result<()> {
        match &self.mapping {
            Some(mapping) => mapping.sync(0, mapping.bytes, MsyncFlags::SYNC),
            None => self.file.sync_all(),
        }
    }
}

/// A shared mapping of a file from its begin.
#[derive(Debug)]
struct Mapping {
    begin: NonNull<u8>,
    bytes: usize,
}

impl Mapping {
    fn of(file: &File, file_bytes: u64) -> io::Result<Mapping> {
        if file.metadata()?.len() < file_bytes {
            file.set_len(file_bytes)?;
        }
        let bytes = usize::try_from(file_bytes).map_err(io::Error::other)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping where the kernel likes; the file has these bytes. Whoever cuts it meanwhile gets this process a
        // SIGBUS, which ends it and harms no memory.
        let begin = unsafe { mmap(ptr::null_mut(), bytes, protection, MapFlags::SHARED, file, 0) }?;
        let begin = NonNull::new(begin.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Mapping { begin, bytes })
    }

    /// The address of so many bytes that are all inside.
    fn at(&self, offset_bytes: u64, bytes: usize) -> *mut u8 {
        let offset = usize::try_from(offset_bytes).unwrap_or(usize::MAX);
        let end = offset.saturating_add(bytes);
        assert!(end <= self.bytes, "record at {offset_bytes} of a mapping of {} bytes", self.bytes);
        self.begin.as_ptr().wrapping_add(offset)
    }

    fn write(&mut self, record: &[u8], offset_bytes: u64) {
        let to = self.at(offset_bytes, record.len());
        // SAFETY: `at` checked that the record lies inside; nobody in this process has a reference to the mapping.
        unsafe { ptr::copy_nonoverlapping(record.as_ptr(), to, record.len()) };
    }

    fn read(&self, record: &mut [u8], offset_bytes: u64) {
        let from = self.at(offset_bytes, record.len());
        // SAFETY: as in `write`.
        unsafe { ptr::copy_nonoverlapping(from, record.as_mut_ptr(), record.len()) };
    }

    fn sync(&self, offset_bytes: u64, bytes: usize, flags: MsyncFlags) -> io::Result<()> {
        let from = self.at(offset_bytes, bytes);
        // SAFETY: `at` checked that the bytes lie inside; msync changes none of them.
        Ok(unsafe { msync(from.cast(), bytes, flags) }?)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, whole, and not used again.
        let _ = unsafe { munmap(self.begin.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_writes_the_record_that_is_asked_for() {
        let place = std::env::temp_dir().join(format!("joj-records-{}", std::process::id()));
        for sync in FileSync::ALL {
            let path = place.with_extension(sync.number().to_string());
            let mut file = match RecordFile::open(&path, sync, 16_384, 4_096) {
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    eprintln!("skipped: {sync:?}: {error}");
                    continue;
                }
                opened => opened.unwrap(),
            };
            file.write(2).unwrap();
            file.sync_all().unwrap();
            file.record.bytes_mut().fill(0);
            file.read(2).unwrap();
            assert_eq!(file.record.bytes(), [RECORD_BYTE; 4_096], "{sync:?} read");
            let written = std::fs::read(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            assert_eq!(written[..8_192], [0; 8_192], "{sync:?} in front");
            assert_eq!(written[8_192..12_288], [RECORD_BYTE; 4_096], "{sync:?}");
            assert_eq!(written.len(), if sync.is_mapped() { 16_384 } else { 12_288 }, "{sync:?}");
        }
    }
}
