//! What a system call asks for, with its arguments by their types: numbers, descriptors, paths, flags.

use std::borrow::Cow;

use crate::recording::call::{CallKind, RecordedCall};

/// Why an ioctl is not replayed: FICLONE and its kin.
pub const SHARES_BLOCKS: &str = "it shares blocks of two files";
/// See above: any other one.
pub const CHANGES_A_FILE: &str = "it may change a file or its attributes";
/// Why a bind is not replayed.
pub const MAKES_A_SOCKET: &str = "it makes the name of a socket";

/// Why a lock is not in a recording.
pub const LOCK_FROM_POSITION: &str =
    "a lock whose place depends on the descriptor's position or the file's end";
/// See above.
pub const LOCK_NOT_SEEN: &str = "a lock whose place was not seen";

/// A descriptor as a call names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NamedDescriptor<'a> {
    /// The number; `None` for AT_FDCWD.
    pub number: Option<i32>,
    /// What whoever saw the call knows of it: a path, `pipe:[77]`.
    pub known: Option<&'a str>,
    /// That path is no name of it any more.
    pub is_gone: bool,
}

/// A path as a call names it.
#[derive(Debug, Clone, Default)]
pub struct NamedPath<'a> {
    /// Where a relative path begins; `None` for the directory of the thread.
    pub directory: Option<NamedDescriptor<'a>>,
    /// The path; `None` where nobody could read it.
    pub path: Option<Cow<'a, str>>,
    /// Nothing leads out of the directory (RESOLVE_IN_ROOT).
    pub in_root: bool,
    /// A link under the last name is followed, where the call would not do that (AT_SYMLINK_FOLLOW).
    pub follows: bool,
}

/// How a thread ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadEnd {
    /// Another thread or a signal ended it, or nobody knows: it may have waited until then.
    ByOthers,
    /// It called exit, and others of its process go on.
    ByItself,
    /// It called exit_group, or was the last one, or it was the program's first one and a signal ended it.
    WithProcess,
    /// It was the program's first one, and how others ended nobody knows.
    WithProgram,
}

/// How a new thread relates to the one that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sharing {
    /// CLONE_FILES.
    pub files: bool,
    /// CLONE_FS.
    pub directory: bool,
    /// CLONE_THREAD.
    pub process: bool,
}

/// What a call asks for. Of a [`RecordedCall`] in it, kind, offset, bytes and flags are set.
#[derive(Debug, Clone)]
pub enum FileOperation<'a> {
    /// fork, vfork, clone, clone3; the result is the new thread.
    Fork(Sharing),
    /// execve, execveat.
    Exec,
    /// chdir.
    EnterPath(NamedPath<'a>),
    /// chroot.
    EnterRoot(NamedPath<'a>),
    /// fchdir.
    EnterDescriptor(NamedDescriptor<'a>),
    /// getcwd: the answer.
    TellDirectory(Option<Cow<'a, str>>),
    /// exit, exit_group: what follows says more.
    End,
    /// close.
    Close(NamedDescriptor<'a>),
    /// close_range.
    CloseRange {
        /// The first number.
        first: i32,
        /// The last one.
        last: i32,
        /// CLOSE_RANGE_CLOEXEC: nothing is closed yet.
        on_exec: bool,
        /// CLOSE_RANGE_UNSHARE: of this thread alone.
        unshares: bool,
    },
    /// unshare: the thread has its own from now on of what is set.
    Unshare(Sharing),
    /// dup and its kin; the result is the new descriptor.
    Dup {
        /// The descriptor that is there.
        old: NamedDescriptor<'a>,
        /// The new one has FD_CLOEXEC.
        closes_on_exec: bool,
    },
    /// fcntl with F_SETFD.
    SetClosesOnExec {
        /// The descriptor.
        descriptor: NamedDescriptor<'a>,
        /// FD_CLOEXEC is set from now on, or not.
        closes_on_exec: bool,
    },
    /// A call on a descriptor.
    OnDescriptor(NamedDescriptor<'a>, RecordedCall),
    /// A call on neither a descriptor nor a path: sync.
    Everywhere(CallKind),
    /// open and its kin; the result is the descriptor.
    Open {
        /// The path.
        path: NamedPath<'a>,
        /// O_.. flags.
        flags: u32,
        /// What is open now, where whoever saw the call says it: a path without links.
        opened: Option<&'a str>,
    },
    /// A call on a path.
    OnPath(NamedPath<'a>, RecordedCall),
    /// A call on two paths.
    OnTwoPaths(NamedPath<'a>, NamedPath<'a>, RecordedCall),
    /// linkat of a descriptor: what is open gets a name.
    LinkDescriptor {
        /// The descriptor.
        descriptor: NamedDescriptor<'a>,
        /// The new name.
        link: NamedPath<'a>,
    },
    /// symlink and its kin.
    Symlink {
        /// The link.
        link: NamedPath<'a>,
        /// What is in it; `None` where nobody could read it.
        target: Option<Cow<'a, str>>,
    },
    /// No replay can make it, and why.
    NotReplayed(&'static str),
    /// No file notices it: memory, signals, threads, time or identity.
    NotAboutFiles,
    /// Anything else, counted under its name.
    Other,
}

/// A call that is over.
#[derive(Debug, Clone)]
pub struct SystemCall<'a> {
    /// Its thread.
    pub thread: u32,
    /// When it began.
    pub begin_ns: u64,
    /// How long it took; 0 where nobody knows.
    pub duration_ns: u64,
    /// Its name.
    pub name: &'a str,
    /// What it returned, or its errno, negative; `None` where nobody knows.
    pub result: Option<i64>,
    /// What it asked for.
    pub operation: FileOperation<'a>,
}

impl SystemCall<'_> {
    /// True where it returned no error.
    pub fn succeeded(&self) -> bool {
        self.result.is_some_and(|result| result >= 0)
    }

    /// The descriptor that it returned.
    pub fn new_descriptor(&self) -> Option<i32> {
        self.result.and_then(|result| i32::try_from(result).ok()).filter(|number| *number >= 0)
    }
}
