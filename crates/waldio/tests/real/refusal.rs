//! System calls that fail: a filter (seccomp) hands chosen calls to a thread of this process, which fails as many of each as
//! the test asked for and lets all others go on. On x86_64 and aarch64: elsewhere nothing is refused, and `is_possible` says so.
//!
//! The calls of the thread that installs it are filtered, and of all that this one starts later.

use std::ffi::{c_int, c_long, c_ulong, c_void};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::thread;

/// Calls that can be refused: name, number on x86_64, number on aarch64.
pub const CALLS: [(&str, u32, u32); 12] = [
    ("pwrite64", 18, 68),
    ("flock", 73, 32),
    ("fsync", 74, 82),
    ("fdatasync", 75, 83),
    ("ftruncate", 77, 46),
    ("openat", 257, 56),
    // Of a name that ends so.
    ("openat-wal", 257, 56),
    ("openat-waldio", 257, 56),
    ("fallocate", 285, 47),
    ("renameat2", 316, 276),
    ("pwritev2", 328, 287),
    ("cachestat", 451, 451),
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
/// How many of each go on before.
static AFTER: [AtomicI64; CALLS.len()] = [const { AtomicI64::new(0) }; CALLS.len()];
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

/// `struct seccomp_notif`.
#[repr(C)]
#[derive(Default)]
struct Notice {
    id: u64,
    process: u32,
    flags: u32,
    call: c_int,
    architecture: u32,
    rest: [u64; 7],
}

/// `struct seccomp_notif_resp`.
#[repr(C)]
struct Answer {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

unsafe extern "C" {
    fn prctl(option: c_int, ...) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
    fn ioctl(descriptor: c_int, request: c_ulong, argument: *mut c_void) -> c_int;
}

/// Whether calls can be refused on this processor.
pub const fn is_possible() -> bool {
    cfg!(any(target_arch = "x86_64", target_arch = "aarch64"))
}

fn number(call: &(&str, u32, u32)) -> u32 {
    if cfg!(target_arch = "aarch64") { call.2 } else { call.1 }
}

/// The next `count` calls of this name fail; 0 ends it.
pub fn refuse(call: &str, error: &str, count: i64) {
    refuse_after(call, error, 0, count);
}

/// The same, once `after` of them went on.
pub fn refuse_after(call: &str, error: &str, after: i64, count: i64) {
    install();
    let index = CALLS.iter().position(|(name, ..)| *name == call).expect("the name of a call");
    let (_, code) = ERRORS.iter().find(|(name, _)| *name == error).expect("the name of an error");
    CODES[index].store(*code, SeqCst);
    AFTER[index].store(after, SeqCst);
    COUNTS[index].store(count, SeqCst);
}

/// Answers for each call that the filter hands over.
fn serve(listener: c_int) {
    const RECEIVE: c_ulong = 0xc050_2100;
    const SEND: c_ulong = 0xc018_2101;
    const GO_ON: u32 = 1;
    loop {
        let mut notice = Notice::default();
        // SAFETY: the listener of the filter, and a notice of the kernel's layout, zeroed as it wants.
        if unsafe { ioctl(listener, RECEIVE, (&raw mut notice).cast()) } != 0 {
            // Who made the call is gone.
            continue;
        }
        let is_it = |index: &usize| {
            let (name, ..) = CALLS[*index];
            let older = name.starts_with("openat") && is_open(&notice);
            (older || u32::try_from(notice.call) == Ok(number(&CALLS[*index])))
                && COUNTS[*index].load(SeqCst) > 0
                && name.strip_prefix("openat").is_none_or(|end| is_named(&notice, end))
        };
        let fails = |index: &usize| {
            let goes_on = |left: i64| (left > 0).then(|| left - 1);
            AFTER[*index].fetch_update(SeqCst, SeqCst, goes_on).is_err()
                && COUNTS[*index].fetch_update(SeqCst, SeqCst, |left| (left > 0).then(|| left - 1)).is_ok()
        };
        let mut answer = match (0..CALLS.len()).filter(is_it).find(fails) {
            Some(index) => Answer { id: notice.id, value: 0, error: -CODES[index].load(SeqCst), flags: 0 },
            None => Answer { id: notice.id, value: 0, error: 0, flags: GO_ON },
        };
        // SAFETY: as above; it fails where the caller is gone.
        unsafe { ioctl(listener, SEND, (&raw mut answer).cast()) };
    }
}

/// open(2), which counts as openat and is not everywhere.
const OPEN: u32 = 2;

fn is_open(notice: &Notice) -> bool {
    cfg!(target_arch = "x86_64") && u32::try_from(notice.call) == Ok(OPEN)
}

/// Whether a call opens a file whose name ends so.
fn is_named(notice: &Notice, end: &str) -> bool {
    let mut text = [0; 512];
    let memory = File::open(format!("/proc/{}/mem", notice.process));
    let place = notice.rest[if is_open(notice) { 1 } else { 2 }];
    // Where the name is near the end of what is mapped, there is less of it.
    let read = memory.and_then(|memory| memory.read_at(&mut text, place)).unwrap_or(0);
    let name = text[..read].split(|byte| *byte == 0).next().unwrap_or_default();
    name.ends_with(end.as_bytes())
}

/// The filter: hands `CALLS` over.
fn program() -> Vec<Instruction> {
    let [load, equal, give_back]: [u16; 3] = [0x20, 0x15, 0x06];
    let [allow, hand_over]: [u32; 2] = [0x7fff_0000, 0x7fc0_0000];
    let step = |code, value, jump_true| Instruction { code, jump_true, jump_false: 0, value };
    let mut all = vec![step(load, 0, 0)];
    let mut numbers: Vec<u32> = CALLS.iter().map(number).collect();
    if cfg!(target_arch = "x86_64") {
        numbers.push(OPEN);
    }
    let count = u8::try_from(numbers.len()).expect("few");
    for (index, number) in (0..).zip(numbers) {
        all.push(step(equal, number, count - index));
    }
    all.push(step(give_back, allow, 0));
    all.push(step(give_back, hand_over, 0));
    all
}

/// Once.
fn install() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    const PR_SET_NO_NEW_PRIVS: c_int = 38;
    const SECCOMP: c_long = if cfg!(target_arch = "aarch64") { 277 } else { 317 };
    const MODE_FILTER: c_long = 1;
    const NEW_LISTENER: c_long = 8;
    if !is_possible() {
        return;
    }
    ONCE.call_once(|| {
        let (give, take) = channel();
        let (tell, ready) = channel();
        thread::spawn(move || {
            // What the loader does at a function's first call must not happen while a filtered thread is inside of it.
            // SAFETY: no descriptor, so nothing happens.
            unsafe { ioctl(-1, 0, std::ptr::null_mut()) };
            tell.send(()).expect("it waits");
            take.recv().map(serve)
        });
        ready.recv().expect("a thread");
        let (one, none): (c_long, c_long) = (1, 0);
        // SAFETY: four numbers, as this option takes them.
        assert_eq!(unsafe { prctl(PR_SET_NO_NEW_PRIVS, one, none, none, none) }, 0);
        let instructions = program();
        let len = u16::try_from(instructions.len()).expect("short");
        let filter = Filter { len, instructions: instructions.as_ptr() };
        // SAFETY: a filter that the kernel copies and checks.
        let listener = unsafe { syscall(SECCOMP, MODE_FILTER, NEW_LISTENER, &raw const filter) };
        assert!(listener > 0, "no filter: {}", std::io::Error::last_os_error());
        give.send(c_int::try_from(listener).expect("a descriptor")).expect("the thread waits");
    });
}
