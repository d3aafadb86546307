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
/// A sync that no call of the thread asked for: io_uring's, a loop device's.
const FILE_SYNC: u8 = 13;

/// The calls' codes by call number; numbers from `codes.len()` on are not looked at.
pub fn fill(codes: &mut [u8]) {
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
        let mut codes = [0; 512];
        fill(&mut codes);
        assert_eq!(codes.iter().filter(|code| **code != 0).count(), CALLS.len());
        let fsync = usize::try_from(libc::SYS_fsync).expect("small");
        assert_eq!((name(codes[fsync]), name(0), name(FILE_SYNC)), ("fsync", "", "file sync"));
    }
}
