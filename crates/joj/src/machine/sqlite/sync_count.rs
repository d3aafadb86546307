//! Counts the calls for durability that this process makes, whoever in it makes them: SQLite, an extension, its
//! threads. On demand it also makes each flush as slow as that of a slow device.
//!
//! A seccomp filter reports each such call to a thread of ours, which counts it and lets it go on. No privilege, no
//! tracer, and unlike replaced functions it sees raw system calls too. It costs a switch of threads for each
//! call, so it never runs while a clock does, except beside a slow device, which costs a hundred times as much.
//! Source: seccomp_unotify(2); the calls are let through unchanged, so the races it warns of do not matter here.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use joj_analysis::bench::run::SyncCount;

use crate::machine::proc::clock::{pause_until, shared_ns};
use crate::machine::proc::seccomp::{self, NUMBER_AT, argument_at, if_any_bit, if_equal, load};
use crate::machine::sqlite::slow_device::{SlowDevice, Span};

/// The calls to report always: their numbers, and which count each belongs to.
const CALLS: [(libc::c_long, usize); 6] = [
    (libc::SYS_fsync, 0),
    (libc::SYS_fdatasync, 1),
    (libc::SYS_sync_file_range, 3),
    (libc::SYS_msync, 3),
    (libc::SYS_syncfs, 3),
    (libc::SYS_sync, 3),
];

/// The count of pwritev2 with one of the flags below; without them it is not reported.
const DURABLE_WRITE: usize = 2;
const RWF_DSYNC: u32 = 2;
const RWF_SYNC: u32 = 4;

/// Counts of calls by kind, and the time in which calls are counted.
#[derive(Debug)]
struct Counts {
    calls: [AtomicU64; 4],
    from_ns: AtomicU64,
    until_ns: AtomicU64,
}

/// The counts so far; it counts for the rest of the process's life.
#[derive(Debug, Clone)]
pub struct SyncCounter {
    counts: Arc<Counts>,
}

/// A flush that waits for the slow device.
struct WaitingFlush {
    id: u64,
    call: libc::seccomp_data,
    span: Span,
}

impl SyncCounter {
    /// Counts from now on what this thread, and every thread it starts later, calls. With a `device`, flushes (fsync,
    /// fdatasync, pwritev2 with RWF_DSYNC or RWF_SYNC) take their turn there.
    /// # Errors
    /// Where the kernel (before 5.5) or a container's rules refuse; nothing is counted then.
    pub fn start(device: Option<SlowDevice>) -> io::Result<SyncCounter> {
        let counts = Counts {
            calls: Default::default(),
            from_ns: AtomicU64::new(0),
            until_ns: AtomicU64::new(u64::MAX),
        };
        let counter = SyncCounter { counts: Arc::new(counts) };
        let counts = Arc::clone(&counter.counts);
        let (sender, receiver) = mpsc::channel::<OwnedFd>();
        // Started before the filter is, or its own calls would wait for itself.
        thread::spawn(move || {
            if let Ok(listener) = receiver.recv() {
                listen(&Arc::new(listener), &counts, device);
            }
        });
        let listener = install_filter()?;
        sender.send(listener).map_err(io::Error::other)?;
        Ok(counter)
    }

    /// What was counted so far, for `transactions`.
    pub fn counted(&self, transactions: u64) -> SyncCount {
        let at = |index: usize| self.counts.calls[index].load(Ordering::SeqCst);
        SyncCount { transactions, fsync: at(0), fdatasync: at(1), durable_writes: at(2), other: at(3) }
    }

    /// Sets all counts to zero.
    pub fn reset(&self) {
        self.counts.calls.iter().for_each(|count| count.store(0, Ordering::SeqCst));
    }

    /// Starts over and counts only calls made while [`shared_ns`] is in `times_ns`. On a busy machine a thread that is to
    /// start and stop the counting wakes up 10 ms late.
    pub fn count_only(&self, times_ns: Range<u64>) {
        self.counts.from_ns.store(times_ns.start, Ordering::SeqCst);
        self.counts.until_ns.store(times_ns.end, Ordering::SeqCst);
        self.reset();
    }
}

/// Load the call's number; report if it is one of `CALLS`, or pwritev2 with a flag that makes it durable; allow the
/// rest.
fn program() -> Vec<libc::sock_filter> {
    let number_of = |call: libc::c_long| u32::try_from(call).unwrap_or(u32::MAX);
    let mut program = vec![load(NUMBER_AT)];
    for (index, (number, _)) in CALLS.iter().enumerate() {
        // To the last instruction: past the calls still to compare, the three about pwritev2 and the "allow".
        let distance = u8::try_from(CALLS.len() - index + 3).unwrap_or(u8::MAX);
        program.push(if_equal(number_of(*number), distance, 0));
    }
    program.push(if_equal(number_of(libc::SYS_pwritev2), 0, 2));
    // Its flags.
    program.push(load(argument_at(5)));
    program.push(if_any_bit(RWF_DSYNC | RWF_SYNC, 1, 0));
    program.push(seccomp::answer(libc::SECCOMP_RET_ALLOW));
    program.push(seccomp::answer(libc::SECCOMP_RET_USER_NOTIF));
    program
}

fn install_filter() -> io::Result<OwnedFd> {
    // An unprivileged process may filter itself only once it can no longer gain privilege.
    rustix::thread::set_no_new_privs(true)?;
    let mut program = program();
    let length = libc::c_ushort::try_from(program.len()).map_err(io::Error::other)?;
    let filter = libc::sock_fprog { len: length, filter: program.as_mut_ptr() };
    // SAFETY: `filter` points to `len` whole instructions that outlive the call; the kernel checks them.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const filter,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let descriptor = i32::try_from(result).map_err(io::Error::other)?;
    // SAFETY: the kernel has just made this descriptor for us and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Receives notices for ever. Flushes for the slow device go on to a thread of their own, so that no other call waits
/// behind them.
fn listen(listener: &Arc<OwnedFd>, counts: &Counts, device: Option<SlowDevice>) {
    let (queue, waiting) = mpsc::channel::<WaitingFlush>();
    if device.is_some() {
        let listener = Arc::clone(listener);
        thread::spawn(move || serve_flushes(&listener, &waiting));
    }
    while let Some(notice) = receive(listener) {
        let index = count(&notice.data, counts);
        match &device {
            Some(device) if index <= DURABLE_WRITE => {
                let span = device.reserve(shared_ns());
                // The other end lives as long as this process.
                let _ = queue.send(WaitingFlush { id: notice.id, call: notice.data, span });
            }
            _ => let_go_on(listener, notice.id),
        }
    }
}

/// The next notice; none where the filter is gone.
fn receive(listener: &OwnedFd) -> Option<libc::seccomp_notif> {
    let receive = libc::_IOWR::<libc::seccomp_notif>(u32::from(b'!'), 0);
    loop {
        // SAFETY: plain numbers; the kernel even demands zeros.
        let mut notice: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the request writes a seccomp_notif, which `notice` is.
        let received = unsafe { libc::ioctl(listener.as_raw_fd(), receive, &raw mut notice) };
        if received == 0 {
            return Some(notice);
        }
        let error = io::Error::last_os_error();
        // ENOENT: the caller was killed meanwhile. Anything else will not get better.
        if !matches!(error.raw_os_error(), Some(libc::EINTR | libc::ENOENT)) {
            return None;
        }
    }
}

fn answer(listener: &OwnedFd, mut answer: libc::seccomp_notif_resp) {
    let send = libc::_IOWR::<libc::seccomp_notif_resp>(u32::from(b'!'), 1);
    // SAFETY: the request reads a seccomp_notif_resp, which `answer` is. It fails where the caller was killed.
    unsafe { libc::ioctl(listener.as_raw_fd(), send, &raw mut answer) };
}

fn let_go_on(listener: &OwnedFd, id: u64) {
    let flags = u32::try_from(libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE).unwrap_or(1);
    answer(listener, libc::seccomp_notif_resp { id, val: 0, error: 0, flags });
}

/// Does the flushes of this process in the order of their spans, each inside its own.
fn serve_flushes(listener: &OwnedFd, waiting: &mpsc::Receiver<WaitingFlush>) {
    while let Ok(flush) = waiting.recv() {
        pause_until(flush.span.from_ns);
        let (val, error) = perform(&flush.call);
        pause_until(flush.span.to_ns);
        answer(listener, libc::seccomp_notif_resp { id: flush.id, val, error, flags: 0 });
    }
}

/// Makes the call in the caller's place: what it returned, and its error as the kernel has it, negative.
fn perform(call: &libc::seccomp_data) -> (i64, i32) {
    let [first, second, third, fourth, fifth, sixth] = call.args;
    // SAFETY: the very call that a thread of this process is in, with its arguments. That thread waits for our answer,
    // so what they point to stays as it is.
    let result =
        unsafe { libc::syscall(libc::c_long::from(call.nr), first, second, third, fourth, fifth, sixth) };
    match result {
        0.. => (result, 0),
        _ => (0, -io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)),
    }
}

/// Counts `call`; which count it was.
fn count(call: &libc::seccomp_data, counts: &Counts) -> usize {
    let number = libc::c_long::from(call.nr);
    let index = CALLS.iter().find(|(known, _)| *known == number).map_or(DURABLE_WRITE, |(_, index)| *index);
    let counted_ns = counts.from_ns.load(Ordering::SeqCst)..counts.until_ns.load(Ordering::SeqCst);
    if counted_ns.contains(&shared_ns()) {
        counts.calls[index].fetch_add(1, Ordering::SeqCst);
    }
    index
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    /// In a thread of its own: the filter stays on a thread until it ends.
    #[test]
    fn calls_for_durability_are_counted_by_kind() {
        let counted = thread::spawn(|| {
            let file = File::create(std::env::temp_dir().join(format!("joj-sync-{}", std::process::id())))?;
            let counter = SyncCounter::start(None)?;
            file.sync_all()?;
            counter.reset();
            file.sync_all()?;
            file.sync_data()?;
            file.sync_data()?;
            for flags in [rustix::io::ReadWriteFlags::DSYNC, rustix::io::ReadWriteFlags::empty()] {
                rustix::io::pwritev2(&file, &[io::IoSlice::new(b"x")], 0, flags)?;
            }
            io::Result::Ok(counter.counted(1))
        });
        let result = counted.join().unwrap();
        let _ = std::fs::remove_file(std::env::temp_dir().join(format!("joj-sync-{}", std::process::id())));
        match result {
            Ok(count) => assert_eq!(
                count,
                SyncCount { transactions: 1, fsync: 1, fdatasync: 2, durable_writes: 1, other: 0 }
            ),
            Err(error) => eprintln!("skipped: seccomp is refused here: {error}"),
        }
    }

    /// Two threads of one process: each flush has its own 5 ms, one after another, and what it returns is the kernel's.
    #[test]
    fn flushes_on_a_slow_device_wait_for_each_other() {
        const FLUSH_NS: u64 = 5_000_000;
        let path = std::env::temp_dir().join(format!("joj-slow-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        let slowed = thread::spawn(move || {
            let counter = SyncCounter::start(Some(SlowDevice::create(FLUSH_NS)?))?;
            let began_ns = shared_ns();
            thread::scope(|scope| {
                let flush = || (0..3).for_each(|_| file.sync_data().unwrap());
                scope.spawn(flush);
                scope.spawn(flush);
            });
            let took_ns = shared_ns() - began_ns;
            let flags = rustix::io::ReadWriteFlags::DSYNC;
            let written = rustix::io::pwritev2(&file, &[io::IoSlice::new(b"xyz")], 7, flags)?;
            let refused = rustix::fs::fdatasync(File::open("/dev/null")?).unwrap_err();
            let count = counter.counted(1);
            counter.count_only(0..shared_ns());
            file.sync_data()?;
            assert_eq!(counter.counted(0), SyncCount::default(), "after the time");
            io::Result::Ok((took_ns, written, refused, count))
        });
        let result = slowed.join().unwrap();
        let content = std::fs::read(&path);
        let _ = std::fs::remove_file(&path);
        match result {
            Ok((took_ns, written, refused, count)) => {
                assert!(took_ns >= 6 * FLUSH_NS, "six flushes took {took_ns} ns");
                assert_eq!((written, refused), (3, rustix::io::Errno::INVAL));
                assert_eq!((count.fdatasync, count.durable_writes), (7, 1));
                assert_eq!(content.unwrap(), b"\0\0\0\0\0\0\0xyz");
            }
            Err(error) => eprintln!("skipped: seccomp is refused here: {error}"),
        }
    }
}
