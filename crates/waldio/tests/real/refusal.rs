//! System calls that fail: a filter (seccomp) hands chosen calls to a signal handler, which fails as many of each as the
//! test asked for and makes all others. On x86_64 alone: elsewhere nothing is refused, and `is_possible` says so.
//!
//! The handler's own calls come from one function, which the filter knows by its address.

use std::ffi::{c_int, c_long, c_void};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering::SeqCst};

/// Calls that can be refused, by name and number on x86_64.
pub const CALLS: [(&str, i64); 10] = [
    ("pwrite64", 18),
    ("flock", 73),
    ("fsync", 74),
    ("fdatasync", 75),
    ("ftruncate", 77),
    ("openat", 257),
    ("fallocate", 285),
    ("renameat2", 316),
    ("pwritev2", 328),
    ("cachestat", 451),
];

/// Errors by name.
pub const ERRORS: [(&str, i32); 8] = [
    ("EPERM", 1),
    ("EINTR", 4),
    ("EIO", 5),
    ("EACCES", 13),
    ("EMFILE", 24),
    ("EFBIG", 27),
    ("ENOSPC", 28),
    ("ENOSYS", 38),
];

/// How many of each still fail, and with what.
static COUNTS: [AtomicI64; CALLS.len()] = [const { AtomicI64::new(0) }; CALLS.len()];
static CODES: [AtomicI32; CALLS.len()] = [const { AtomicI32::new(0) }; CALLS.len()];

#[repr(C)]
#[derive(Clone, Copy)]
struct Instruction {
    code: u16,
    jump_true: u8,
    jump_false: u8,
    value: u32,
}

#[repr(C)]
struct Filter {
    len: u16,
    instructions: *const Instruction,
}

#[repr(C)]
struct Action {
    handler: unsafe extern "C" fn(c_int, *mut c_void, *mut Context),
    mask_and_flags: [u64; 17],
    restorer: usize,
}

/// glibc's `ucontext_t` as far as its registers.
#[repr(C)]
struct Context {
    before: [u64; 5],
    registers: [i64; 23],
}

unsafe extern "C" {
    fn prctl(option: c_int, ...) -> c_int;
    fn sigaction(number: c_int, action: *const Action, old: *mut c_void) -> c_int;
}

/// Whether calls can be refused on this processor.
pub const fn is_possible() -> bool {
    cfg!(target_arch = "x86_64")
}

/// The next `count` calls of this name fail; 0 ends it. Waits for nothing.
pub fn refuse(call: &str, error: &str, count: i64) {
    install();
    let index = CALLS.iter().position(|(name, _)| *name == call).expect("the name of a call");
    let (_, code) = ERRORS.iter().find(|(name, _)| *name == error).expect("the name of an error");
    CODES[index].store(*code, SeqCst);
    COUNTS[index].store(count, SeqCst);
}

#[cfg(target_arch = "x86_64")]
#[inline(never)]
extern "C" fn call(number: i64, arguments: &[i64; 6]) -> i64 {
    let result;
    // SAFETY: the very call that the program made, with its own arguments.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") arguments[0], in("rsi") arguments[1], in("rdx") arguments[2],
            in("r10") arguments[3], in("r8") arguments[4], in("r9") arguments[5],
            out("rcx") _, out("r11") _,
        );
    }
    result
}

#[cfg(not(target_arch = "x86_64"))]
extern "C" fn call(_: i64, _: &[i64; 6]) -> i64 {
    -38
}

unsafe extern "C" fn on_refused(_: c_int, _: *mut c_void, context: *mut Context) {
    let [rdi, rsi, rdx, r10, r8, r9, rax]: [usize; 7] = [8, 9, 12, 2, 0, 1, 13];
    // SAFETY: the kernel passes the context of the call.
    let registers = unsafe { &mut (*context).registers };
    let number = registers[rax];
    let index = CALLS.iter().position(|(_, known)| *known == number);
    let fails = |index: &usize| {
        COUNTS[*index].fetch_update(SeqCst, SeqCst, |left| (left > 0).then(|| left - 1)).is_ok()
    };
    let arguments = [rdi, rsi, rdx, r10, r8, r9].map(|register| registers[register]);
    registers[rax] = match index.filter(fails) {
        Some(index) => -i64::from(CODES[index].load(SeqCst)),
        None => call(number, &arguments),
    };
}

/// The filter: traps `CALLS`, but for those that `call` makes.
fn program() -> Vec<Instruction> {
    let [load, equal, at_least, give_back]: [u16; 4] = [0x20, 0x15, 0x35, 0x06];
    let [allow, trap]: [u32; 2] = [0x7fff_0000, 0x0003_0000];
    let [call_number, address_low, address_high]: [u32; 3] = [0, 8, 12];
    const LEN_MAX: u32 = 256;
    let at = call as *const () as u64;
    let word = |bits: u64| u32::try_from(bits & 0xffff_ffff).expect("masked");
    let (high, low) = (word(at >> 32), word(at));
    let step = |code, value, jump_true, jump_false| Instruction { code, jump_true, jump_false, value };
    let count = u8::try_from(CALLS.len()).expect("few");
    let mut all = vec![step(load, call_number, 0, 0)];
    for (index, (_, number)) in (0..).zip(CALLS) {
        all.push(step(equal, u32::try_from(number).expect("small"), count - index, 0));
    }
    all.push(step(give_back, allow, 0, 0));
    all.push(step(load, address_high, 0, 0));
    all.push(step(equal, high, 0, 4));
    all.push(step(load, address_low, 0, 0));
    all.push(step(at_least, low, 0, 2));
    all.push(step(at_least, low.saturating_add(LEN_MAX), 1, 0));
    all.push(step(give_back, allow, 0, 0));
    all.push(step(give_back, trap, 0, 0));
    all
}

/// For the whole process, once.
fn install() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    const SIGSYS: c_int = 31;
    const SIGINFO: u64 = 4;
    const PR_SET_NO_NEW_PRIVS: c_int = 38;
    const PR_SET_SECCOMP: c_int = 22;
    const MODE_FILTER: c_long = 2;
    if !is_possible() {
        return;
    }
    ONCE.call_once(|| {
        let mut mask_and_flags = [0; 17];
        mask_and_flags[16] = SIGINFO;
        let action = Action { handler: on_refused, mask_and_flags, restorer: 0 };
        // SAFETY: glibc's layout; the handler uses atomics and one system call.
        assert_eq!(unsafe { sigaction(SIGSYS, &raw const action, ptr::null_mut()) }, 0);
        let (one, none): (c_long, c_long) = (1, 0);
        // SAFETY: four numbers, as this option takes them.
        assert_eq!(unsafe { prctl(PR_SET_NO_NEW_PRIVS, one, none, none, none) }, 0);
        let instructions = program();
        let len = u16::try_from(instructions.len()).expect("short");
        let filter = Filter { len, instructions: instructions.as_ptr() };
        // SAFETY: a filter that the kernel copies and checks.
        assert_eq!(unsafe { prctl(PR_SET_SECCOMP, MODE_FILTER, &raw const filter) }, 0);
    });
}
