//! A captured call by its types.

use std::borrow::Cow;

use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::flags::{FADV_WILLNEED, O_CLOEXEC, O_CREAT, O_TRUNC, RESOLVE_IN_ROOT};
use crate::recording::paths::text_of;
use crate::recording::system_calls::operation::{
    FileOperation, NamedDescriptor, NamedPath, Sharing, SystemCall,
};

use crate::recording::system_calls::operation::{
    CHANGES_A_FILE, LOCK_FROM_POSITION, LOCK_NOT_SEEN, MAKES_A_SOCKET, SHARES_BLOCKS,
};

use super::called::{AT_EMPTY_PATH, CalledName, commands};
use super::{CallSeen, CapturedCall, DescriptorKind};

/// ERESTARTSYS to ERESTART_RESTARTBLOCK: what only a tracer sees.
const RESTARTS: std::ops::RangeInclusive<i64> = -516..=-512;
const AT_FDCWD: i32 = -100;
const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
const AT_SYMLINK_FOLLOW: u64 = 0x400;
const AT_REMOVEDIR: u64 = 0x200;
const CLOSE_RANGE_UNSHARE: u64 = 2;
const CLOSE_RANGE_CLOEXEC: u64 = 4;
const CLONE_FS: u64 = 0x200;
const CLONE_FILES: u64 = 0x400;
/// A mount namespace, or a user namespace, of its own brings a directory of its own (unshare(2)).
const CLONE_NEWNS: u64 = 0x2_0000;
const CLONE_NEWUSER: u64 = 0x1000_0000;
const FD_CLOEXEC: u64 = 1;
const AF_UNIX: u32 = 1;
const MAP_SHARED_AND_ANOTHER: u64 = 3;
const PROT_WRITE: u64 = 2;

/// What the call asked for, as the rows of a recording are made of it.
pub fn decode(call: &CapturedCall) -> SystemCall<'_> {
    let operation = if RESTARTS.contains(&call.result) {
        FileOperation::NotReplayed("a signal interrupted it, and it began again")
    } else {
        operation(call)
    };
    SystemCall {
        thread: call.thread,
        begin_ns: call.begin_ns,
        duration_ns: call.end_ns.saturating_sub(call.begin_ns),
        name: call.called.text(),
        result: Some(call.result),
        operation,
    }
}

fn operation(call: &CapturedCall) -> FileOperation<'_> {
    let argument = |index: usize| call.arguments[index];
    match call.called {
        CalledName::Sync => FileOperation::Everywhere(CallKind::Sync),
        CalledName::Close => FileOperation::Close(call.own_descriptor()),
        CalledName::CloseRange => FileOperation::CloseRange {
            first: i32::try_from(low(argument(0))).unwrap_or(i32::MAX),
            last: i32::try_from(low(argument(1))).unwrap_or(i32::MAX),
            on_exec: argument(2) & CLOSE_RANGE_CLOEXEC != 0,
            unshares: argument(2) & CLOSE_RANGE_UNSHARE != 0,
        },
        CalledName::Unshare => FileOperation::Unshare(unshared(argument(0))),
        CalledName::Dup | CalledName::Dup2 => {
            FileOperation::Dup { old: call.own_descriptor(), closes_on_exec: false }
        }
        CalledName::Dup3 => FileOperation::Dup {
            old: call.own_descriptor(),
            closes_on_exec: low(argument(2)) & O_CLOEXEC != 0,
        },
        CalledName::Fcntl => fcntl(call),
        CalledName::Ioctl if commands::is_about_descriptor(argument(1)) => FileOperation::SetClosesOnExec {
            descriptor: call.own_descriptor(),
            closes_on_exec: u64::from(low(argument(1))) == commands::FIOCLEX,
        },
        CalledName::Ioctl | CalledName::Bind if call.result < 0 => FileOperation::NotReplayed("it failed"),
        CalledName::Ioctl if commands::SHARING.contains(&u64::from(low(argument(1)))) => {
            FileOperation::NotReplayed(SHARES_BLOCKS)
        }
        CalledName::Ioctl => FileOperation::NotReplayed(CHANGES_A_FILE),
        CalledName::Bind if call.binds_a_name() => FileOperation::NotReplayed(MAKES_A_SOCKET),
        CalledName::Bind => FileOperation::NotAboutFiles,
        CalledName::Chdir => FileOperation::EnterPath(call.path(0, None)),
        CalledName::Chroot => FileOperation::EnterRoot(call.path(0, None)),
        CalledName::Fchdir => FileOperation::EnterDescriptor(call.own_descriptor()),
        CalledName::Mmap if argument(3) & MAP_SHARED_AND_ANOTHER != 2 && argument(2) & PROT_WRITE != 0 => {
            FileOperation::NotReplayed("writes through it are not seen")
        }
        CalledName::Mmap => FileOperation::NotReplayed("reads through it are not seen"),
        CalledName::IoUringEnter | CalledName::IoUringSetup | CalledName::IoSubmit => {
            FileOperation::NotReplayed("reads and writes through it are not seen")
        }
        called if called.is_only_counted() => FileOperation::Other,
        called if called.needs_a_file() => on_descriptor(call),
        called if called.opens() => open(call),
        _ => about_names(call),
    }
}

/// What a thread has of its own after `unshare`.
fn unshared(flags: u64) -> Sharing {
    let directory = flags & (CLONE_FS | CLONE_NEWNS | CLONE_NEWUSER) != 0;
    Sharing { files: flags & CLONE_FILES != 0, directory, process: false }
}

fn fcntl(call: &CapturedCall) -> FileOperation<'_> {
    let descriptor = call.own_descriptor();
    match call.arguments[1] {
        commands::F_DUPFD => FileOperation::Dup { old: descriptor, closes_on_exec: false },
        commands::F_DUPFD_CLOEXEC => FileOperation::Dup { old: descriptor, closes_on_exec: true },
        commands::F_SETFD => {
            let closes_on_exec = call.arguments[2] & FD_CLOEXEC != 0;
            FileOperation::SetClosesOnExec { descriptor, closes_on_exec }
        }
        commands::F_SETFL => {
            let row = RecordedCall {
                kind: CallKind::SetFlags,
                flags: low(call.arguments[2]),
                ..RecordedCall::default()
            };
            FileOperation::OnDescriptor(descriptor, row)
        }
        command if commands::LOCKS.contains(&command) => match call.seen {
            CallSeen::Lock { kind, whence: 0, start, length } => {
                FileOperation::OnDescriptor(descriptor, RecordedCall::lock(kind, start, length))
            }
            CallSeen::Lock { .. } => FileOperation::NotReplayed(LOCK_FROM_POSITION),
            _ => FileOperation::NotReplayed(LOCK_NOT_SEEN),
        },
        _ => FileOperation::Other,
    }
}

fn on_descriptor(call: &CapturedCall) -> FileOperation<'_> {
    let kind = call.called.kind_on_a_descriptor();
    let mut row = RecordedCall { kind, ..RecordedCall::default() };
    let argument = |index: usize| call.arguments[index];
    match kind {
        CallKind::Read | CallKind::Write => row.bytes = argument(2),
        CallKind::Pread | CallKind::Pwrite => (row.bytes, row.offset) = (argument(2), argument(3)),
        CallKind::Readv | CallKind::Writev | CallKind::Preadv | CallKind::Pwritev => {
            row.bytes = match call.seen {
                CallSeen::Length(bytes) => bytes,
                _ => u64::try_from(call.result).unwrap_or(0),
            };
            if let Some(index) = call.called.offset_argument() {
                row.offset = argument(index);
            }
            if matches!(call.called, CalledName::Preadv2 | CalledName::Pwritev2) {
                row.flags = low(argument(5));
            }
        }
        CallKind::Lseek => (row.offset, row.flags) = (argument(1), low(argument(2))),
        CallKind::SyncFileRange => {
            (row.offset, row.bytes, row.flags) = (argument(1), argument(2), low(argument(3)));
        }
        CallKind::Ftruncate => row.bytes = argument(1),
        CallKind::Fallocate => {
            (row.flags, row.offset, row.bytes) = (low(argument(1)), argument(2), argument(3));
        }
        CallKind::Fstat => (row.flags, row.bytes) = call.status(),
        CallKind::FsetAttributes => row.flags = call.called.attributes(),
        CallKind::Fadvise => {
            let is_readahead = call.called == CalledName::Readahead;
            let advice = if is_readahead { FADV_WILLNEED } else { low(argument(3)) };
            (row.offset, row.bytes, row.flags) = (argument(1), argument(2), advice);
        }
        _ => {}
    }
    FileOperation::OnDescriptor(call.own_descriptor(), row)
}

fn open(call: &CapturedCall) -> FileOperation<'_> {
    let (directory, flags) = match call.called {
        CalledName::Open => (None, low(call.arguments[1])),
        CalledName::Creat => (None, O_CREAT | O_TRUNC | 1),
        CalledName::Openat2 => (Some(0), low(call.open_how.flags)),
        _ => (Some(0), low(call.arguments[2])),
    };
    let opened = match call.seen {
        CallSeen::Opened { mode, .. } => known(DescriptorKind::of_mode(mode)),
        _ => None,
    };
    let in_root = call.open_how.resolve & RESOLVE_IN_ROOT != 0;
    let path = NamedPath { in_root, ..call.path(0, directory) };
    FileOperation::Open { path, flags, opened }
}

fn about_names(call: &CapturedCall) -> FileOperation<'_> {
    let row = |kind| RecordedCall { kind, ..RecordedCall::default() };
    let argument = |index: usize| call.arguments[index];
    let on = |directory: Option<usize>, row| FileOperation::OnPath(call.path(0, directory), row);
    let two = |first, second, row| FileOperation::OnTwoPaths(call.path(0, first), call.path(1, second), row);
    match call.called {
        CalledName::Truncate => on(None, RecordedCall { bytes: argument(1), ..row(CallKind::Truncate) }),
        CalledName::Stat => on(None, call.of_status(CallKind::Stat)),
        CalledName::Lstat => on(None, call.of_status(CallKind::Lstat)),
        CalledName::Newfstatat => status_at(call, argument(3)),
        CalledName::Statx => status_at(call, argument(2)),
        CalledName::Access => on(None, RecordedCall { flags: low(argument(1)), ..row(CallKind::Access) }),
        CalledName::Faccessat | CalledName::Faccessat2 => {
            on(Some(0), RecordedCall { flags: low(argument(2)), ..row(CallKind::Access) })
        }
        CalledName::Chmod | CalledName::Chown | CalledName::Lchown | CalledName::Utimes => {
            on(None, call.of_attributes(CallKind::SetAttributes, 0))
        }
        CalledName::Fchmodat | CalledName::Futimesat => attributes_at(call, 0),
        CalledName::Fchownat => attributes_at(call, argument(4)),
        CalledName::Fchmodat2 | CalledName::Utimensat => attributes_at(call, argument(3)),
        CalledName::Unlink => on(None, row(CallKind::Unlink)),
        CalledName::Unlinkat if argument(2) & AT_REMOVEDIR != 0 => on(Some(0), row(CallKind::Rmdir)),
        CalledName::Unlinkat => on(Some(0), row(CallKind::Unlink)),
        CalledName::Mkdir => on(None, row(CallKind::Mkdir)),
        CalledName::Mkdirat => on(Some(0), row(CallKind::Mkdir)),
        CalledName::Rmdir => on(None, row(CallKind::Rmdir)),
        CalledName::Rename => two(None, None, row(CallKind::Rename)),
        CalledName::Renameat => two(Some(0), Some(2), row(CallKind::Rename)),
        CalledName::Renameat2 => {
            two(Some(0), Some(2), RecordedCall { flags: low(argument(4)), ..row(CallKind::Rename) })
        }
        CalledName::Link => two(None, None, row(CallKind::Link)),
        CalledName::Linkat => {
            let (first, second) = (call.path(0, Some(0)), call.path(1, Some(2)));
            let is_empty = call.paths[0].as_ref().is_some_and(Vec::is_empty);
            if is_empty && argument(4) & AT_EMPTY_PATH != 0 {
                return FileOperation::LinkDescriptor { descriptor: call.descriptor_at(0), link: second };
            }
            let follows = argument(4) & AT_SYMLINK_FOLLOW != 0;
            FileOperation::OnTwoPaths(NamedPath { follows, ..first }, second, row(CallKind::Link))
        }
        CalledName::Symlink => FileOperation::Symlink { link: call.path(1, None), target: call.text(0) },
        CalledName::Symlinkat => FileOperation::Symlink { link: call.path(1, Some(1)), target: call.text(0) },
        _ => FileOperation::Other,
    }
}

/// newfstatat and statx: of a path, of a link, or of the descriptor itself.
fn status_at(call: &CapturedCall, how: u64) -> FileOperation<'_> {
    // Since Linux 6.11 no path at all means the same as an empty one.
    if call.has_empty_path() && how & AT_EMPTY_PATH != 0 {
        return FileOperation::OnDescriptor(call.own_descriptor(), call.of_status(CallKind::Fstat));
    }
    let kind = if how & AT_SYMLINK_NOFOLLOW != 0 { CallKind::Lstat } else { CallKind::Stat };
    FileOperation::OnPath(call.path(0, Some(0)), call.of_status(kind))
}

/// Calls that set attributes: of a path, of a link, or of the descriptor itself, which needs no flag where there is no path (futimens).
fn attributes_at(call: &CapturedCall, how: u64) -> FileOperation<'_> {
    if call.has_empty_path() && (call.arguments[1] == 0 || how & AT_EMPTY_PATH != 0) {
        return FileOperation::OnDescriptor(
            call.own_descriptor(),
            call.of_attributes(CallKind::FsetAttributes, 0),
        );
    }
    FileOperation::OnPath(call.path(0, Some(0)), call.of_attributes(CallKind::SetAttributes, how))
}

impl CapturedCall {
    fn has_empty_path(&self) -> bool {
        self.paths[0].as_ref().map_or(self.arguments[1] == 0, Vec::is_empty)
    }

    fn of_attributes(&self, kind: CallKind, how: u64) -> RecordedCall {
        let link = if how & AT_SYMLINK_NOFOLLOW != 0 { RecordedCall::OF_LINK } else { 0 };
        RecordedCall { kind, flags: self.called.attributes() | link, ..RecordedCall::default() }
    }

    /// Its descriptor, with what the kernel said of it.
    fn own_descriptor(&self) -> NamedDescriptor<'static> {
        NamedDescriptor { known: known(self.descriptor), ..self.descriptor_at(0) }
    }

    fn descriptor_at(&self, index: usize) -> NamedDescriptor<'static> {
        let number = low(self.arguments[index]).cast_signed();
        NamedDescriptor { number: (number != AT_FDCWD).then_some(number), ..NamedDescriptor::default() }
    }

    fn text(&self, index: usize) -> Option<Cow<'_, str>> {
        self.paths[index].as_deref().map(text_of)
    }

    fn path(&self, index: usize, directory: Option<usize>) -> NamedPath<'_> {
        NamedPath {
            directory: directory.map(|directory| self.descriptor_at(directory)),
            path: self.text(index),
            ..NamedPath::default()
        }
    }

    /// The kind (S_IF..) and size that a `stat` returned; 0 where it failed.
    fn status(&self) -> (u32, u64) {
        match self.seen {
            CallSeen::Status { mode, bytes } if self.result == 0 => {
                (mode & crate::recording::flags::S_IFMT, bytes)
            }
            _ => (0, 0),
        }
    }

    /// True where the address of a `bind` is a path, which stands behind two bytes for its family.
    fn binds_a_name(&self) -> bool {
        match self.seen {
            CallSeen::Status { mode, .. } => {
                let (family, first) = (mode & 0xffff, mode >> 16 & 0xff);
                family == AF_UNIX && first != 0 && low(self.arguments[2]) > 2
            }
            _ => false,
        }
    }

    fn of_status(&self, kind: CallKind) -> RecordedCall {
        let (flags, bytes) = self.status();
        RecordedCall { kind, flags, bytes, ..RecordedCall::default() }
    }
}

/// What is no file, in the words of `calls`: a path of a device, or no path.
fn known(kind: DescriptorKind) -> Option<&'static str> {
    match kind {
        DescriptorKind::Device => Some("/dev"),
        DescriptorKind::Other => Some("pipe"),
        DescriptorKind::File | DescriptorKind::Unknown => None,
    }
}

/// The half of a register that an `int` is in.
pub(super) fn low(argument: u64) -> u32 {
    let [a, b, c, d, ..] = argument.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}
