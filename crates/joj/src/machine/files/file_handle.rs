//! Opening a file by its inode number: ext4 allows it to root, whatever the file's name is.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};

/// FILEID_INO32_GEN (linux/exportfs.h): an inode number and a generation.
const INODE_AND_GENERATION: i32 = 1;
/// FS_IOC_GETVERSION (linux/fs.h). It is declared with a long and gives an int.
const GET_VERSION: u64 = if size_of::<libc::c_long>() == 8 { 0x8008_7601 } else { 0x8004_7601 };
/// MAX_HANDLE_SZ (linux/exportfs.h).
const HANDLE_BYTES_MAX: usize = 128;

/// A handle as name_to_handle_at(2) makes them.
#[repr(C)]
struct Handle {
    bytes: u32,
    kind: i32,
    handle: [u8; HANDLE_BYTES_MAX],
}

/// Opens the file with this number, below any directory or file of its filesystem. A generation of 0 stands for whichever
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

/// Opens what a handle stands for.
/// # Errors
/// As [`open_inode`].
pub fn open(filesystem: &File, kind: i32, bytes: &[u8]) -> io::Result<File> {
    let mut handle = Handle { bytes: 0, kind, handle: [0; HANDLE_BYTES_MAX] };
    let room = handle.handle.get_mut(..bytes.len()).ok_or(io::ErrorKind::InvalidInput)?;
    room.copy_from_slice(bytes);
    handle.bytes = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    let flags = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NOATIME;
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

/// A file's generation; `None` on filesystems that have none.
pub fn generation(file: &File) -> Option<u32> {
    let mut version: libc::c_long = 0;
    // SAFETY: the descriptor is open; the kernel writes an int, and a long has room for it.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), GET_VERSION as _, &raw mut version) };
    // What an int wrote are the first four bytes, in either byte order.
    let [a, b, c, d, ..] = version.to_ne_bytes();
    (result == 0).then(|| u32::from_ne_bytes([a, b, c, d]))
}
