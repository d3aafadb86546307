//! Finding a file by its inode number: ext4 allows it to root, whatever the file's name is. And what a file's handle says of it.
//!
//! No file is opened here (`O_PATH`): closing one again makes ext4, XFS and Btrfs write what was put into it after it was cut to
//! nothing (ext4_release_file, xfs_file_release, btrfs_release_file), and what its writer closes later is written no more.

use std::ffi::{CString, OsStr};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use joj_analysis::trace::ftrace::inode_number::{numbered, tree};

/// FILEID_INO32_GEN (linux/exportfs.h): an inode number and a generation.
const INODE_AND_GENERATION: i32 = 1;
/// MAX_HANDLE_SZ (linux/exportfs.h).
const HANDLE_BYTES_MAX: usize = 128;

/// A handle: its type and bytes.
pub type Handle = (i32, Vec<u8>);

/// A handle as name_to_handle_at(2) makes them.
#[repr(C)]
struct RawHandle {
    bytes: u32,
    kind: i32,
    handle: [u8; HANDLE_BYTES_MAX],
}

/// Finds the file with this number, below any directory or file of its filesystem. A generation of 0 stands for whichever
/// there is.
/// # Errors
/// As open_by_handle_at(2): ESTALE where there is no such file, EPERM without CAP_DAC_READ_SEARCH.
pub fn open_inode(filesystem: &File, inode: u64, generation: u32) -> io::Result<File> {
    let number = u32::try_from(inode).map_err(io::Error::other)?;
    let mut handle = [0; 8];
    handle[..4].copy_from_slice(&number.to_ne_bytes());
    handle[4..].copy_from_slice(&generation.to_ne_bytes());
    open(filesystem, INODE_AND_GENERATION, &handle)
}

/// Finds what a handle stands for: a descriptor that names it, for fstat(2) and /proc, and not for reading.
/// # Errors
/// As [`open_inode`].
pub fn open(filesystem: &File, kind: i32, bytes: &[u8]) -> io::Result<File> {
    let mut handle = RawHandle { bytes: 0, kind, handle: [0; HANDLE_BYTES_MAX] };
    let room = handle.handle.get_mut(..bytes.len()).ok_or(io::ErrorKind::InvalidInput)?;
    room.copy_from_slice(bytes);
    handle.bytes = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: the descriptor is open, and `handle` is a file_handle with the bytes that it says it has.
    let opened =
        unsafe { libc::syscall(libc::SYS_open_by_handle_at, filesystem.as_raw_fd(), &raw mut handle, flags) };
    let descriptor = i32::try_from(opened).unwrap_or(-1);
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave this descriptor to us alone.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

/// The handle of a file that was found so.
pub fn of_found(found: &File) -> Option<Handle> {
    of(Path::new(&format!("/proc/self/fd/{}", found.as_raw_fd())))
}

/// What the kernel calls a file that was found so; without its mark on a path that is gone.
pub fn path_of(found: &File) -> Option<PathBuf> {
    let path = fs::read_link(format!("/proc/self/fd/{}", found.as_raw_fd())).ok()?;
    without_deleted(path, &found.metadata().ok()?)
}

/// The same through the mount of a subvolume of Btrfs: what lies in another one has a path that begins there, and leads elsewhere here.
pub fn path_below_mount(found: &File) -> Option<PathBuf> {
    let (path, facts) = (path_of(found)?, found.metadata().ok()?);
    let is_it = |now: Metadata| (now.dev(), now.ino()) == (facts.dev(), facts.ino());
    (facts.nlink() == 0 || fs::symlink_metadata(&path).is_ok_and(is_it)).then_some(path)
}

/// The kernel marks a path that is gone. `None` where the file has other names: which, it does not say.
pub fn without_deleted(path: PathBuf, facts: &Metadata) -> Option<PathBuf> {
    let Some(name) = path.as_os_str().as_bytes().strip_suffix(b" (deleted)") else { return Some(path) };
    if facts.nlink() == 0 {
        return Some(OsStr::from_bytes(name).into());
    }
    let is_it = |now: Metadata| (now.dev(), now.ino()) == (facts.dev(), facts.ino());
    fs::symlink_metadata(&path).is_ok_and(is_it).then_some(path)
}

/// The handle of the file at a path, which may be one of /proc/PID/fd; `None` on filesystems without handles.
pub fn of(path: &Path) -> Option<Handle> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    let bytes = u32::try_from(HANDLE_BYTES_MAX).ok()?;
    let mut handle = RawHandle { bytes, kind: 0, handle: [0; HANDLE_BYTES_MAX] };
    let (mut mount, follow) = (0_i32, libc::AT_SYMLINK_FOLLOW);
    // SAFETY: `path` ends with a zero byte, `handle` has the room that it says it has, and `mount` takes a number.
    let result = unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            libc::AT_FDCWD,
            path.as_ptr(),
            &raw mut handle,
            &raw mut mount,
            follow,
        )
    };
    let bytes = handle.handle.get(..usize::try_from(handle.bytes).ok()?)?;
    (result == 0).then(|| (handle.kind, bytes.to_vec()))
}

/// A file's number, as [`numbered`].
pub fn number(facts: &Metadata, handle: Option<&Handle>) -> u64 {
    let named = handle.and_then(|(kind, bytes)| identity(*kind, bytes)).map(|(number, _)| number);
    named.filter(|number| tree(*number) != 0).unwrap_or_else(|| facts.ino())
}

/// The generation that a handle names; 0 where joj cannot read it.
pub fn generation(handle: Option<&Handle>) -> u32 {
    handle.and_then(|(kind, bytes)| identity(*kind, bytes)).map_or(0, |(_, generation)| generation)
}

/// (inode as [`numbered`], generation) of a handle; its bytes are the filesystem's own business, by its type (linux/exportfs.h).
pub fn identity(kind: i32, handle: &[u8]) -> Option<(u64, u32)> {
    let small = |at: usize| Some(u32::from_ne_bytes(handle.get(at..at + 4)?.try_into().ok()?));
    let large = |at: usize| Some(u64::from_ne_bytes(handle.get(at..at + 8)?.try_into().ok()?));
    match kind {
        // FILEID_INO32_GEN, and the same with the parent's behind it: ext4, F2FS.
        1 | 2 => Some((u64::from(small(0)?), small(4)?)),
        // XFS with inode numbers of 64 bits.
        0x81 | 0x82 => Some((large(0)?, small(8)?)),
        // Btrfs: object, tree, generation.
        0x4d..=0x4f => Some((numbered(large(8)?, large(0)?)?, small(16)?)),
        // NILFS2: checkpoint, inode, generation.
        0x61 | 0x62 => Some((large(8)?, small(16)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_gone_is_no_name_of_a_file_that_has_others() {
        let place = std::env::temp_dir().join(format!("joj-handle-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        let [first, other, so_called] = ["a", "b", "c (deleted)"].map(|name| place.join(name));
        let open = |path: &Path| File::create_new(path).unwrap();
        let (file, odd) = (open(&first), open(&so_called));
        assert_eq!([path_of(&file), path_of(&odd)], [Some(first.clone()), Some(so_called.clone())]);
        fs::hard_link(&first, &other).unwrap();
        fs::remove_file(&first).unwrap();
        assert_eq!(path_of(&file), None, "it is called b, which the kernel does not say");
        fs::remove_file(&other).unwrap();
        fs::remove_file(&so_called).unwrap();
        assert_eq!([path_of(&file), path_of(&odd)], [Some(first), Some(so_called)]);
        fs::remove_dir(&place).unwrap();
    }
}
