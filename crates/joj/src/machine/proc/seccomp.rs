//! Filters of system calls (seccomp(2)): their instructions, how one is installed between fork and exec, and the one that makes syncs
//! do nothing.

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
/// AUDIT_ARCH_X86_64 and AUDIT_ARCH_AARCH64 of linux/audit.h; 0 where it is not known.
pub const OWN_ARCHITECTURE: u32 = if cfg!(target_arch = "x86_64") {
    0xC000_003E
} else if cfg!(target_arch = "aarch64") {
    0xC000_00B7
} else {
    0
};
/// Where seccomp_data has the number of the call, and the architecture.
pub const NUMBER_AT: u32 = 0;
/// See above.
pub const ARCHITECTURE_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;

/// Where the low half of an argument is.
pub fn argument_at(index: u32) -> u32 {
    ARGUMENTS_AT + index * 8 + if cfg!(target_endian = "big") { 4 } else { 0 }
}

/// One instruction of the filter's language (classic BPF).
pub fn instruction(code: u32, jump_true: u8, jump_false: u8, value: u32) -> libc::sock_filter {
    libc::sock_filter { code: u16::try_from(code).unwrap_or(0), jt: jump_true, jf: jump_false, k: value }
}

/// Takes the word at this place of seccomp_data.
pub fn load(at: u32) -> libc::sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, at)
}

/// Jumps over so many instructions, as the word is this value or not.
pub fn if_equal(value: u32, jump_true: u8, jump_false: u8) -> libc::sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, jump_true, jump_false, value)
}

/// The same, as the word has one of these bits or none.
pub fn if_any_bit(bits: u32, jump_true: u8, jump_false: u8) -> libc::sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, jump_true, jump_false, bits)
}

/// Ends with this answer.
pub fn answer(value: u32) -> libc::sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, value)
}

/// A filter with which syncs return 0 and do nothing. `None` where the numbers of the calls are not known. A program of another
/// architecture (32 bits) makes its syncs all the same.
pub fn without_syncs() -> Option<Vec<libc::sock_filter>> {
    if OWN_ARCHITECTURE == 0 {
        return None;
    }
    let mut program = vec![
        load(ARCHITECTURE_AT),
        if_equal(OWN_ARCHITECTURE, 1, 0),
        answer(libc::SECCOMP_RET_ALLOW),
        load(NUMBER_AT),
    ];
    for number in SYNCS {
        program.push(if_equal(u32::try_from(number).ok()?, 0, 1));
        // An error whose number is 0: the call returns 0.
        program.push(answer(libc::SECCOMP_RET_ERRNO));
    }
    program.push(answer(libc::SECCOMP_RET_ALLOW));
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
