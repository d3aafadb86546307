//! ptrace(2), waitpid(2) and process_vm_readv(2) as safe functions.
//!
//! nix has them too, but refuses real-time signals, with which the C library changes user ids and cancels threads.

use std::io;
use std::time::Duration;

/// A thread's number.
pub type Tid = libc::pid_t;

/// What a thread stops at besides calls.
pub const OPTIONS: libc::c_int = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC;
/// Also at what the seccomp filter names. Without a tracer those calls fail, so that no process shall outlive this one.
pub const OPTIONS_WITH_FILTER: libc::c_int = OPTIONS | libc::PTRACE_O_TRACESECCOMP | libc::PTRACE_O_EXITKILL;

/// A request without an answer. `data`: what it takes, a number.
fn request(what: libc::c_uint, thread: Tid, data: usize) -> io::Result<()> {
    // SAFETY: none of the requests below writes to this process's memory; the kernel checks thread and numbers.
    let result = unsafe { libc::ptrace(what, thread, std::ptr::null_mut::<libc::c_void>(), data) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Becomes the tracer of a thread, which goes on.
/// # Errors
/// As ptrace(2).
pub fn seize(thread: Tid, options: libc::c_int) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, thread, usize::try_from(options).unwrap_or(0))
}

/// Lets a stopped thread go on, with this signal, 0 for none; `to_call`: to the begin or end of its next call.
/// # Errors
/// As ptrace(2); a thread that was killed meanwhile is not there.
pub fn go_on(thread: Tid, signal: libc::c_int, to_call: bool) -> io::Result<()> {
    let what = if to_call { libc::PTRACE_SYSCALL } else { libc::PTRACE_CONT };
    request(what, thread, usize::try_from(signal).unwrap_or(0))
}

/// Leaves a thread stopped, as job control wants it, until SIGCONT.
/// # Errors
/// As ptrace(2).
pub fn listen(thread: Tid) -> io::Result<()> {
    request(libc::PTRACE_LISTEN, thread, 0)
}

/// Stops a thread.
/// # Errors
/// As ptrace(2).
pub fn interrupt(thread: Tid) -> io::Result<()> {
    request(libc::PTRACE_INTERRUPT, thread, 0)
}

/// Is no longer the tracer of a stopped thread, which goes on with this signal.
/// # Errors
/// As ptrace(2).
pub fn detach(thread: Tid, signal: libc::c_int) -> io::Result<()> {
    request(libc::PTRACE_DETACH, thread, usize::try_from(signal).unwrap_or(0))
}

/// What belongs to a stop: of a fork the new thread, of an exec the thread's number before.
pub fn event_message(thread: Tid) -> Option<u32> {
    let mut message: libc::c_ulong = 0;
    let nothing = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: the request writes one unsigned long, which `message` is.
    let result = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, thread, nothing, &raw mut message) };
    if result < 0 { None } else { u32::try_from(message).ok() }
}

/// The call at which a thread stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallStop {
    /// At its begin.
    Begin {
        /// The architecture whose call it is (AUDIT_ARCH_..).
        architecture: u32,
        /// Its number.
        number: u64,
        /// Its arguments.
        arguments: [u64; 6],
    },
    /// At its end: what it returns, or its errno, negative.
    End(i64),
    /// At none.
    None,
}

/// Words of `struct ptrace_syscall_info`, which is the same on every architecture.
const INFO_WORDS: usize = 11;

/// Asks at which call a thread stopped.
pub fn call_stop(thread: Tid) -> CallStop {
    let mut words = [0_u64; INFO_WORDS];
    // SAFETY: the request writes as many bytes as the third argument says, which `words` has.
    let result = unsafe {
        libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, thread, size_of_val(&words), words.as_mut_ptr())
    };
    let bytes = words[0].to_ne_bytes();
    let architecture = u32::from_ne_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
    match bytes[0] {
        _ if result < 0 => CallStop::None,
        libc::PTRACE_SYSCALL_INFO_ENTRY | libc::PTRACE_SYSCALL_INFO_SECCOMP => CallStop::Begin {
            architecture,
            number: words[3],
            arguments: [words[4], words[5], words[6], words[7], words[8], words[9]],
        },
        libc::PTRACE_SYSCALL_INFO_EXIT => CallStop::End(words[3].cast_signed()),
        _ => CallStop::None,
    }
}

/// The next stop or end of any child or traced thread that waits to be told; `None` where nobody has one now.
/// # Errors
/// ECHILD where there is nobody left.
pub fn next_status() -> io::Result<Option<(Tid, libc::c_int)>> {
    status_of(-1)
}

fn status_of(thread: Tid) -> io::Result<Option<(Tid, libc::c_int)>> {
    let mut status = 0;
    // SAFETY: writes one int, which `status` is.
    let found = unsafe { libc::waitpid(thread, &raw mut status, libc::__WALL | libc::WNOHANG) };
    match found {
        0 => Ok(None),
        1.. => Ok(Some((found, status))),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The next stop of this child, as the status of waitpid(2), but not its end: who started it waits for that.
pub fn next_stop(child: Tid) -> Option<libc::c_int> {
    // SAFETY: siginfo_t is plain data for which all zeros is a valid value.
    let mut told: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let how = libc::WSTOPPED | libc::WNOHANG | libc::__WALL;
    let id = libc::id_t::try_from(child).unwrap_or(0);
    // SAFETY: writes one siginfo_t, which `told` is.
    let result = unsafe { libc::waitid(libc::P_PID, id, &raw mut told, how) };
    // SAFETY: waitid filled it, or left the zeros.
    let found = unsafe { told.si_pid() };
    // SAFETY: as above.
    let status = unsafe { told.si_status() };
    (result == 0 && found == child).then_some(status << 8 | 0x7f)
}

/// SIGCHLD waits until it is fetched, so that none is missed between a look and a nap.
#[derive(Debug)]
pub struct ChildSignals {
    set: libc::sigset_t,
    before: libc::sigset_t,
}

impl ChildSignals {
    /// Keeps them for this thread.
    pub fn keep() -> Self {
        // SAFETY: sigset_t is plain data for which all zeros is a valid value.
        let mut signals = Self { set: unsafe { std::mem::zeroed() }, before: unsafe { std::mem::zeroed() } };
        // SAFETY: `set` is a whole sigset_t.
        unsafe { libc::sigaddset(&raw mut signals.set, libc::SIGCHLD) };
        // SAFETY: both are whole sigset_t.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals.set, &raw mut signals.before) };
        signals
    }

    /// Sleeps until there is one, another signal comes, or the time is over.
    pub fn nap(&self, time: Duration) {
        let seconds = libc::time_t::try_from(time.as_secs()).unwrap_or(0);
        let time = libc::timespec { tv_sec: seconds, tv_nsec: time.subsec_nanos().into() };
        // SAFETY: set and time are whole, what came is not asked for.
        unsafe { libc::sigtimedwait(&raw const self.set, std::ptr::null_mut(), &raw const time) };
    }
}

impl Drop for ChildSignals {
    fn drop(&mut self) {
        // SAFETY: `before` is what pthread_sigmask wrote.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut()) };
    }
}

/// Reads memory of a thread; how many bytes could be.
pub fn read_memory(thread: Tid, address: u64, room: &mut [u8]) -> usize {
    let Ok(from) = usize::try_from(address) else { return 0 };
    let own = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
    let other = libc::iovec { iov_base: std::ptr::without_provenance_mut(from), iov_len: room.len() };
    // SAFETY: writes at most `room.len()` bytes to `room`; the kernel checks the other process's addresses.
    let read = unsafe { libc::process_vm_readv(thread, &raw const own, 1, &raw const other, 1, 0) };
    usize::try_from(read).unwrap_or(0)
}

/// Asks a process to end, or makes it.
pub fn send(process: Tid, signal: libc::c_int) {
    // SAFETY: kill takes any numbers; the process is traced and was not waited for, so the number is its own.
    unsafe { libc::kill(process, signal) };
}
