//! The disk of this machine: names, and how a file is opened.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Gid, IFlags, Mode, OFlags, Uid};
use rustix::io::Errno;

use crate::disk::{Disk, DiskFile, FileId, Filesystem, OpenOptions};
use crate::real::descriptors::{open_above_streams, uninterrupted};
use crate::real::device_facts;
use crate::real::file::RealFile;

/// System calls on the files of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Box<dyn DiskFile>> {
        // O_NOFOLLOW: SQLite resolved the links of the database's name; a link in the log's place is an attack.
        let access = if options.read_only { OFlags::RDONLY } else { OFlags::RDWR };
        let flags = access | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let (file, created) = if options.create {
            open_or_create(path, flags, options)?
        } else {
            (open_existing(path, flags)?, false)
        };
        let status = rustix::fs::fstat(&file)?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let facts = device_facts::facts(file.as_fd());
        if created {
            make_ready(&file, status.st_mode, options, facts.filesystem)?;
        }
        let opened = FileId { device: status.st_dev, inode: status.st_ino };
        Ok(Box::new(RealFile::new(file, path, opened, facts)))
    }

    fn mode_and_owner(&self, path: &Path) -> io::Result<(u32, (u32, u32))> {
        let metadata = fs::metadata(path)?;
        Ok((metadata.mode() & 0o7777, (metadata.uid(), metadata.gid())))
    }

    fn identity_of(&self, path: &Path) -> io::Result<FileId> {
        let metadata = fs::metadata(path)?;
        Ok(FileId { device: metadata.dev(), inode: metadata.ino() })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn make_overwritten_in_place(&self, path: &Path, mode: u32, owner: (u32, u32)) -> io::Result<bool> {
        let Some(parent) = path.parent() else { return Ok(false) };
        if device_facts::filesystem_of(parent)? != Filesystem::Btrfs || fs::symlink_metadata(path).is_ok() {
            return Ok(false);
        }
        let options = OpenOptions { mode, owner: Some(owner), ..OpenOptions::EXISTING };
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = open_above_streams(parent, flags, Mode::from_raw_mode(mode))?;
        make_ready(&file, rustix::fs::fstat(&file)?.st_mode, options, Filesystem::Btrfs)?;
        // What is open by its path alone has no locks to lose.
        let held = open_above_streams(&by_descriptor(&file), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        drop(file);
        match rustix::fs::linkat(CWD, by_descriptor(&held), CWD, path, AtFlags::SYMLINK_FOLLOW) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn sync_dir_of(&self, path: &Path) -> io::Result<bool> {
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // A directory that may be entered but not listed, or no descriptor to spare: SQLite goes on, too.
        let Ok(directory) = rustix::fs::open(parent, flags, Mode::empty()) else { return Ok(false) };
        // fdatasync: a directory's entries are its data.
        match uninterrupted(|| rustix::fs::fdatasync(&directory)) {
            Ok(()) => Ok(true),
            // A file system that has no such thing.
            Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS | Errno::ROFS | Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

fn by_descriptor(file: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

fn open_existing(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    match open_above_streams(path, flags, Mode::empty()) {
        // Another program has a lease on this regular file (F_SETLEASE, as a Samba or NFS server takes). The kernel has asked for it;
        // an open that may block waits until it is given back, for 45 s at most (/proc/sys/fs/lease-break-time), as SQLite's does.
        Err(Errno::AGAIN) => Ok(open_above_streams(path, flags.difference(OFlags::NONBLOCK), Mode::empty())?),
        opened => Ok(opened?),
    }
}

/// The file, and whether it was created.
fn open_or_create(path: &Path, flags: OFlags, options: OpenOptions) -> io::Result<(OwnedFd, bool)> {
    let mode = Mode::from_raw_mode(options.mode);
    match open_above_streams(path, flags | OFlags::CREATE | OFlags::EXCL, mode) {
        Ok(file) => Ok((file, true)),
        // There before, or another process was faster: its file is as good as ours.
        Err(Errno::EXIST) if !options.exclusive => Ok((open_existing(path, flags)?, false)),
        Err(error) => Err(error.into()),
    }
}

/// What a created file needs while it is empty.
fn make_ready(file: &OwnedFd, mode_now: u32, options: OpenOptions, filesystem: Filesystem) -> io::Result<()> {
    // Past the umask, as SQLite's unix VFS does: who may use the database may use its log.
    if mode_now & 0o777 != options.mode & 0o777 {
        rustix::fs::fchmod(file, Mode::from_raw_mode(options.mode))?;
    }
    if let (Some((uid, gid)), true) = (options.owner, rustix::process::geteuid().is_root()) {
        rustix::fs::fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
    }
    if filesystem == Filesystem::Btrfs {
        // Without NOCOW every overwrite of the log allocates. It can only be set while the file is empty, and a
        // mount that refuses it (compression forced) still works, slower.
        let _ = set_no_copy_on_write(file);
    }
    Ok(())
}

fn set_no_copy_on_write(file: &OwnedFd) -> io::Result<()> {
    let flags = rustix::fs::ioctl_getflags(file)?;
    Ok(rustix::fs::ioctl_setflags(file, flags | IFlags::NOCOW)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Fill;

    struct Scratch(std::path::PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("blockio-{}-{name}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Scratch(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const CREATE: OpenOptions =
        OpenOptions { create: true, exclusive: false, read_only: false, mode: 0o640, owner: None };

    #[test]
    fn created_file_has_the_mode_asked_for_past_the_umask() {
        let scratch = Scratch::new("mode");
        let path = scratch.0.join("log");
        RealDisk.open(&path, CREATE).unwrap();
        assert_eq!(RealDisk.mode_and_owner(&path).unwrap().0, 0o640);
    }

    #[test]
    fn extend_keeps_every_byte_that_is_there() {
        let scratch = Scratch::new("extend");
        for fill in [Fill::Zeroes, Fill::Unwritten] {
            let path = scratch.0.join(format!("{fill:?}"));
            let file = RealDisk.open(&path, CREATE).unwrap();
            file.write_at(b"frame", 3).unwrap();
            let size = file.extend(10_000, fill).unwrap();
            assert!(size >= 10_000, "{fill:?} left {size} bytes");
            let mut first = [9; 12];
            assert_eq!(file.read_at(&mut first, 0).unwrap(), 12);
            assert_eq!(&first, b"\0\0\0frame\0\0\0\0");
            assert_eq!(file.size().unwrap(), size);
        }
    }

    #[test]
    fn a_directory_that_cannot_be_opened_is_no_error() {
        let scratch = Scratch::new("no-directory");
        assert!(RealDisk.sync_dir_of(&scratch.0.join("log")).unwrap());
        assert!(!RealDisk.sync_dir_of(&scratch.0.join("gone/log")).unwrap());
    }

    #[test]
    fn a_file_is_known_by_device_and_inode() {
        let scratch = Scratch::new("identity");
        let (one, two) = (scratch.0.join("one"), scratch.0.join("two"));
        let file = RealDisk.open(&one, CREATE).unwrap();
        RealDisk.open(&two, CREATE).unwrap();
        assert_eq!(file.identity().unwrap(), RealDisk.identity_of(&one).unwrap());
        fs::rename(&two, &one).unwrap();
        assert_ne!(file.identity().unwrap(), RealDisk.identity_of(&one).unwrap());
    }

    #[test]
    fn a_file_is_made_where_that_is_asked_for_and_written_where_that_is() {
        let scratch = Scratch::new("open");
        let path = scratch.0.join("log");
        let kind = |options| RealDisk.open(&path, options).map(|_| ()).map_err(|error| error.kind());
        assert_eq!(kind(OpenOptions::EXISTING), Err(io::ErrorKind::NotFound));
        let exclusive = OpenOptions { exclusive: true, ..CREATE };
        assert_eq!([exclusive, CREATE, OpenOptions::EXISTING].map(kind), [Ok(()); 3]);
        assert_eq!(kind(exclusive), Err(io::ErrorKind::AlreadyExists));
        let read_only = OpenOptions { read_only: true, ..OpenOptions::EXISTING };
        let written = [OpenOptions::EXISTING, read_only]
            .map(|options| RealDisk.open(&path, options).unwrap().write_at(b"x", 0).is_ok());
        assert_eq!(written, [true, false]);
        RealDisk.remove(&path).unwrap();
        assert_eq!(kind(OpenOptions::EXISTING), Err(io::ErrorKind::NotFound));
        assert!(RealDisk.open(&scratch.0, OpenOptions::EXISTING).is_err(), "a directory");
    }

    #[test]
    fn a_link_in_the_place_of_a_log_is_refused() {
        let scratch = Scratch::new("link");
        let link = scratch.0.join("link");
        fs::write(scratch.0.join("target"), "precious").unwrap();
        std::os::unix::fs::symlink(scratch.0.join("target"), &link).unwrap();
        assert!(RealDisk.open(&link, CREATE).is_err());
    }
}
