//! One open file of this machine, buffered and direct.
//!
//! Buffered readers beside direct writers: the kernel drops the pages of a direct write from the page cache, but
//! only "best effort": a page that a reader holds at that moment stays, stale (open(2), "O_DIRECT"; the kernel
//! logs "Page cache invalidation failure on direct I/O"). Another process would then read old bytes of a frame
//! that was published. So every direct write here looks afterwards, without any device I/O, whether the
//! cache still holds other bytes, and repairs them.

use std::io::{self, IoSlice};
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{Advice, FallocateFlags, Mode, OFlags, Stat};
use rustix::io::{Errno, ReadWriteFlags};

use crate::disk::{DiskFile, Facts, FileId, Filesystem, Fill};
use crate::real::descriptors::{open_above_streams, uninterrupted};
use crate::real::device_facts;
use crate::real::medium::Medium;
use crate::real::page_cache;
use crate::real::sync_turn::SyncTurn;
use crate::real::whole::{read_whole, write_whole};

/// Zeros are appended in pieces of this many bytes: each holds the inode's lock for some 20 microseconds only.
const EXTEND_PIECE_BYTES: usize = 64 << 10;
/// `FALLOC_FL_WRITE_ZEROES` (Linux 6.17), which rustix does not name yet.
const FALLOC_FL_WRITE_ZEROES: u32 = 0x80;

/// One open file, with a descriptor for each way of writing that was used.
#[derive(Debug)]
pub struct RealFile {
    /// `Some` until it is dropped.
    buffered: Option<OwnedFd>,
    path: PathBuf,
    opened: FileId,
    facts: Facts,
    /// A second description of the same inode with O_DIRECT, made at the first direct write.
    direct: OnceLock<Option<OwnedFd>>,
    /// Where syncs take turns.
    turn: Option<SyncTurn>,
}

impl RealFile {
    pub(crate) fn new(buffered: OwnedFd, path: &Path, opened: FileId, facts: Facts) -> Self {
        let turn = SyncTurn::of(buffered.as_fd(), facts.filesystem);
        let (path, direct) = (path.to_path_buf(), OnceLock::new());
        RealFile { buffered: Some(buffered), path, opened, facts, direct, turn }
    }

    /// The size of the file that was opened. A program may have closed all descriptors, and have files of its own at their numbers; a
    /// thread of ours in the background does not hear of that.
    fn own_size(&self) -> io::Result<u64> {
        let status = rustix::fs::fstat(self.buffered())?;
        if (FileId { device: status.st_dev, inode: status.st_ino }) != self.opened {
            return Err(io::Error::new(io::ErrorKind::NotFound, "its descriptor is another file's now"));
        }
        size_of(&status)
    }

    fn buffered(&self) -> BorrowedFd<'_> {
        self.buffered.as_ref().expect("a file is open until it is dropped").as_fd()
    }

    fn direct(&self) -> io::Result<&OwnedFd> {
        let opened = self.direct.get_or_init(|| self.open_direct().ok());
        opened.as_ref().ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))
    }

    fn open_direct(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::DIRECT;
        let direct = open_above_streams(&self.path, flags, Mode::empty())?;
        let (ours, theirs) = (rustix::fs::fstat(self.buffered())?, rustix::fs::fstat(&direct)?);
        if (ours.st_dev, ours.st_ino) != (theirs.st_dev, theirs.st_ino) {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the name leads to another file now"));
        }
        Ok(direct)
    }

    /// Runs a sync of this inode; on F2FS while no other of ours runs (`sync_turn`).
    fn in_turn<T>(&self, sync: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        match &self.turn {
            None => sync(),
            Some(turn) => turn.take(self.buffered(), sync),
        }
    }

    fn write_past_cache(&self, data: &[u8], offset: u64, flags: ReadWriteFlags) -> io::Result<()> {
        let direct = self.direct()?;
        let mut done = 0;
        while done < data.len() {
            let at = offset + done as u64;
            match rustix::io::pwritev2(direct, &[IoSlice::new(&data[done..])], at, flags) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => done += written,
                Err(Errno::INTR) => {}
                // The last two are a filter's of system calls, as containers have: nothing was written.
                Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS | Errno::PERM) if done == 0 => {
                    return Err(io::ErrorKind::Unsupported.into());
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.repair_stale_pages(data, offset)
    }

    fn repair_stale_pages(&self, data: &[u8], offset: u64) -> io::Result<()> {
        if !page_cache::may_hold_any(self.buffered(), offset, data.len()) {
            return Ok(());
        }
        // Whatever is cached now is either what was just read from the device, or stale.
        let mut cached = vec![0; data.len()];
        let same = self.read_at(&mut cached, offset).is_ok_and(|read| cached[..read] == data[..read]);
        if same { Ok(()) } else { self.write_at(data, offset) }
    }

    fn append_zeros_to(&self, end: u64) -> io::Result<u64> {
        static ZEROS: [u8; EXTEND_PIECE_BYTES] = [0; EXTEND_PIECE_BYTES];
        let mut size = self.own_size()?;
        while size < end {
            // To the next multiple of the piece, so that the end of the file stays aligned.
            let piece_bytes =
                EXTEND_PIECE_BYTES - usize::try_from(size % EXTEND_PIECE_BYTES as u64).unwrap_or(0);
            let wanted_bytes = usize::try_from(end - size).unwrap_or(usize::MAX).min(piece_bytes);
            // RWF_APPEND: the kernel puts the zeros behind whatever any process wrote up to this moment, under
            // the inode's lock. A positioned write would race with another process's frame at the same place.
            let piece = [IoSlice::new(&ZEROS[..wanted_bytes])];
            match rustix::io::pwritev2(self.buffered(), &piece, size, ReadWriteFlags::APPEND) {
                Ok(_) | Err(Errno::INTR) => size = self.own_size()?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(size)
    }
}

fn size_of(status: &Stat) -> io::Result<u64> {
    let size = status.st_size;
    u64::try_from(size).map_err(|_| io::Error::other(format!("the kernel gave a size of {size} bytes")))
}

impl Drop for RealFile {
    fn drop(&mut self) {
        let turn = self.turn.take();
        let _held = turn.as_ref().map(SyncTurn::hold);
        drop((self.direct.take(), self.buffered.take()));
    }
}

impl DiskFile for RealFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        read_whole(self.buffered(), into, offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        write_whole(self.buffered(), data, offset)
    }

    fn write_what_is_missing(&self, end: u64) -> io::Result<bool> {
        if self.facts.filesystem != Filesystem::Ext4 {
            return Ok(false);
        }
        let Ok(direct) = self.direct() else { return Ok(false) };
        Medium { buffered: self.buffered(), direct: direct.as_fd() }.write_what_is_missing(end)
    }

    fn forget_cached(&self, offset: u64) {
        let _ = rustix::fs::fadvise(self.buffered(), offset, None, Advice::DontNeed);
    }

    fn write_direct(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.write_past_cache(data, offset, ReadWriteFlags::empty())
    }

    fn write_durable(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.in_turn(|| self.write_past_cache(data, offset, ReadWriteFlags::DSYNC))
    }

    fn extend(&self, end: u64, fill: Fill) -> io::Result<u64> {
        let size = self.own_size()?;
        if size >= end {
            return Ok(size);
        }
        let flags = match fill {
            Fill::Zeroes => return self.append_zeros_to(end),
            Fill::WriteZeroes => FallocateFlags::from_bits_retain(FALLOC_FL_WRITE_ZEROES),
            Fill::Unwritten => FallocateFlags::empty(),
        };
        match rustix::fs::fallocate(self.buffered(), flags, size, end - size) {
            Ok(()) => self.size(),
            Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => Err(io::ErrorKind::Unsupported.into()),
            Err(error) => Err(error.into()),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        // EINTR tells of a signal, not of a write that failed: the next call reports that one.
        self.in_turn(|| Ok(uninterrupted(|| rustix::fs::fdatasync(self.buffered()))?))
    }

    fn sync_filesystem(&self) -> io::Result<()> {
        self.in_turn(|| Ok(uninterrupted(|| rustix::fs::syncfs(self.buffered()))?))
    }

    fn identity(&self) -> io::Result<FileId> {
        let status = rustix::fs::fstat(self.buffered())?;
        Ok(FileId { device: status.st_dev, inode: status.st_ino })
    }

    fn size(&self) -> io::Result<u64> {
        size_of(&rustix::fs::fstat(self.buffered())?)
    }

    fn truncate(&self, size_bytes: u64) -> io::Result<()> {
        Ok(rustix::fs::ftruncate(self.buffered(), size_bytes)?)
    }

    fn read_ahead(&self, offset: u64, len_bytes: u64) {
        if let Some(len_bytes) = NonZeroU64::new(len_bytes) {
            let _ = rustix::fs::fadvise(self.buffered(), offset, Some(len_bytes), Advice::WillNeed);
        }
    }

    fn free_bytes(&self) -> u64 {
        rustix::fs::fstatvfs(self.buffered())
            .map_or(u64::MAX, |status| status.f_bavail.saturating_mul(status.f_frsize))
    }

    fn facts(&self) -> Facts {
        self.facts
    }

    fn describe(&self) -> Vec<(&'static str, String, String)> {
        device_facts::describe(self.buffered())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aligned::AlignedBuffer;
    use crate::disk::{Disk, Filesystem, OpenOptions};
    use crate::real::disk::RealDisk;

    fn with_file(name: &str, check: impl Fn(&dyn DiskFile)) {
        let path = std::env::temp_dir().join(format!("blockio-file-{}-{name}", std::process::id()));
        let options =
            OpenOptions { create: true, exclusive: true, read_only: false, mode: 0o600, owner: None };
        let file = RealDisk.open(&path, options).unwrap();
        std::fs::remove_file(&path).ok();
        let kept = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&*file)));
        kept.unwrap();
    }

    #[test]
    fn a_sync_is_the_kernels() {
        // A regular file, which nothing can make durable.
        let file = RealDisk.open(std::path::Path::new("/proc/self/comm"), OpenOptions::EXISTING).unwrap();
        assert_eq!(file.sync_data().unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_file_says_where_it_is() {
        with_file("facts", |file| assert!(!file.describe().is_empty()));
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
        if !mounts.lines().any(|line| line.contains(" /dev/shm tmpfs ")) {
            return println!("skipped: /dev/shm is no tmpfs");
        }
        let path = std::path::PathBuf::from(format!("/dev/shm/blockio-facts-{}", std::process::id()));
        let file =
            RealDisk.open(&path, OpenOptions { create: true, mode: 0o600, ..OpenOptions::EXISTING }).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(file.facts().filesystem, Filesystem::Tmpfs);
    }

    #[test]
    fn nothing_is_missing_of_what_was_written() {
        with_file("medium", |file| {
            for size in [100, 5000, 300_000] {
                file.write_at(&vec![7; size], 0).unwrap();
                file.sync_data().unwrap();
                assert!(!file.write_what_is_missing(size as u64).unwrap(), "{size}");
                let mut read = vec![0; size + 1];
                assert_eq!(file.read_at(&mut read, 0).unwrap(), size);
                assert!(read[..size].iter().all(|byte| *byte == 7), "{size}");
            }
        });
    }

    #[test]
    fn a_file_that_is_cut_has_the_size_it_was_cut_to() {
        with_file("cut", |file| {
            file.write_at(&[7; 8192], 0).unwrap();
            file.truncate(100).unwrap();
            assert_eq!(file.size().unwrap(), 100);
            let mut into = [0; 200];
            assert_eq!(file.read_at(&mut into, 0).unwrap(), 100);
            assert_eq!((into[99], into[100]), (7, 0));
        });
    }

    #[test]
    fn a_read_past_the_end_is_short() {
        with_file("short", |file| {
            file.write_at(b"abc", 0).unwrap();
            let mut into = [7; 8];
            assert_eq!(file.read_at(&mut into, 1).unwrap(), 2);
            assert_eq!(&into[..2], b"bc");
        });
    }

    const NOBODYS: FileId = FileId { device: 0, inode: 0 };

    #[test]
    fn a_descriptor_that_is_another_files_by_now_is_made_no_longer() {
        let path = std::env::temp_dir().join(format!("blockio-another-{}", std::process::id()));
        std::fs::write(&path, "the program's").unwrap();
        let another = std::fs::File::options().read(true).write(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let file = RealFile::new(another.into(), &path, NOBODYS, Facts::default());
        for fill in [Fill::Zeroes, Fill::Unwritten, Fill::WriteZeroes] {
            assert_eq!(file.extend(1 << 20, fill).unwrap_err().kind(), io::ErrorKind::NotFound);
        }
        assert_eq!(file.size().unwrap(), 13);
    }

    /// A kernel that leaves stale pages behind on demand: what is written past the cache goes to another file, so that
    /// the cache still holds the old bytes when the write returns.
    #[test]
    fn pages_that_a_direct_write_left_stale_are_repaired() {
        let path = |name: &str| std::env::temp_dir().join(format!("blockio-{name}-{}", std::process::id()));
        let open = |name: &str| {
            std::fs::write(path(name), [1; 12288]).unwrap();
            let file = std::fs::File::options().read(true).write(true).open(path(name)).unwrap();
            std::fs::remove_file(path(name)).unwrap();
            file
        };
        type Write = fn(&RealFile, &[u8]) -> io::Result<()>;
        let writes: [Write; 2] =
            [|file, data| file.write_durable(data, 4096), |file, data| file.write_direct(data, 4096)];
        for write in writes {
            let cached = open("cached");
            let again = cached.try_clone().unwrap().into();
            let file = RealFile::new(again, &path("cached"), NOBODYS, Facts::default());
            file.direct.set(Some(open("medium").into())).unwrap();
            write(&file, &[2; 4096]).unwrap();
            let mut seen = [0; 12288];
            std::os::unix::fs::FileExt::read_exact_at(&cached, &mut seen, 0).unwrap();
            assert_eq!([seen[4095], seen[4096], seen[8191], seen[8192]], [1, 2, 2, 1]);
        }
    }

    #[test]
    fn buffered_readers_see_each_direct_write() {
        let path = std::env::temp_dir().join(format!("blockio-stale-{}", std::process::id()));
        let options =
            OpenOptions { create: true, exclusive: true, read_only: false, mode: 0o600, owner: None };
        let file = RealDisk.open(&path, options).unwrap();
        let reader = std::fs::File::open(&path).unwrap();
        file.write_at(&[0; 8192], 0).unwrap();
        let mut block = AlignedBuffer::zeroed(8192);
        for round in 1..200_u8 {
            block.bytes_mut().fill(round);
            match file.write_durable(block.bytes(), 0) {
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                    eprintln!("skipped: {} takes no direct writes", path.display());
                    break;
                }
                other => other.unwrap(),
            }
            let mut seen = [0; 8192];
            std::os::unix::fs::FileExt::read_exact_at(&reader, &mut seen, 0).unwrap();
            assert_eq!(seen, [round; 8192], "round {round}");
        }
        std::fs::remove_file(&path).unwrap();
    }
}
