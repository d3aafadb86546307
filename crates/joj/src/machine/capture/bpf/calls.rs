//! The system calls that the eBPF programs look at: their numbers on this architecture, their names.

/// Number here, code in bpf/calls.h (`enum call`), name.
const CALLS: &[(libc::c_long, u8, &str)] = &[
    (libc::SYS_fsync, 1, "fsync"),
    (libc::SYS_fdatasync, 2, "fdatasync"),
    (libc::SYS_sync_file_range, 3, "sync_file_range"),
    (libc::SYS_msync, 4, "msync"),
    (libc::SYS_sync, 5, "sync"),
    (libc::SYS_syncfs, 6, "syncfs"),
    (libc::SYS_write, 7, "write"),
    (libc::SYS_pwrite64, 8, "pwrite64"),
    (libc::SYS_writev, 9, "writev"),
    (libc::SYS_pwritev, 10, "pwritev"),
    (libc::SYS_pwritev2, 11, "pwritev2"),
    (libc::SYS_ftruncate, 12, "ftruncate"),
    (libc::SYS_truncate, 14, "truncate"),
    (libc::SYS_openat, 16, "openat"),
    (libc::SYS_openat2, 17, "openat2"),
    (libc::SYS_io_submit, 19, "io_submit"),
    // Newer architectures have openat alone.
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 15, "open"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 18, "creat"),
];
/// Set beside a code: 64 bits of a length are in two arguments (bpf/calls.h, CALL_LONG).
#[cfg(target_arch = "x86_64")]
const LONG: u8 = 0x80;
/// Calls of 32 bits (linux: arch/x86/entry/syscalls/syscall_32.tbl): number, and code with [`LONG`].
#[cfg(target_arch = "x86_64")]
const COMPAT_CALLS: &[(usize, u8)] = &[
    (118, 1),
    (148, 2),
    (314, 3),
    (144, 4),
    (36, 5),
    (344, 6),
    (4, 7),
    (181, 8),
    (146, 9),
    (334, 10),
    (379, 11),
    (93, 12),
    (194, 12 | LONG),
    (92, 14),
    (193, 14 | LONG),
    (5, 15),
    (295, 16),
    (437, 17),
    (8, 18),
    (248, 19),
];
/// Elsewhere they have other registers, too, and are not looked at.
#[cfg(not(target_arch = "x86_64"))]
const COMPAT_CALLS: &[(usize, u8)] = &[];
/// A sync that no call of the thread asked for: io_uring's, a loop device's.
const FILE_SYNC: u8 = 13;

/// The calls' codes by call number, and those of calls of 32 bits; numbers from `codes.len()` on are not looked at.
pub fn fill(codes: &mut [u8], compat: &mut [u8]) {
    for &(number, code) in COMPAT_CALLS {
        if let Some(entry) = compat.get_mut(number) {
            *entry = code;
        }
    }
    for &(number, code, _) in CALLS {
        if let Some(entry) = usize::try_from(number).ok().and_then(|number| codes.get_mut(number)) {
            *entry = code;
        }
    }
}

/// The name behind a code; empty for 0 and for unknown ones.
pub fn name(code: u8) -> &'static str {
    if code == FILE_SYNC {
        return "file sync";
    }
    CALLS.iter().find(|entry| entry.1 == code).map_or("", |entry| entry.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_is_found_by_its_number() {
        let [mut codes, mut compat] = [[0; 512]; 2];
        fill(&mut codes, &mut compat);
        assert_eq!(codes.iter().filter(|code| **code != 0).count(), CALLS.len());
        assert_eq!(compat.iter().filter(|code| **code != 0).count(), COMPAT_CALLS.len());
        let fsync = usize::try_from(libc::SYS_fsync).expect("small");
        assert_eq!((name(codes[fsync]), name(0), name(FILE_SYNC)), ("fsync", "", "file sync"));
    }
}
