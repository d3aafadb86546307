//! Counts the calls for durability that this process makes, whoever in it makes them: SQLite, an extension, its
//! threads.
//!
//! A seccomp filter reports each such call to a thread of ours, which counts it and lets it go on. No privilege, no
//! tracer, and unlike replaced functions it sees raw system calls too. It costs a switch of threads for each
//! call, so it never runs while a clock does.
//! Source: seccomp_unotify(2); the calls are let through unchanged, so the races it warns of do not matter here.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use joj_analysis::run::SyncCount;

/// The calls to report: their numbers, and which count each belongs to.
const CALLS: [(libc::c_long, usize); 7] = [
    (libc::SYS_fsync, 0),
    (libc::SYS_fdatasync, 1),
    (libc::SYS_pwritev2, 2),
    (libc::SYS_sync_file_range, 3),
    (libc::SYS_msync, 3),
    (libc::SYS_syncfs, 3),
    (libc::SYS_sync, 3),
];

const RWF_DSYNC: u64 = 2;
const RWF_SYNC: u64 = 4;

/// The counts so far; it counts for the rest of the process's life.
#[derive(Debug, Clone)]
pub struct SyncCounter {
    counts: Arc<[AtomicU64; 4]>,
}

impl SyncCounter {
    /// Counts from now on what this thread, and every thread it starts later, calls.
    /// # Errors
    /// Where the kernel (before 5.5) or a container's rules refuse; nothing is counted then.
    pub fn start() -> io::Result<SyncCounter> {
        let counter = SyncCounter { counts: Arc::default() };
        let counts = Arc::clone(&counter.counts);
        let (sender, receiver) = mpsc::channel::<OwnedFd>();
        // Started before the filter is, or its own calls would wait for itself.
        thread::spawn(move || {
            if let Ok(listener) = receiver.recv() {
                count_forever(&listener, &counts);
            }
        });
        let listener = install_filter()?;
        sender.send(listener).map_err(io::Error::other)?;
        Ok(counter)
    }

    /// What was counted so far, for `transactions`.
    pub fn counted(&self, transactions: u64) -> SyncCount {
        let at = |index: usize| self.counts[index].load(Ordering::SeqCst);
        SyncCount { transactions, fsync: at(0), fdatasync: at(1), durable_writes: at(2), other: at(3) }
    }

    /// Starts over.
    pub fn reset(&self) {
        self.counts.iter().for_each(|count| count.store(0, Ordering::SeqCst));
    }
}

/// One instruction of the filter's language (classic BPF).
fn instruction(code: u32, jump_true: u8, jump_false: u8, value: u32) -> libc::sock_filter {
    let code = u16::try_from(code).unwrap_or(u16::MAX);
    libc::sock_filter { code, jt: jump_true, jf: jump_false, k: value }
}

/// Load the call's number; report if it is one of `CALLS`; allow the rest.
fn program() -> Vec<libc::sock_filter> {
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let jump = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let answer = libc::BPF_RET | libc::BPF_K;
    let mut program = vec![instruction(load, 0, 0, 0)];
    for (index, (number, _)) in CALLS.iter().enumerate() {
        // To the last instruction: past the calls still to compare and past the "allow".
        let distance = u8::try_from(CALLS.len() - index).unwrap_or(u8::MAX);
        program.push(instruction(jump, distance, 0, u32::try_from(*number).unwrap_or(u32::MAX)));
    }
    program.push(instruction(answer, 0, 0, libc::SECCOMP_RET_ALLOW));
    program.push(instruction(answer, 0, 0, libc::SECCOMP_RET_USER_NOTIF));
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

fn count_forever(listener: &OwnedFd, counts: &[AtomicU64; 4]) {
    let receive = libc::_IOWR::<libc::seccomp_notif>(u32::from(b'!'), 0);
    let send = libc::_IOWR::<libc::seccomp_notif_resp>(u32::from(b'!'), 1);
    loop {
        // SAFETY: plain numbers; the kernel even demands zeros.
        let mut notice: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the request writes a seccomp_notif, which `notice` is.
        let received = unsafe { libc::ioctl(listener.as_raw_fd(), receive, &raw mut notice) };
        if received != 0 {
            let error = io::Error::last_os_error();
            // ENOENT: the caller was killed meanwhile. Anything else will not get better.
            if matches!(error.raw_os_error(), Some(libc::EINTR | libc::ENOENT)) {
                continue;
            }
            return;
        }
        count(&notice.data, counts);
        let mut answer = libc::seccomp_notif_resp {
            id: notice.id,
            val: 0,
            error: 0,
            flags: u32::try_from(libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE).unwrap_or(1),
        };
        // SAFETY: the request reads a seccomp_notif_resp, which `answer` is.
        unsafe { libc::ioctl(listener.as_raw_fd(), send, &raw mut answer) };
    }
}

fn count(call: &libc::seccomp_data, counts: &[AtomicU64; 4]) {
    let number = libc::c_long::from(call.nr);
    let Some((_, index)) = CALLS.iter().find(|(known, _)| *known == number) else { return };
    let is_plain_write = number == libc::SYS_pwritev2 && call.args[5] & (RWF_DSYNC | RWF_SYNC) == 0;
    if !is_plain_write {
        counts[*index].fetch_add(1, Ordering::SeqCst);
    }
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
            let counter = SyncCounter::start()?;
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
}
