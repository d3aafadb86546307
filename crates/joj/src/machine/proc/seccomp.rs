//! Filters of system calls (seccomp(2)): installed between fork and exec, and the one that makes syncs do nothing.

use std::io;

/// Calls that make something durable and do nothing else.
const SYNCS: [libc::c_long; 6] = [
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync_file_range,
    libc::SYS_msync,
    libc::SYS_syncfs,
    libc::SYS_sync,
];
/// AUDIT_ARCH_X86_64 and AUDIT_ARCH_AARCH64 of linux/audit.h; elsewhere no call is held back.
const OWN_ARCHITECTURE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xC000_003E)
} else if cfg!(target_arch = "aarch64") {
    Some(0xC000_00B7)
} else {
    None
};
/// Where seccomp_data has the number of the call, and the architecture.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;

fn instruction(code: u32, jump_true: u8, jump_false: u8, value: u32) -> libc::sock_filter {
    libc::sock_filter { code: u16::try_from(code).unwrap_or(0), jt: jump_true, jf: jump_false, k: value }
}

/// A filter with which syncs return 0 and do nothing. `None` where the numbers of the calls are not known. A program of another
/// architecture (32 bits) makes its syncs all the same.
pub fn without_syncs() -> Option<Vec<libc::sock_filter>> {
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let if_equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let answer = libc::BPF_RET | libc::BPF_K;
    let mut program = vec![
        instruction(load, 0, 0, ARCHITECTURE_AT),
        instruction(if_equal, 1, 0, OWN_ARCHITECTURE?),
        instruction(answer, 0, 0, libc::SECCOMP_RET_ALLOW),
        instruction(load, 0, 0, NUMBER_AT),
    ];
    for number in SYNCS {
        program.push(instruction(if_equal, 0, 1, u32::try_from(number).ok()?));
        // An error whose number is 0: the call returns 0.
        program.push(instruction(answer, 0, 0, libc::SECCOMP_RET_ERRNO));
    }
    program.push(instruction(answer, 0, 0, libc::SECCOMP_RET_ALLOW));
    Some(program)
}

/// Installs a filter for this thread and all that it makes. Without privilege they can gain none any more. Makes system calls only:
/// it runs between fork and exec.
/// # Errors
/// As seccomp(2).
pub fn install(program: &mut [libc::sock_filter]) -> io::Result<()> {
    let length =
        libc::c_ushort::try_from(program.len()).map_err(|_| io::Error::from_raw_os_error(libc::E2BIG))?;
    let filter = libc::sock_fprog { len: length, filter: program.as_mut_ptr() };
    let set = || {
        // SAFETY: `filter` points to `len` whole instructions that outlive the call; the kernel checks them.
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const filter) }
    };
    if set() == 0 {
        return Ok(());
    }
    rustix::thread::set_no_new_privs(true)?;
    if set() == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
