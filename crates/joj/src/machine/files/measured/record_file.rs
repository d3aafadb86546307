//! A file of records, written and synced in each of the ways that there are.
//!
//!   none, O_SYNC, O_DSYNC, O_DIRECT    pwrite
//!   fsync, fdatasync                   pwrite, then the call
//!   RWF_DSYNC                          pwritev2
//!   polled                             io_uring, O_DIRECT
//!   mmap                               a copy into the mapping; with MS_ASYNC or MS_SYNC msync of that record behind it

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::ptr::{self, NonNull};

use blockio::aligned::AlignedBuffer;
use joj_analysis::bench::io::way::SyncWay;
use rustix::fs::Advice;
use rustix::io::ReadWriteFlags;
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};

use crate::machine::files::measured::polled_ring::PolledRing;

/// What Mobibench fills its buffer with.
pub const RECORD_BYTE: u8 = 0xfe;

/// Bytes of a write that fills a file.
const FILL_BYTES: u64 = 512 * 1024;

/// The file, and a record in memory.
#[derive(Debug)]
pub struct RecordFile {
    file: File,
    way: SyncWay,
    record: AlignedBuffer,
    access: Access,
}

/// By which means records are written and read.
#[derive(Debug)]
enum Access {
    /// pwrite, pread.
    Called,
    Mapped(Mapping),
    Polled(Box<PolledRing>),
}

impl RecordFile {
    /// Opens or creates the file for records of `record_bytes`. A mapping needs all `file_bytes` of it, so a shorter file gets them as a
    /// hole.
    /// # Errors
    /// As open(2), ftruncate(2), mmap(2): `InvalidInput` where the filesystem has no O_DIRECT.
    pub fn open(path: &Path, way: SyncWay, file_bytes: u64, record_bytes: usize) -> io::Result<RecordFile> {
        let flags = open_flags(way);
        let mut options = OpenOptions::new();
        let file =
            options.read(true).write(true).create(true).truncate(false).custom_flags(flags).open(path)?;
        let access = match way {
            mapped if mapped.is_mapped() => Access::Mapped(Mapping::of(&file, file_bytes)?),
            SyncWay::Polled => Access::Polled(Box::new(PolledRing::new()?)),
            _ => Access::Called,
        };
        let mut record = AlignedBuffer::zeroed(record_bytes);
        record.bytes_mut().fill(RECORD_BYTE);
        Ok(RecordFile { file, way, record, access })
    }

    /// Begins the record in memory with this number.
    pub fn stamp(&mut self, number: u64) {
        if let Some(first) = self.record.bytes_mut().first_chunk_mut() {
            *first = number.to_le_bytes();
        }
    }

    /// Writes record `index`, and syncs it as the mode says.
    /// # Errors
    /// As pwrite(2), fsync(2), msync(2).
    pub fn write(&mut self, index: u64) -> io::Result<()> {
        let offset_bytes = index * self.record.len() as u64;
        match &mut self.access {
            Access::Mapped(mapping) => {
                mapping.write(self.record.bytes(), offset_bytes);
                return match self.way {
                    SyncWay::MmapAsync => mapping.sync(offset_bytes, self.record.len(), MsyncFlags::ASYNC),
                    SyncWay::MmapSync => mapping.sync(offset_bytes, self.record.len(), MsyncFlags::SYNC),
                    _ => Ok(()),
                };
            }
            Access::Polled(ring) => return ring.write(&self.file, self.record.bytes(), offset_bytes),
            Access::Called => {}
        }
        if self.way == SyncWay::RwfDsync {
            return write_durable(&self.file, self.record.bytes(), offset_bytes);
        }
        self.file.write_all_at(self.record.bytes(), offset_bytes)?;
        match self.way {
            SyncWay::Fsync => self.file.sync_all(),
            SyncWay::Fdatasync => self.file.sync_data(),
            _ => Ok(()),
        }
    }

    /// Reads record `index`.
    /// # Errors
    /// As pread(2); `UnexpectedEof` where the file ends before.
    pub fn read(&mut self, index: u64) -> io::Result<()> {
        let offset_bytes = index * self.record.len() as u64;
        let record = self.record.bytes_mut();
        match &mut self.access {
            Access::Mapped(mapping) => mapping.read(record, offset_bytes),
            Access::Polled(ring) => ring.read(&self.file, record, offset_bytes)?,
            Access::Called => self.file.read_exact_at(record, offset_bytes)?,
        }
        Ok(())
    }

    /// The sync of the whole file after the last write: msync of a mapping, else fsync.
    /// # Errors
    /// As these.
    pub fn sync_all(&self) -> io::Result<()> {
        match &self.access {
            Access::Mapped(mapping) => mapping.sync(0, mapping.bytes, MsyncFlags::SYNC),
            Access::Called | Access::Polled(_) => self.file.sync_all(),
        }
    }
}

/// What open(2) is told. From libc: rustix 1.1.6 calls O_SYNC by the name `DSYNC`, too.
fn open_flags(way: SyncWay) -> i32 {
    match way {
        SyncWay::OSync => libc::O_SYNC,
        SyncWay::ODsync => libc::O_DSYNC,
        SyncWay::Direct | SyncWay::Polled => libc::O_DIRECT,
        SyncWay::DirectOSync => libc::O_SYNC | libc::O_DIRECT,
        SyncWay::DirectODsync => libc::O_DSYNC | libc::O_DIRECT,
        _ => 0,
    }
}

/// One write that is durable when it returns.
/// # Errors
/// As pwritev2(2), where the file system does not know RWF_DSYNC too; `WriteZero` where it wrote a part.
pub(super) fn write_durable(file: &File, data: &[u8], offset: u64) -> io::Result<()> {
    let written = rustix::io::pwritev2(file, &[IoSlice::new(data)], offset, ReadWriteFlags::DSYNC)?;
    if written == data.len() {
        return Ok(());
    }
    let text = format!("the kernel wrote {written} of {} bytes at offset {offset}", data.len());
    Err(io::Error::new(io::ErrorKind::WriteZero, text))
}

/// A file that is made as long as its records need it, piece by piece; what is there stays.
#[derive(Debug)]
pub struct Filling {
    file: File,
    missing_bytes: u64,
}

impl Filling {
    /// Opens or creates the file, which needs so many bytes.
    /// # Errors
    /// As open(2).
    pub fn begin(path: &Path, file_bytes: u64) -> io::Result<Filling> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        let missing_bytes = file_bytes.saturating_sub(file.metadata()?.len());
        Ok(Filling { file, missing_bytes })
    }

    /// Bytes that it lacks.
    pub fn missing_bytes(&self) -> u64 {
        self.missing_bytes
    }

    /// Writes some of them, and syncs the file behind the last; how many.
    /// # Errors
    /// As write(2) and fsync(2).
    pub fn step(&mut self) -> io::Result<u64> {
        let bytes = self.missing_bytes.min(FILL_BYTES);
        self.file.write_all(&vec![RECORD_BYTE; usize::try_from(bytes).unwrap_or(0)])?;
        self.missing_bytes -= bytes;
        if self.missing_bytes == 0 {
            self.file.sync_all()?;
        }
        Ok(bytes)
    }
}

/// Makes the file so long as a whole, and has the page cache forget it.
/// # Errors
/// As [`Filling`] and [`forget_pages`].
pub fn fill(path: &Path, file_bytes: u64) -> io::Result<()> {
    let mut filling = Filling::begin(path, file_bytes)?;
    while filling.missing_bytes() > 0 {
        filling.step()?;
    }
    forget_pages(path)
}

/// Forgets what the page cache has of a file: other ways need root.
/// # Errors
/// As posix_fadvise(2).
pub fn forget_pages(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::fadvise(File::open(path)?, 0, None, Advice::DontNeed)?)
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
    use std::os::fd::AsRawFd;

    use joj_analysis::bench::key::Word;

    use super::*;

    /// File systems without O_DIRECT, machines without io_uring, disks without polling.
    fn is_refused(way: SyncWay, kind: io::ErrorKind) -> bool {
        match way {
            SyncWay::Polled => matches!(
                kind,
                io::ErrorKind::InvalidInput | io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported
            ),
            _ => kind == io::ErrorKind::InvalidInput,
        }
    }

    /// As the kernel says it of an open file: /proc/PID/fdinfo.
    fn flags_of(file: &File) -> u32 {
        let told = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd())).unwrap();
        let octal = told.lines().find_map(|line| line.strip_prefix("flags:")).expect("flags");
        u32::from_str_radix(octal.trim(), 8).unwrap()
    }

    /// Numbers of x86-64 and of arm64: O_DSYNC, and what O_SYNC has besides.
    #[test]
    fn each_way_opens_the_file_with_its_own_flags() {
        const DSYNC: u32 = 0o10_000;
        const REST_OF_SYNC: u32 = 0o4_000_000;
        let path = std::env::temp_dir().join(format!("joj-record-flags-{}", std::process::id()));
        for way in SyncWay::ALL.iter().copied() {
            let opened = RecordFile::open(&path, way, 16_384, 4_096);
            let flags = match &opened {
                Err(error) if is_refused(way, error.kind()) => continue,
                opened => flags_of(&opened.as_ref().unwrap().file),
            };
            let (is_dsync, is_sync) = (flags & DSYNC != 0, flags & REST_OF_SYNC != 0);
            let expected = match way {
                SyncWay::OSync | SyncWay::DirectOSync => (true, true),
                SyncWay::ODsync | SyncWay::DirectODsync => (true, false),
                _ => (false, false),
            };
            assert_eq!((is_dsync, is_sync), expected, "{way:?}: {flags:o}");
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn each_way_writes_the_record_that_is_asked_for() {
        let place = std::env::temp_dir().join(format!("joj-records-{}", std::process::id()));
        for way in SyncWay::ALL.iter().copied() {
            let path = place.with_extension(way.word());
            let opened = RecordFile::open(&path, way, 16_384, 4_096).and_then(|mut file| {
                file.write(2)?;
                file.sync_all()?;
                file.record.bytes_mut().fill(0);
                file.read(2)?;
                Ok(file)
            });
            let file = match opened {
                Err(error) if is_refused(way, error.kind()) => {
                    eprintln!("skipped: {way:?}: {error}");
                    std::fs::remove_file(&path).unwrap();
                    continue;
                }
                opened => opened.unwrap(),
            };
            assert_eq!(file.record.bytes(), [RECORD_BYTE; 4_096], "{way:?} read");
            let written = std::fs::read(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            assert_eq!(written[..8_192], [0; 8_192], "{way:?} in front");
            assert_eq!(written[8_192..12_288], [RECORD_BYTE; 4_096], "{way:?}");
            assert_eq!(written.len(), if way.is_mapped() { 16_384 } else { 12_288 }, "{way:?}");
        }
    }
}
