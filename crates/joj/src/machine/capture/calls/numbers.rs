//! The system calls that a recording looks at: their numbers on this architecture.

use joj_analysis::recording::system_calls::captured::called::CalledName as Called;

/// fchmodat2 (Linux 6.6): the same number on every architecture, and older versions of libc have none.
const SYS_FCHMODAT2: libc::c_long = 452;

/// Later than the libraries' headers, and the same on every architecture.
const SYS_SETXATTRAT: libc::c_long = 463;
const SYS_REMOVEXATTRAT: libc::c_long = 466;
const SYS_OPEN_TREE_ATTR: libc::c_long = 467;
const SYS_FILE_SETATTR: libc::c_long = 469;

/// Number here, and which call it is.
pub const CALLS: &[(libc::c_long, Called)] = &[
    (libc::SYS_read, Called::Read),
    (libc::SYS_pread64, Called::Pread64),
    (libc::SYS_readv, Called::Readv),
    (libc::SYS_preadv, Called::Preadv),
    (libc::SYS_preadv2, Called::Preadv2),
    (libc::SYS_write, Called::Write),
    (libc::SYS_pwrite64, Called::Pwrite64),
    (libc::SYS_writev, Called::Writev),
    (libc::SYS_pwritev, Called::Pwritev),
    (libc::SYS_pwritev2, Called::Pwritev2),
    (libc::SYS_lseek, Called::Lseek),
    (libc::SYS_fsync, Called::Fsync),
    (libc::SYS_fdatasync, Called::Fdatasync),
    (libc::SYS_sync_file_range, Called::SyncFileRange),
    (libc::SYS_syncfs, Called::Syncfs),
    (libc::SYS_sync, Called::Sync),
    (libc::SYS_ftruncate, Called::Ftruncate),
    (libc::SYS_truncate, Called::Truncate),
    (libc::SYS_fallocate, Called::Fallocate),
    (libc::SYS_fstat, Called::Fstat),
    (libc::SYS_newfstatat, Called::Newfstatat),
    (libc::SYS_statx, Called::Statx),
    (libc::SYS_faccessat, Called::Faccessat),
    (libc::SYS_faccessat2, Called::Faccessat2),
    (libc::SYS_openat, Called::Openat),
    (libc::SYS_openat2, Called::Openat2),
    (libc::SYS_close, Called::Close),
    (libc::SYS_close_range, Called::CloseRange),
    (libc::SYS_dup, Called::Dup),
    (libc::SYS_dup3, Called::Dup3),
    (libc::SYS_fcntl, Called::Fcntl),
    (libc::SYS_ioctl, Called::Ioctl),
    (libc::SYS_renameat2, Called::Renameat2),
    (libc::SYS_linkat, Called::Linkat),
    (libc::SYS_symlinkat, Called::Symlinkat),
    (libc::SYS_unlinkat, Called::Unlinkat),
    (libc::SYS_mkdirat, Called::Mkdirat),
    (libc::SYS_chdir, Called::Chdir),
    (libc::SYS_chroot, Called::Chroot),
    (libc::SYS_fchdir, Called::Fchdir),
    (libc::SYS_mmap, Called::Mmap),
    (libc::SYS_io_uring_enter, Called::IoUringEnter),
    (libc::SYS_io_submit, Called::IoSubmit),
    (libc::SYS_sendfile, Called::Sendfile),
    (libc::SYS_copy_file_range, Called::CopyFileRange),
    (libc::SYS_splice, Called::Splice),
    (libc::SYS_getdents64, Called::Getdents64),
    (libc::SYS_flock, Called::Flock),
    (libc::SYS_open_by_handle_at, Called::OpenByHandleAt),
    (libc::SYS_fchmod, Called::Fchmod),
    (libc::SYS_fchmodat, Called::Fchmodat),
    (SYS_FCHMODAT2, Called::Fchmodat2),
    (libc::SYS_fchown, Called::Fchown),
    (libc::SYS_fchownat, Called::Fchownat),
    (libc::SYS_fadvise64, Called::Fadvise64),
    (libc::SYS_readahead, Called::Readahead),
    (libc::SYS_utimensat, Called::Utimensat),
    (libc::SYS_setxattr, Called::Setxattr),
    (libc::SYS_lsetxattr, Called::Setxattr),
    (libc::SYS_fsetxattr, Called::Setxattr),
    (libc::SYS_removexattr, Called::Setxattr),
    (libc::SYS_lremovexattr, Called::Setxattr),
    (libc::SYS_fremovexattr, Called::Setxattr),
    (SYS_SETXATTRAT, Called::Setxattr),
    (SYS_REMOVEXATTRAT, Called::Setxattr),
    (SYS_FILE_SETATTR, Called::Setxattr),
    (libc::SYS_mknodat, Called::Mknod),
    (libc::SYS_bind, Called::Bind),
    (libc::SYS_msync, Called::Msync),
    (libc::SYS_io_uring_setup, Called::IoUringSetup),
    (libc::SYS_mount, Called::Mount),
    (libc::SYS_umount2, Called::Mount),
    (libc::SYS_pivot_root, Called::Mount),
    (libc::SYS_move_mount, Called::Mount),
    (libc::SYS_fsmount, Called::Mount),
    (libc::SYS_open_tree, Called::Mount),
    (SYS_OPEN_TREE_ATTR, Called::Mount),
    (libc::SYS_mount_setattr, Called::Mount),
    (libc::SYS_setns, Called::Setns),
    (libc::SYS_renameat, Called::Renameat),
    (libc::SYS_unshare, Called::Unshare),
];

/// Calls that newer architectures have under newer names alone.
#[cfg(target_arch = "x86_64")]
pub const OLDER_CALLS: &[(libc::c_long, Called)] = &[
    (libc::SYS_stat, Called::Stat),
    (libc::SYS_lstat, Called::Lstat),
    (libc::SYS_access, Called::Access),
    (libc::SYS_open, Called::Open),
    (libc::SYS_creat, Called::Creat),
    (libc::SYS_dup2, Called::Dup2),
    (libc::SYS_rename, Called::Rename),
    (libc::SYS_link, Called::Link),
    (libc::SYS_symlink, Called::Symlink),
    (libc::SYS_unlink, Called::Unlink),
    (libc::SYS_mkdir, Called::Mkdir),
    (libc::SYS_rmdir, Called::Rmdir),
    (libc::SYS_chmod, Called::Chmod),
    (libc::SYS_chown, Called::Chown),
    (libc::SYS_lchown, Called::Lchown),
    (libc::SYS_utime, Called::Utimes),
    (libc::SYS_utimes, Called::Utimes),
    (libc::SYS_futimesat, Called::Futimesat),
    (libc::SYS_mknod, Called::Mknod),
    (libc::SYS_getdents, Called::Getdents64),
];
/// See above.
#[cfg(not(target_arch = "x86_64"))]
pub const OLDER_CALLS: &[(libc::c_long, Called)] = &[];

/// All of them.
pub fn all() -> impl Iterator<Item = (u32, Called)> {
    CALLS
        .iter()
        .chain(OLDER_CALLS)
        .filter_map(|(number, called)| Some((u32::try_from(*number).ok()?, *called)))
}

/// Which call has this number.
#[derive(Debug)]
pub struct CallNumbers(Vec<Option<Called>>);

impl CallNumbers {
    /// The table.
    pub fn new() -> Self {
        let mut table = vec![None; 512];
        for (number, called) in all() {
            if let Some(entry) = table.get_mut(number as usize) {
                *entry = Some(called);
            }
        }
        Self(table)
    }

    /// The call, if it is looked at.
    pub fn get(&self, number: u64) -> Option<Called> {
        self.0.get(usize::try_from(number).ok()?).copied().flatten()
    }
}

/// Where `st_mode` (32 bits) and `st_size` (64) are in `struct stat`.
pub const STATUS_PLACES: (u64, u64) = if cfg!(target_arch = "x86_64") { (24, 48) } else { (16, 48) };
/// Where `stx_mode` (16 bits) and `stx_size` are in `struct statx`.
pub const STATUS_X_PLACES: (u64, u64) = (28, 40);

/// O_ flags of this architecture, and of x86-64, whose numbers recordings have.
const OTHER_FLAGS: &[(u32, u32)] = if cfg!(target_arch = "aarch64") {
    // O_DIRECTORY, O_NOFOLLOW, O_DIRECT, O_LARGEFILE.
    &[(0o40_000, 0o200_000), (0o100_000, 0o400_000), (0o200_000, 0o40_000), (0o400_000, 0o100_000)]
} else {
    &[]
};

/// The flags of an open as recordings have them.
pub fn open_flags(flags: u64) -> u64 {
    let changed = OTHER_FLAGS.iter().fold(0, |all, (own, _)| all | u64::from(*own));
    let moved = OTHER_FLAGS.iter().filter(|(own, _)| flags & u64::from(*own) != 0);
    moved.fold(flags & !changed, |all, (_, recorded)| all | u64::from(*recorded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_found_by_its_number() {
        let numbers = CallNumbers::new();
        let of = |number: libc::c_long| numbers.get(u64::try_from(number).expect("small"));
        assert_eq!(of(libc::SYS_pwrite64), Some(Called::Pwrite64));
        assert_eq!([of(libc::SYS_getpid), numbers.get(1 << 30), numbers.get(511)], [None; 3]);
        assert_eq!(open_flags(0o102), 0o102);
    }
}
