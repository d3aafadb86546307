//! Calls on descriptors and processes: what their text asks for. Of a read or write only numbers are taken, never the buffer.

use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::flags::{FADV_WILLNEED, O_CLOEXEC};
use crate::recording::system_calls::operation::{
    FileOperation, LOCK_FROM_POSITION, LOCK_NOT_SEEN, MAKES_A_SOCKET, NamedDescriptor, SHARES_BLOCKS,
    Sharing, SystemCall,
};
use crate::trace::import::LineProblem;

use super::arguments::{AskedLock, CallText, is_lock, lock_of, status, vector_bytes};
use super::line::TextCall;
use super::names::attributes_of;

/// True for calls that make a thread or process.
pub fn is_fork(name: &str) -> bool {
    matches!(name, "fork" | "vfork" | "clone" | "clone2" | "clone3")
}

/// What a new thread shares with the one that makes it, by the text of the call.
pub fn sharing(text: &str) -> Sharing {
    let has = |flag: &str| text.contains(flag);
    Sharing { files: has("CLONE_FILES"), directory: has("CLONE_FS"), process: has("CLONE_THREAD") }
}

/// A call by its text.
/// # Errors
/// Names the column of what cannot be read.
pub fn decode<'a>(
    thread: u32,
    begin_ns: u64,
    text: &'a str,
    call: &'a TextCall<'a>,
) -> Result<SystemCall<'a>, LineProblem> {
    let at = CallText { text, call };
    let operation = if call.is_restarted {
        FileOperation::NotReplayed("a signal interrupted it, and it began again")
    } else {
        operation(&at)?
    };
    let duration_ns = call.duration_ns.unwrap_or(0);
    Ok(SystemCall { thread, begin_ns, duration_ns, name: call.name, result: call.result, operation })
}

fn operation<'a>(at: &CallText<'a>) -> Result<FileOperation<'a>, LineProblem> {
    if let Some(operation) = about_processes(at)? {
        return Ok(operation);
    }
    if let Some(operation) = about_descriptors(at)? {
        return Ok(operation);
    }
    Ok(at.about_names()?.unwrap_or_else(|| other(at)))
}

/// Calls that make, change or end processes.
fn about_processes<'a>(at: &CallText<'a>) -> Result<Option<FileOperation<'a>>, LineProblem> {
    Ok(Some(match at.call.name {
        name if is_fork(name) => FileOperation::Fork(sharing(at.text)),
        "execve" | "execveat" => FileOperation::Exec,
        "unshare" => {
            let has = |flag: &str| at.text.contains(flag);
            let directory = ["CLONE_FS", "CLONE_NEWNS", "CLONE_NEWUSER"].into_iter().any(has);
            FileOperation::Unshare(Sharing { files: has("CLONE_FILES"), directory, process: false })
        }
        "chdir" if at.succeeded() => FileOperation::EnterPath(at.path(None, 0)?),
        "chroot" if at.succeeded() => FileOperation::EnterRoot(at.path(None, 0)?),
        "fchdir" if at.succeeded() => FileOperation::EnterDescriptor(at.descriptor(0)?),
        "getcwd" if at.succeeded() => FileOperation::TellDirectory(at.quoted(0)?),
        "chdir" | "chroot" | "fchdir" | "getcwd" | "exit" | "exit_group" => FileOperation::End,
        _ => return Ok(None),
    }))
}

fn about_descriptors<'a>(at: &CallText<'a>) -> Result<Option<FileOperation<'a>>, LineProblem> {
    let kind = match at.call.name {
        "close" => return Ok(Some(FileOperation::Close(at.descriptor(0)?))),
        "close_range" => return close_range(at).map(Some),
        "dup" | "dup2" | "dup3" => {
            let flags = if at.call.name == "dup3" { at.flags(2)? } else { 0 };
            let closes_on_exec = flags & O_CLOEXEC != 0;
            return Ok(Some(FileOperation::Dup { old: at.descriptor(0)?, closes_on_exec }));
        }
        "fcntl" | "fcntl64" => return fcntl(at),
        "read" => CallKind::Read,
        "pread64" | "pread" => CallKind::Pread,
        "readv" => CallKind::Readv,
        "preadv" | "preadv2" => CallKind::Preadv,
        "write" => CallKind::Write,
        "pwrite64" | "pwrite" => CallKind::Pwrite,
        "writev" => CallKind::Writev,
        "pwritev" | "pwritev2" => CallKind::Pwritev,
        "lseek" | "_llseek" => CallKind::Lseek,
        "fsync" => CallKind::Fsync,
        "fdatasync" => CallKind::Fdatasync,
        "sync_file_range" => CallKind::SyncFileRange,
        "syncfs" => CallKind::Syncfs,
        "ftruncate" | "ftruncate64" => CallKind::Ftruncate,
        "fallocate" => CallKind::Fallocate,
        "fstat" | "fstat64" => CallKind::Fstat,
        "fchmod" | "fchown" | "fchown32" => CallKind::FsetAttributes,
        "fadvise64" | "fadvise64_64" | "readahead" => CallKind::Fadvise,
        "sync" => return Ok(Some(FileOperation::Everywhere(CallKind::Sync))),
        _ => return Ok(None),
    };
    on_descriptor(at, kind).map(Some)
}

/// A call whose first argument is a descriptor.
fn on_descriptor<'a>(at: &CallText<'a>, kind: CallKind) -> Result<FileOperation<'a>, LineProblem> {
    let mut row = RecordedCall { kind, ..RecordedCall::default() };
    let unsigned = |index| at.number(index).map(i64::cast_unsigned);
    match kind {
        CallKind::Read | CallKind::Write => row.bytes = unsigned(2)?,
        CallKind::Pread | CallKind::Pwrite => (row.bytes, row.offset) = (unsigned(2)?, unsigned(3)?),
        CallKind::Readv | CallKind::Writev | CallKind::Preadv | CallKind::Pwritev => {
            // strace leaves buffers out of long lists (`-s`): then it is no less than was moved.
            let moved = at.call.result.and_then(|moved| u64::try_from(moved).ok());
            row.bytes = vector_bytes(at.argument(1)?).unwrap_or(0).max(moved.unwrap_or(0));
            if matches!(kind, CallKind::Preadv | CallKind::Pwritev) {
                row.offset = unsigned(3)?;
                row.flags = if at.call.name.ends_with('2') { at.flags(4)? } else { 0 };
            }
        }
        CallKind::Lseek => {
            let is_old = at.call.name == "_llseek";
            (row.offset, row.flags) = (unsigned(1)?, at.flags(if is_old { 3 } else { 2 })?);
        }
        CallKind::SyncFileRange => {
            (row.offset, row.bytes, row.flags) = (unsigned(1)?, unsigned(2)?, at.flags(3)?);
        }
        CallKind::Ftruncate => row.bytes = unsigned(1)?,
        CallKind::Fallocate => {
            (row.flags, row.offset, row.bytes) = (at.flags(1)?, unsigned(2)?, unsigned(3)?);
        }
        CallKind::Fstat => (row.flags, row.bytes) = status(at.argument(1)?),
        CallKind::FsetAttributes => row.flags = attributes_of(at.call.name),
        CallKind::Fadvise => {
            (row.offset, row.bytes) = (unsigned(1)?, unsigned(2)?);
            row.flags = if at.call.name == "readahead" { FADV_WILLNEED } else { at.flags(3)? };
        }
        _ => {}
    }
    Ok(FileOperation::OnDescriptor(at.descriptor(0)?, row))
}

fn close_range<'a>(at: &CallText<'a>) -> Result<FileOperation<'a>, LineProblem> {
    let number = |index| at.number(index).map(|number| i32::try_from(number).unwrap_or(i32::MAX));
    let flags = at.flags(2)?;
    let (unshares, on_exec) = (flags & 2 != 0, flags & 4 != 0);
    Ok(FileOperation::CloseRange { first: number(0)?, last: number(1)?, on_exec, unshares })
}

fn fcntl<'a>(at: &CallText<'a>) -> Result<Option<FileOperation<'a>>, LineProblem> {
    let old = at.descriptor(0)?;
    Ok(match at.argument(1)? {
        "F_DUPFD" => Some(FileOperation::Dup { old, closes_on_exec: false }),
        "F_DUPFD_CLOEXEC" => Some(FileOperation::Dup { old, closes_on_exec: true }),
        "F_SETFD" => {
            let closes_on_exec = at.argument(2)?.contains("FD_CLOEXEC");
            Some(FileOperation::SetClosesOnExec { descriptor: old, closes_on_exec })
        }
        "F_SETFL" => {
            let row =
                RecordedCall { kind: CallKind::SetFlags, flags: at.flags(2)?, ..RecordedCall::default() };
            Some(FileOperation::OnDescriptor(old, row))
        }
        command if is_lock(command) => Some(lock(old, at.argument(2)?)),
        _ => None,
    })
}

/// A lock of the process or of the open file description, or its end.
fn lock<'a>(descriptor: NamedDescriptor<'a>, asked: &str) -> FileOperation<'a> {
    match lock_of(asked) {
        None => FileOperation::NotReplayed(LOCK_NOT_SEEN),
        Some(AskedLock { is_absolute: false, .. }) => FileOperation::NotReplayed(LOCK_FROM_POSITION),
        Some(AskedLock { kind, start, length, .. }) => {
            FileOperation::OnDescriptor(descriptor, RecordedCall::lock(kind, start, length))
        }
    }
}

fn other<'a>(at: &CallText<'a>) -> FileOperation<'a> {
    let arguments = &at.call.arguments;
    let is_of_a_file =
        at.call.name.starts_with("mmap") && arguments.get(4).is_some_and(|word| !word.starts_with('-'));
    let has = |index: usize, flag: &str| arguments.get(index).is_some_and(|word| word.contains(flag));
    match (is_of_a_file, has(2, "PROT_WRITE") && has(3, "MAP_SHARED")) {
        (true, true) => FileOperation::NotReplayed("writes through it are not seen"),
        (true, false) => FileOperation::NotReplayed("reads through it are not seen"),
        _ if at.call.name.starts_with("io_uring_") || at.call.name == "io_submit" => {
            FileOperation::NotReplayed("reads and writes through it are not seen")
        }
        _ if is_not_about_files(at.call.name) => FileOperation::NotAboutFiles,
        _ if at.call.name == "ioctl" && has(1, "CLONE") | has(1, "FIDEDUPERANGE") => {
            FileOperation::NotReplayed(SHARES_BLOCKS)
        }
        _ if at.call.name == "bind" && has(1, "sun_path=\"") => FileOperation::NotReplayed(MAKES_A_SOCKET),
        _ => FileOperation::Other,
    }
}
/// Calls of every program that no file notices. What is missing here is counted under its own name.
fn is_not_about_files(name: &str) -> bool {
    let begins =
        ["rt_sig", "sched_", "clock_", "get", "set_", "futex", "pkey_", "timer_", "mlock", "munlock"];
    let names = [
        "alarm",
        "arch_prctl",
        "brk",
        "kill",
        "madvise",
        "membarrier",
        "mprotect",
        "mremap",
        "munmap",
        "nanosleep",
        "pause",
        "prctl",
        "prlimit64",
        "rseq",
        "sigaltstack",
        "sysinfo",
        "tgkill",
        "time",
        "times",
        "tkill",
        "umask",
        "uname",
        "wait4",
        "waitid",
    ];
    let is_of_directories = name.starts_with("getdents") || name.ends_with("xattr");
    !is_of_directories && (names.contains(&name) || begins.iter().any(|begin| name.starts_with(begin)))
}
