//! Makes recorded calls, with the descriptors and paths of a replay.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use joj_analysis::recording::Recording;
use joj_analysis::recording::call::{CallKind, RecordedCall};
use joj_analysis::recording::file_tree::link_target;
use joj_analysis::recording::flags::O_RDONLY;
use joj_analysis::recording::paths::{absolute, bytes_of, text_of};
use joj_analysis::trace::texts::{Text, Texts};
use rustix::fs::{Access, AtFlags, FallocateFlags, Mode, OFlags, RenameFlags, SeekFrom};
use rustix::fs::{Timespec, Timestamps, UTIME_NOW};
use rustix::io::{Errno, ReadWriteFlags};

use super::trees::{MODE, Roots, fill};

pub use super::written_bytes::IoMemory;

/// No call has more room than this, unless it moved more bytes in the recording.
const ROOM_BYTES_MAX: u64 = 64 << 20;
/// No call moves more (MAX_RW_COUNT of the kernel).
const CALL_BYTES_MAX: u64 = 0x7fff_f000;

/// Both times of a file, as utimensat(2) takes them.
const NOW: Timestamps = Timestamps { last_access: NOW_TIME, last_modification: NOW_TIME };
const NOW_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };

/// O_ flags of recordings, which are x86-64's, and this machine's.
const OPEN_FLAGS: [(u32, OFlags); 15] = [
    (1, OFlags::WRONLY),
    (2, OFlags::RDWR),
    (0o100, OFlags::CREATE),
    (0o200, OFlags::EXCL),
    (0o1000, OFlags::TRUNC),
    (0o2000, OFlags::APPEND),
    (0o4000, OFlags::NONBLOCK),
    // rustix 1.1.6 calls O_SYNC by the name `DSYNC`, too.
    (0o10000, OFlags::from_bits_retain(libc::O_DSYNC.cast_unsigned())),
    (0o40000, OFlags::DIRECT),
    (0o200_000, OFlags::DIRECTORY),
    (0o400_000, OFlags::NOFOLLOW),
    (0o1_000_000, OFlags::NOATIME),
    (0o4_010_000, OFlags::SYNC),
    (0o10_000_000, OFlags::PATH),
    (0o20_200_000, OFlags::TMPFILE),
];

/// Descriptors that are open for one description: one for each open and dup.
type Descriptors = Mutex<Vec<Arc<OwnedFd>>>;

/// The files of a replay, as all its threads see them.
#[derive(Debug)]
pub struct ReplayFiles {
    directory: File,
    /// By the number of a text: the path below the directory, or a whole one elsewhere.
    paths: Vec<CString>,
    /// The same with the directory's own path in front, for what takes no directory.
    whole_paths: Vec<CString>,
    /// The directory's own path, spelled as those of recordings.
    place: String,
    names: Texts,
    descriptions: Vec<Descriptors>,
}

impl ReplayFiles {
    /// Those of a recording, below its directories.
    /// # Errors
    /// A directory cannot be opened.
    pub fn new(roots: Roots<'_>, recording: &Recording) -> io::Result<Self> {
        let descriptions = recording.calls.iter().map(|call| call.description).max().unwrap_or(0);
        let whole_root = |root: &Path| -> io::Result<String> {
            Ok(text_of(root.canonicalize()?.as_os_str().as_bytes()).into_owned())
        };
        let (place, other) = (whole_root(roots.directory)?, whole_root(roots.other)?);
        let whole = |path: &str| {
            // A recording that somebody made by hand may have `..` in its paths: no call shall leave the directory.
            let path = absolute("/", path);
            format!("{}{path}", if (roots.is_other)(&path) { &other } else { &place })
        };
        let below = |path: &str| {
            let inside = absolute("/", path);
            match inside.trim_start_matches('/') {
                _ if (roots.is_other)(&inside) => whole(path),
                "" => ".".to_owned(),
                inside => inside.to_owned(),
            }
        };
        Ok(Self {
            directory: File::open(roots.directory)?,
            paths: all(&recording.texts, below),
            whole_paths: all(&recording.texts, whole),
            place,
            names: recording.texts.clone(),
            descriptions: (0..=descriptions).map(|_| Descriptors::default()).collect(),
        })
    }

    /// Opens what was open before the first call. Where that fails, its calls are not made. `go_on` is asked while a file is filled.
    /// # Errors
    /// No descriptor is left, or a file without a name cannot be made or filled.
    pub fn hold(&self, call: &RecordedCall, go_on: &mut dyn FnMut(u64) -> bool) -> io::Result<()> {
        if call.holds_nameless() {
            self.hold_nameless(call, go_on)?;
        } else {
            // A directory cannot be opened for writing.
            let read_only = RecordedCall { flags: O_RDONLY, ..*call };
            if let Err(Errno::MFILE) = self.open(call).or_else(|_| self.open(&read_only)) {
                return Err(Errno::MFILE.into());
            }
        }
        if call.offset > 0
            && let Some(file) = self.take(call.description).last()
        {
            let _ = rustix::fs::seek(file, SeekFrom::Start(call.offset));
        }
        Ok(())
    }

    /// Makes a file without a name, with its bytes on the disk, and opens it as it was open.
    fn hold_nameless(&self, call: &RecordedCall, go_on: &mut dyn FnMut(u64) -> bool) -> io::Result<()> {
        let (path, mode) = (&self.paths[call.path.0 as usize], Mode::from_raw_mode(MODE));
        let flags = OFlags::CLOEXEC | OFlags::RDWR;
        let file =
            rustix::fs::openat(&self.directory, path, flags | OFlags::TMPFILE, mode).or_else(|_| {
                // FAT and others make none without a name.
                let name =
                    [path.as_bytes(), format!("/joj-nameless-{}", call.description).as_bytes()].concat();
                let file =
                    rustix::fs::openat(&self.directory, &*name, flags | OFlags::CREATE | OFlags::EXCL, mode)?;
                rustix::fs::unlinkat(&self.directory, &*name, AtFlags::empty())?;
                Ok::<_, Errno>(file)
            })?;
        let file = File::from(file);
        fill(&file, call.bytes, &mut IoMemory::new(u64::MAX), &mut 0, go_on)?;
        file.sync_all()?;
        let open = format!("/proc/self/fd/{}", file.as_raw_fd());
        let flags = open_flags(call.flags) & !(OFlags::TMPFILE | OFlags::NOFOLLOW);
        let held = rustix::fs::openat(rustix::fs::CWD, open, flags | OFlags::CLOEXEC, mode)?;
        self.take(call.description).push(Arc::new(held));
        Ok(())
    }

    /// Makes a call: what it returns, or its errno, negative. `None` where its descriptor is not open here.
    pub fn make(&self, call: &RecordedCall, memory: &mut IoMemory) -> Option<i64> {
        let result = match call.kind {
            CallKind::Open => self.open(call),
            CallKind::Close | CallKind::Dup => return self.descriptors(call),
            CallKind::Sync => {
                rustix::fs::sync();
                Ok(0)
            }
            CallKind::DropCaches => {
                // As far as joj may.
                if std::fs::write("/proc/sys/vm/drop_caches", "3").is_err() {
                    drop_pages(Path::new(OsStr::from_bytes(&bytes_of(&self.place))));
                }
                Ok(0)
            }
            CallKind::Link if call.description != 0 => {
                let file = self.take(call.description).last().cloned()?;
                self.link_open(&file, call)
            }
            kind if kind.is_about_paths() => self.name(call),
            CallKind::Released => {
                self.take(call.description).clear();
                Ok(0)
            }
            kind if !kind.is_replayed() => Ok(0),
            _ => {
                let file = self.take(call.description).last().cloned()?;
                if call.kind.is_read() || call.kind.is_write() {
                    transfer(&file, call, memory)
                } else {
                    about_file(&file, call)
                }
            }
        };
        Some(result.unwrap_or_else(|error| -i64::from(error.raw_os_error())))
    }

    fn take(&self, description: u32) -> std::sync::MutexGuard<'_, Vec<Arc<OwnedFd>>> {
        // A thread that panicked was between two calls: the list is whole.
        self.descriptions[description as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self, call: &RecordedCall) -> Result<i64, Errno> {
        let flags = OFlags::CLOEXEC | open_flags(call.flags);
        let path = &self.paths[call.path.0 as usize];
        let file = rustix::fs::openat(&self.directory, path, flags, Mode::from_raw_mode(MODE))?;
        if call.description != 0 {
            self.take(call.description).push(Arc::new(file));
        }
        Ok(0)
    }

    fn descriptors(&self, call: &RecordedCall) -> Option<i64> {
        let mut open = self.take(call.description);
        if call.kind == CallKind::Dup {
            let duplicate = rustix::io::dup(open.last()?.as_fd());
            return Some(match duplicate {
                Ok(file) => {
                    open.push(Arc::new(file));
                    0
                }
                Err(error) => -i64::from(error.raw_os_error()),
            });
        }
        // The last user closes it: a thread that still reads keeps it until then.
        let file = open.pop()?;
        drop(open);
        drop(file);
        Some(0)
    }

    /// Gives what is open a name.
    fn link_open(&self, file: &OwnedFd, call: &RecordedCall) -> Result<i64, Errno> {
        // With AT_EMPTY_PATH it would need a privilege (linkat(2)).
        let open = format!("/proc/self/fd/{}", file.as_raw_fd());
        let second = &self.paths[call.second_path.0 as usize];
        rustix::fs::linkat(rustix::fs::CWD, open, &self.directory, second, AtFlags::SYMLINK_FOLLOW)?;
        Ok(0)
    }

    fn name(&self, call: &RecordedCall) -> Result<i64, Errno> {
        let path = &self.paths[call.path.0 as usize];
        let second = &self.paths[call.second_path.0 as usize];
        let directory = &self.directory;
        match call.kind {
            CallKind::Truncate => truncate(&self.whole_paths[call.path.0 as usize], call.bytes)?,
            CallKind::Rename if call.flags == 0 => rustix::fs::renameat(directory, path, directory, second)?,
            CallKind::Rename => {
                let flags = RenameFlags::from_bits_retain(call.flags);
                rustix::fs::renameat_with(directory, path, directory, second, flags)?;
            }
            CallKind::Link => rustix::fs::linkat(directory, path, directory, second, AtFlags::empty())?,
            CallKind::Symlink => {
                let (link, target) = (self.names.get(call.path), self.names.get(call.second_path));
                let target = format!("{}{}", self.place, link_target(link, target));
                rustix::fs::symlinkat(&*bytes_of(&target), directory, path)?;
            }
            CallKind::Unlink => rustix::fs::unlinkat(directory, path, AtFlags::empty())?,
            CallKind::Rmdir => rustix::fs::unlinkat(directory, path, AtFlags::REMOVEDIR)?,
            CallKind::Mkdir => rustix::fs::mkdirat(directory, path, Mode::from_raw_mode(MODE))?,
            CallKind::SetAttributes => set_attributes_at(directory, path, call.flags)?,
            CallKind::Stat => drop(rustix::fs::statat(directory, path, AtFlags::empty())?),
            CallKind::Lstat => drop(rustix::fs::statat(directory, path, AtFlags::SYMLINK_NOFOLLOW)?),
            _ => {
                let wanted = Access::from_bits_retain(call.flags);
                rustix::fs::accessat(directory, path, wanted, AtFlags::empty())?;
            }
        }
        Ok(0)
    }
}

/// O_ flags as this machine has them.
fn open_flags(recorded: u32) -> OFlags {
    let flags = OPEN_FLAGS.iter().filter(|(bits, _)| recorded & bits == *bits);
    flags.fold(OFlags::empty(), |all, (_, flag)| all | *flag)
}

fn all(texts: &Texts, told: impl Fn(&str) -> String) -> Vec<CString> {
    let numbers = 0..u32::try_from(texts.count()).unwrap_or(u32::MAX);
    // A path of the kernel's has no zero byte.
    numbers.map(|number| CString::new(bytes_of(&told(texts.get(Text(number))))).unwrap_or_default()).collect()
}

fn transfer(file: &OwnedFd, call: &RecordedCall, memory: &mut IoMemory) -> Result<i64, Errno> {
    // Some programs ask for gigabytes and get a page. A write that had no room for all wrote a part.
    let most = if call.kind.is_read() { call.moved_bytes().max(ROOM_BYTES_MAX) } else { call.moved_bytes() };
    let wanted = call.bytes.min(most).min(CALL_BYTES_MAX);
    let bytes = usize::try_from(wanted).map_err(|_| Errno::INVAL)?;
    let flags = ReadWriteFlags::from_bits_retain(call.flags);
    // With flags preadv2 and pwritev2 move the position at -1.
    let offset = if matches!(call.kind, CallKind::Readv | CallKind::Writev) { u64::MAX } else { call.offset };
    let moved = if call.kind.is_read() {
        let room = memory.room(bytes);
        match call.kind {
            CallKind::Read => rustix::io::read(file, room),
            CallKind::Pread => rustix::io::pread(file, room, call.offset),
            CallKind::Readv if call.flags == 0 => rustix::io::readv(file, &mut [io::IoSliceMut::new(room)]),
            _ if call.flags == 0 => rustix::io::preadv(file, &mut [io::IoSliceMut::new(room)], call.offset),
            _ => rustix::io::preadv2(file, &mut [io::IoSliceMut::new(room)], offset, flags),
        }
    } else {
        let fresh = memory.fresh(bytes);
        match call.kind {
            CallKind::Write => rustix::io::write(file, fresh),
            CallKind::Pwrite => rustix::io::pwrite(file, fresh, call.offset),
            CallKind::Writev if call.flags == 0 => rustix::io::writev(file, &[io::IoSlice::new(fresh)]),
            _ if call.flags == 0 => rustix::io::pwritev(file, &[io::IoSlice::new(fresh)], call.offset),
            _ => rustix::io::pwritev2(file, &[io::IoSlice::new(fresh)], offset, flags),
        }
    };
    Ok(i64::try_from(moved?).unwrap_or(i64::MAX))
}

fn about_file(file: &OwnedFd, call: &RecordedCall) -> Result<i64, Errno> {
    match call.kind {
        CallKind::Lseek => {
            let signed = call.offset.cast_signed();
            let place = match call.flags {
                1 => SeekFrom::Current(signed),
                2 => SeekFrom::End(signed),
                3 => SeekFrom::Data(call.offset),
                4 => SeekFrom::Hole(call.offset),
                _ => SeekFrom::Start(call.offset),
            };
            return Ok(rustix::fs::seek(file, place)?.cast_signed());
        }
        CallKind::Fsync => rustix::fs::fsync(file)?,
        CallKind::Fdatasync => rustix::fs::fdatasync(file)?,
        CallKind::Syncfs => rustix::fs::syncfs(file)?,
        CallKind::SyncFileRange => sync_file_range(file, call)?,
        CallKind::SetFlags => rustix::fs::fcntl_setfl(file, open_flags(call.flags))?,
        CallKind::Ftruncate => rustix::fs::ftruncate(file, call.bytes)?,
        CallKind::Fallocate => {
            let flags = FallocateFlags::from_bits_retain(call.flags);
            rustix::fs::fallocate(file, flags, call.offset, call.bytes)?;
        }
        CallKind::FsetAttributes => set_attributes(file, call.flags)?,
        CallKind::Fadvise => advise(file, call)?,
        _ => drop(rustix::fs::fstat(file)?),
    }
    Ok(0)
}

fn advise(file: &OwnedFd, call: &RecordedCall) -> Result<(), Errno> {
    let (offset, bytes) = (call.offset.cast_signed(), call.bytes.cast_signed());
    let advice = libc::c_int::try_from(call.flags).unwrap_or(-1);
    // SAFETY: it takes numbers only, and the descriptor is open for as long as `file` is.
    match unsafe { libc::posix_fadvise(file.as_raw_fd(), offset, bytes, advice) } {
        0 => Ok(()),
        error => Err(Errno::from_raw_os_error(error)),
    }
}

/// Drops what the kernel keeps of the files below a directory, as far as it is written.
fn drop_pages(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => drop_pages(&entry.path()),
            Ok(kind) if kind.is_file() => {
                let file = File::open(entry.path());
                let all = |file| rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
                // A file that cannot be read is kept in memory: a replay's reads of it fail, too.
                let _ = file.map(all);
            }
            _ => {}
        }
    }
}

/// Without a new owner a chown changes the time of the inode's change alone: all that chmod and chown cost, and what anybody may.
fn set_attributes(file: &OwnedFd, attributes: u32) -> Result<(), Errno> {
    if attributes & RecordedCall::SETS_TIMES != 0 {
        return rustix::fs::futimens(file, &NOW);
    }
    rustix::fs::fchown(file, None, None)
}

/// The same for a path below a directory.
fn set_attributes_at(directory: &File, path: &CString, attributes: u32) -> Result<(), Errno> {
    let is_link = attributes & RecordedCall::OF_LINK != 0;
    let how = if is_link { AtFlags::SYMLINK_NOFOLLOW } else { AtFlags::empty() };
    if attributes & RecordedCall::SETS_TIMES != 0 {
        return rustix::fs::utimensat(directory, path, &NOW, how);
    }
    rustix::fs::chownat(directory, path, None, None, how)
}

fn truncate(path: &CString, bytes: u64) -> Result<(), Errno> {
    // SAFETY: the path ends with a zero byte, which CString has.
    let result = unsafe { libc::truncate(path.as_ptr(), bytes.cast_signed()) };
    told(result)
}

fn told(result: libc::c_int) -> Result<(), Errno> {
    if result == 0 {
        Ok(())
    } else {
        Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
    }
}

fn sync_file_range(file: &OwnedFd, call: &RecordedCall) -> Result<(), Errno> {
    let (offset, bytes) = (call.offset.cast_signed(), call.bytes.cast_signed());
    // SAFETY: it takes numbers only, and the descriptor is open for as long as `file` is.
    let result = unsafe { libc::sync_file_range(file.as_raw_fd(), offset, bytes, call.flags) };
    told(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// joj never writes such paths; a recording from elsewhere may have them.
    #[test]
    fn a_path_made_by_hand_stays_below_the_directory() {
        let outer = std::env::temp_dir().join(format!("joj-replay-paths-{}", std::process::id()));
        let directory = outer.join("inner");
        std::fs::create_dir_all(&directory).unwrap();
        let mut recording = Recording::default();
        let path = recording.texts.keep("/../../escaped/../one");
        let call = |kind| RecordedCall { kind, path, bytes: 5, ..RecordedCall::default() };
        let files = ReplayFiles::new(Roots::one(&directory), &recording).unwrap();
        let mut memory = IoMemory::new(1);
        assert_eq!(files.make(&call(CallKind::Mkdir), &mut memory), Some(0));
        assert!(directory.join("one").is_dir() && !outer.join("one").exists());
        assert_eq!(files.make(&call(CallKind::Truncate), &mut memory), Some(-21), "a directory");
        assert_eq!(files.make(&call(CallKind::Fsync), &mut memory), None, "nothing is open");
        std::fs::remove_dir_all(&outer).unwrap();
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn flags_of_a_recording_are_those_of_the_same_machine() {
        for (recorded, flags) in OPEN_FLAGS {
            assert_eq!(flags.bits(), recorded, "{recorded:o}");
        }
    }

    #[test]
    fn dropped_pages_are_no_longer_in_memory() {
        let directory = std::env::temp_dir().join(format!("joj-replay-pages-{}", std::process::id()));
        std::fs::create_dir_all(directory.join("below")).unwrap();
        let path = directory.join("below/file");
        std::fs::write(&path, [1; 4096]).unwrap();
        let file = File::open(&path).unwrap();
        file.sync_all().unwrap();
        let in_memory = || {
            let mut room = [0; 8];
            let mut parts = [io::IoSliceMut::new(&mut room)];
            rustix::io::preadv2(&file, &mut parts, 0, ReadWriteFlags::NOWAIT)
        };
        let before = in_memory();
        // The kernel keeps a page that somebody holds just then, such as one that it moves.
        let after = (0..100).find_map(|_| {
            drop_pages(&directory);
            let read = in_memory();
            std::thread::sleep(std::time::Duration::from_millis(10));
            read.err()
        });
        std::fs::remove_dir_all(&directory).unwrap();
        if before != Ok(8) {
            eprintln!("skipped: the filesystem does not say what is in memory ({before:?})");
            return;
        }
        assert_eq!(after, Some(Errno::AGAIN));
    }
}
