//! Flags and errors of Linux by their names, as strace prints them, with the numbers of x86-64.

/// Opened for reading alone.
pub const O_RDONLY: u32 = 0;
/// Opened for reading and writing.
pub const O_RDWR: u32 = 2;
/// The bits that say how it is opened.
pub const O_ACCMODE: u32 = 3;
/// Made where it is not there.
pub const O_CREAT: u32 = 0o100;
/// It must not be there.
pub const O_EXCL: u32 = 0o200;
/// Emptied.
pub const O_TRUNC: u32 = 0o1000;
/// Every write goes to its end.
pub const O_APPEND: u32 = 0o2000;
/// The bits of O_DSYNC and O_SYNC: each write is durable when it returns.
pub const O_SYNC_BITS: u32 = 0o4_010_000;
/// RWF_DSYNC and RWF_SYNC: this write is durable when it returns.
pub const RWF_SYNC_BITS: u32 = 2 | 4;
/// Of a write: to the end of the file, whatever its place says.
pub const RWF_APPEND: u32 = 0x10;
/// Of a write: where its place says, in spite of O_APPEND.
pub const RWF_NOAPPEND: u32 = 0x20;
/// Past the page cache.
pub const O_DIRECT: u32 = 0o40000;
/// It must be a directory.
pub const O_DIRECTORY: u32 = 0o200_000;
/// A file without a name, in this directory.
pub const O_TMPFILE: u32 = 0o20_200_000;
/// It must not be a symbolic link.
pub const O_NOFOLLOW: u32 = 0o400_000;
/// Not to be read or written: it stands for the name.
pub const O_PATH: u32 = 0o10_000_000;
/// Of openat2: nothing leads out of the directory.
pub const RESOLVE_IN_ROOT: u64 = 0x10;
/// Closed by execve.
pub const O_CLOEXEC: u32 = 0o2_000_000;

/// A regular file, of `st_mode`.
pub const S_IFREG: u32 = 0o100_000;
/// A directory.
pub const S_IFDIR: u32 = 0o040_000;
/// A symbolic link.
pub const S_IFLNK: u32 = 0o120_000;
/// The bits of `st_mode` that say which of them.
pub const S_IFMT: u32 = 0o170_000;

/// The new name is not there.
pub const RENAME_NOREPLACE: u32 = 1;
/// Each of two names is the other's afterwards.
pub const RENAME_EXCHANGE: u32 = 2;
/// `lseek` from the end.
pub const SEEK_END: u32 = 2;
/// Its pages will be read soon (posix_fadvise(2)).
pub const FADV_WILLNEED: u32 = 3;
/// The size of the file stays.
pub const FALLOC_FL_KEEP_SIZE: u32 = 1;
/// The bytes become a hole.
pub const FALLOC_FL_PUNCH_HOLE: u32 = 2;
/// The bytes are cut out.
pub const FALLOC_FL_COLLAPSE_RANGE: u32 = 8;
/// Room is made between bytes.
pub const FALLOC_FL_INSERT_RANGE: u32 = 0x20;

/// The kind of a lock that is given back (F_UNLCK).
pub const UNLOCKED: u32 = 2;

/// It is not allowed: a directory has no second name.
pub const EPERM: i64 = 1;
/// There is no such file.
pub const ENOENT: i64 = 2;
/// Not open, or not for that.
pub const EBADF: i64 = 9;
/// Nothing there yet.
pub const EAGAIN: i64 = 11;
/// It is in use.
pub const EBUSY: i64 = 16;
/// It is there.
pub const EEXIST: i64 = 17;
/// A name on the way is no directory's.
pub const ENOTDIR: i64 = 20;
/// It is a directory.
pub const EISDIR: i64 = 21;
/// It cannot be.
pub const EINVAL: i64 = 22;
/// Something is in the directory.
pub const ENOTEMPTY: i64 = 39;
/// Too many symbolic links on the way.
pub const ELOOP: i64 = 40;

/// Names of flags, with their numbers. Of two calls' flags the same name never means two numbers.
const FLAGS: [(&str, u32); 78] = [
    ("O_RDONLY", 0),
    ("O_WRONLY", 1),
    ("O_RDWR", 2),
    ("O_ACCMODE", 3),
    ("O_CREAT", O_CREAT),
    ("O_EXCL", O_EXCL),
    ("O_NOCTTY", 0o400),
    ("O_TRUNC", O_TRUNC),
    ("O_APPEND", O_APPEND),
    ("O_NONBLOCK", 0o4000),
    ("O_NDELAY", 0o4000),
    ("O_DSYNC", 0o10000),
    ("O_ASYNC", 0o20000),
    ("FASYNC", 0o20000),
    ("O_DIRECT", O_DIRECT),
    ("O_LARGEFILE", 0o100_000),
    ("O_DIRECTORY", O_DIRECTORY),
    ("O_NOFOLLOW", O_NOFOLLOW),
    ("O_NOATIME", 0o1_000_000),
    ("O_CLOEXEC", O_CLOEXEC),
    ("O_SYNC", 0o4_010_000),
    ("O_RSYNC", 0o4_010_000),
    ("__O_SYNC", 0o4_000_000),
    ("O_PATH", O_PATH),
    ("O_TMPFILE", O_TMPFILE),
    ("POSIX_FADV_NORMAL", 0),
    ("POSIX_FADV_RANDOM", 1),
    ("POSIX_FADV_SEQUENTIAL", 2),
    ("POSIX_FADV_WILLNEED", FADV_WILLNEED),
    ("POSIX_FADV_DONTNEED", 4),
    ("POSIX_FADV_NOREUSE", 5),
    ("SEEK_SET", 0),
    ("SEEK_CUR", 1),
    ("SEEK_END", SEEK_END),
    ("SEEK_DATA", 3),
    ("SEEK_HOLE", 4),
    ("F_OK", 0),
    ("X_OK", 1),
    ("W_OK", 2),
    ("R_OK", 4),
    ("FALLOC_FL_KEEP_SIZE", FALLOC_FL_KEEP_SIZE),
    ("FALLOC_FL_PUNCH_HOLE", FALLOC_FL_PUNCH_HOLE),
    ("FALLOC_FL_NO_HIDE_STALE", 4),
    ("FALLOC_FL_COLLAPSE_RANGE", FALLOC_FL_COLLAPSE_RANGE),
    ("FALLOC_FL_ZERO_RANGE", 0x10),
    ("FALLOC_FL_INSERT_RANGE", FALLOC_FL_INSERT_RANGE),
    ("FALLOC_FL_UNSHARE_RANGE", 0x40),
    ("RENAME_NOREPLACE", RENAME_NOREPLACE),
    ("RENAME_EXCHANGE", RENAME_EXCHANGE),
    ("RENAME_WHITEOUT", 4),
    ("SYNC_FILE_RANGE_WAIT_BEFORE", 1),
    ("SYNC_FILE_RANGE_WRITE", 2),
    ("SYNC_FILE_RANGE_WAIT_AFTER", 4),
    ("SYNC_FILE_RANGE_WRITE_AND_WAIT", 7),
    ("RWF_HIPRI", 1),
    ("RWF_DSYNC", 2),
    ("RWF_SYNC", 4),
    ("RWF_NOWAIT", 8),
    ("RWF_APPEND", RWF_APPEND),
    ("RWF_NOAPPEND", RWF_NOAPPEND),
    ("AT_SYMLINK_NOFOLLOW", 0x100),
    ("AT_REMOVEDIR", 0x200),
    ("AT_EACCESS", 0x200),
    ("AT_SYMLINK_FOLLOW", 0x400),
    ("AT_NO_AUTOMOUNT", 0x800),
    ("AT_EMPTY_PATH", 0x1000),
    ("AT_STATX_SYNC_AS_STAT", 0),
    ("AT_STATX_FORCE_SYNC", 0x2000),
    ("AT_STATX_DONT_SYNC", 0x4000),
    ("FD_CLOEXEC", 1),
    ("CLOSE_RANGE_UNSHARE", 2),
    ("CLOSE_RANGE_CLOEXEC", 4),
    ("S_IFREG", S_IFREG),
    ("S_IFDIR", S_IFDIR),
    ("S_IFLNK", S_IFLNK),
    ("S_IFIFO", 0o010_000),
    ("S_IFCHR", 0o020_000),
    ("S_IFSOCK", 0o140_000),
];

/// The number of flags like `O_RDWR|O_CREAT`, `0x8000`, `0644`; `None` where a word is no flag that joj knows.
pub fn flags(text: &str) -> Option<u32> {
    text.split('|').try_fold(0, |all, word| {
        let known = FLAGS.iter().find(|(name, _)| *name == word).map(|(_, flag)| *flag);
        Some(all | known.or_else(|| number(word).and_then(|flag| u32::try_from(flag).ok()))?)
    })
}

/// A number as strace prints it: decimal, octal with a 0, hexadecimal with 0x.
pub fn number(text: &str) -> Option<i64> {
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok().map(u64::cast_signed);
    }
    if text.len() > 1 && text.starts_with('0') {
        return i64::from_str_radix(text, 8).ok();
    }
    // Offsets beyond i64 are printed without a sign.
    text.parse().ok().or_else(|| text.parse::<u64>().ok().map(u64::cast_signed))
}

/// Errors by name, in the order of their numbers; at the end second names.
const ERRORS: [(&str, i64); 132] = [
    ("EPERM", 1),
    ("ENOENT", ENOENT),
    ("ESRCH", 3),
    ("EINTR", 4),
    ("EIO", 5),
    ("ENXIO", 6),
    ("E2BIG", 7),
    ("ENOEXEC", 8),
    ("EBADF", 9),
    ("ECHILD", 10),
    ("EAGAIN", 11),
    ("ENOMEM", 12),
    ("EACCES", 13),
    ("EFAULT", 14),
    ("ENOTBLK", 15),
    ("EBUSY", 16),
    ("EEXIST", EEXIST),
    ("EXDEV", 18),
    ("ENODEV", 19),
    ("ENOTDIR", ENOTDIR),
    ("EISDIR", 21),
    ("EINVAL", 22),
    ("ENFILE", 23),
    ("EMFILE", 24),
    ("ENOTTY", 25),
    ("ETXTBSY", 26),
    ("EFBIG", 27),
    ("ENOSPC", 28),
    ("ESPIPE", 29),
    ("EROFS", 30),
    ("EMLINK", 31),
    ("EPIPE", 32),
    ("EDOM", 33),
    ("ERANGE", 34),
    ("EDEADLOCK", 35),
    ("ENAMETOOLONG", 36),
    ("ENOLCK", 37),
    ("ENOSYS", 38),
    ("ENOTEMPTY", 39),
    ("ELOOP", ELOOP),
    ("ENOMSG", 42),
    ("EIDRM", 43),
    ("ECHRNG", 44),
    ("EL2NSYNC", 45),
    ("EL3HLT", 46),
    ("EL3RST", 47),
    ("ELNRNG", 48),
    ("EUNATCH", 49),
    ("ENOCSI", 50),
    ("EL2HLT", 51),
    ("EBADE", 52),
    ("EBADR", 53),
    ("EXFULL", 54),
    ("ENOANO", 55),
    ("EBADRQC", 56),
    ("EBADSLT", 57),
    ("EBFONT", 59),
    ("ENOSTR", 60),
    ("ENODATA", 61),
    ("ETIME", 62),
    ("ENOSR", 63),
    ("ENONET", 64),
    ("ENOPKG", 65),
    ("EREMOTE", 66),
    ("ENOLINK", 67),
    ("EADV", 68),
    ("ESRMNT", 69),
    ("ECOMM", 70),
    ("EPROTO", 71),
    ("EMULTIHOP", 72),
    ("EDOTDOT", 73),
    ("EBADMSG", 74),
    ("EOVERFLOW", 75),
    ("ENOTUNIQ", 76),
    ("EBADFD", 77),
    ("EREMCHG", 78),
    ("ELIBACC", 79),
    ("ELIBBAD", 80),
    ("ELIBSCN", 81),
    ("ELIBMAX", 82),
    ("ELIBEXEC", 83),
    ("EILSEQ", 84),
    ("ERESTART", 85),
    ("ESTRPIPE", 86),
    ("EUSERS", 87),
    ("ENOTSOCK", 88),
    ("EDESTADDRREQ", 89),
    ("EMSGSIZE", 90),
    ("EPROTOTYPE", 91),
    ("ENOPROTOOPT", 92),
    ("EPROTONOSUPPORT", 93),
    ("ESOCKTNOSUPPORT", 94),
    ("ENOTSUP", 95),
    ("EPFNOSUPPORT", 96),
    ("EAFNOSUPPORT", 97),
    ("EADDRINUSE", 98),
    ("EADDRNOTAVAIL", 99),
    ("ENETDOWN", 100),
    ("ENETUNREACH", 101),
    ("ENETRESET", 102),
    ("ECONNABORTED", 103),
    ("ECONNRESET", 104),
    ("ENOBUFS", 105),
    ("EISCONN", 106),
    ("ENOTCONN", 107),
    ("ESHUTDOWN", 108),
    ("ETOOMANYREFS", 109),
    ("ETIMEDOUT", 110),
    ("ECONNREFUSED", 111),
    ("EHOSTDOWN", 112),
    ("EHOSTUNREACH", 113),
    ("EALREADY", 114),
    ("EINPROGRESS", 115),
    ("ESTALE", 116),
    ("EUCLEAN", 117),
    ("ENOTNAM", 118),
    ("ENAVAIL", 119),
    ("EISNAM", 120),
    ("EREMOTEIO", 121),
    ("EDQUOT", 122),
    ("ENOMEDIUM", 123),
    ("EMEDIUMTYPE", 124),
    ("ECANCELED", 125),
    ("ENOKEY", 126),
    ("EKEYEXPIRED", 127),
    ("EKEYREVOKED", 128),
    ("EKEYREJECTED", 129),
    ("EOWNERDEAD", 130),
    ("ENOTRECOVERABLE", 131),
    ("ERFKILL", 132),
    ("EWOULDBLOCK", 11),
    ("EOPNOTSUPP", 95),
];

/// The number of an error; `None` for one that Linux does not have.
pub fn errno(name: &str) -> Option<i64> {
    ERRORS.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_numbers_are_read_as_strace_prints_them() {
        assert_eq!(flags("O_RDWR|O_CREAT|0x8000"), Some(0o102 | 0x8000));
        assert_eq!([flags("O_RDWR|O_NEW"), flags("")], [None, None]);
        assert_eq!(["10", "0644", "0xff", "-1"].map(number), [Some(10), Some(0o644), Some(255), Some(-1)]);
        assert_eq!(number("18446744073709551615"), Some(-1));
        assert_eq!([errno("ENOENT"), errno("ECONNREFUSED"), errno("ENOPE")], [Some(2), Some(111), None]);
        assert_eq!(errno("EOPNOTSUPP"), errno("ENOTSUP"), "two names of one error");
    }
}
