//! Calls that name files by their paths: what their text asks for.

use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::flags::{O_CREAT, O_TRUNC};
use crate::recording::system_calls::operation::{FileOperation, NamedPath};
use crate::trace::import::LineProblem;

use super::arguments::{CallText, how_flags, status};

/// Where the directory of a relative path and the path stand among the arguments.
type PathPlace = (Option<usize>, usize);

impl<'a> CallText<'a> {
    /// What a call asks for that names files; `None` where this is none.
    pub(super) fn about_names(&self) -> Result<Option<FileOperation<'a>>, LineProblem> {
        let kind = |kind| RecordedCall { kind, ..RecordedCall::default() };
        let operation = match self.call.name {
            "open" => self.open((None, 0), self.flags(1)?),
            "creat" => self.open((None, 0), O_CREAT | O_TRUNC | 1),
            "openat" => self.open((Some(0), 1), self.flags(2)?),
            "openat2" => self.open_how(),
            "truncate" | "truncate64" => {
                let bytes = self.number(1)?.cast_unsigned();
                self.on_path((None, 0), RecordedCall { bytes, ..kind(CallKind::Truncate) })
            }
            "unlink" => self.on_path((None, 0), kind(CallKind::Unlink)),
            "rmdir" => self.on_path((None, 0), kind(CallKind::Rmdir)),
            "unlinkat" => {
                let is_directory = self.argument(2)?.contains("AT_REMOVEDIR");
                let called = if is_directory { CallKind::Rmdir } else { CallKind::Unlink };
                self.on_path((Some(0), 1), kind(called))
            }
            "mkdir" => self.on_path((None, 0), kind(CallKind::Mkdir)),
            "mkdirat" => self.on_path((Some(0), 1), kind(CallKind::Mkdir)),
            "access" => {
                self.on_path((None, 0), RecordedCall { flags: self.flags(1)?, ..kind(CallKind::Access) })
            }
            "faccessat" | "faccessat2" => {
                self.on_path((Some(0), 1), RecordedCall { flags: self.flags(2)?, ..kind(CallKind::Access) })
            }
            "chmod" | "chown" | "chown32" | "lchown" | "lchown32" | "utime" | "utimes" => {
                self.on_path((None, 0), self.of_attributes(CallKind::SetAttributes, ""))
            }
            "fchmodat" | "futimesat" => self.attributes_at(""),
            "fchownat" => self.attributes_at(self.argument(4)?),
            "fchmodat2" | "utimensat" => self.attributes_at(self.argument(3)?),
            "stat" | "stat64" => self.status_of((None, 0), CallKind::Stat, 1),
            "lstat" | "lstat64" => self.status_of((None, 0), CallKind::Lstat, 1),
            "newfstatat" | "fstatat64" => self.status_at(3, 2),
            "statx" => self.status_at(2, 4),
            "rename" => self.two_paths((None, 0), (None, 1), kind(CallKind::Rename)),
            "renameat" => self.two_paths((Some(0), 1), (Some(2), 3), kind(CallKind::Rename)),
            "renameat2" => {
                let row = RecordedCall { flags: self.flags(4)?, ..kind(CallKind::Rename) };
                self.two_paths((Some(0), 1), (Some(2), 3), row)
            }
            "link" => self.two_paths((None, 0), (None, 1), kind(CallKind::Link)),
            "linkat" => self.link_at(),
            "symlink" => self.symlink((None, 1)),
            "symlinkat" => self.symlink((Some(1), 2)),
            _ => return Ok(None),
        };
        operation.map(Some)
    }

    /// The path of an argument, and the directory in which it begins.
    pub(super) fn path(&self, directory: Option<usize>, path: usize) -> Result<NamedPath<'a>, LineProblem> {
        let path = self.quoted(path)?;
        // Where it is absolute, the directory is not looked at, neither by the kernel.
        let is_relative = path.as_ref().is_none_or(|path| !path.starts_with('/'));
        let directory = directory.filter(|_| is_relative);
        let directory = directory.map(|index| self.descriptor(index)).transpose()?;
        Ok(NamedPath { directory, path, ..NamedPath::default() })
    }

    fn open(&self, place: PathPlace, flags: u32) -> Result<FileOperation<'a>, LineProblem> {
        let opened = self.call.result_path.as_deref();
        Ok(FileOperation::Open { path: self.path(place.0, place.1)?, flags, opened })
    }

    fn open_how(&self) -> Result<FileOperation<'a>, LineProblem> {
        let flags = how_flags(self, 2)?;
        if !self.argument(2)?.contains("RESOLVE_IN_ROOT") {
            return self.open((Some(0), 1), flags);
        }
        // Its directory is the root of an absolute path, too.
        let directory = Some(self.descriptor(0)?);
        let path = NamedPath { directory, path: self.quoted(1)?, in_root: true, follows: false };
        Ok(FileOperation::Open { path, flags, opened: self.call.result_path.as_deref() })
    }

    fn link_at(&self) -> Result<FileOperation<'a>, LineProblem> {
        let row = RecordedCall { kind: CallKind::Link, ..RecordedCall::default() };
        let how = self.argument(4)?;
        let (old, link) = (self.path(Some(0), 1)?, self.path(Some(2), 3)?);
        if self.argument(1)? == "\"\"" && how.contains("AT_EMPTY_PATH") {
            return Ok(FileOperation::LinkDescriptor { descriptor: self.descriptor(0)?, link });
        }
        let follows = how.contains("AT_SYMLINK_FOLLOW");
        Ok(FileOperation::OnTwoPaths(NamedPath { follows, ..old }, link, row))
    }

    fn on_path(&self, place: PathPlace, row: RecordedCall) -> Result<FileOperation<'a>, LineProblem> {
        Ok(FileOperation::OnPath(self.path(place.0, place.1)?, row))
    }

    fn two_paths(
        &self,
        one: PathPlace,
        two: PathPlace,
        row: RecordedCall,
    ) -> Result<FileOperation<'a>, LineProblem> {
        Ok(FileOperation::OnTwoPaths(self.path(one.0, one.1)?, self.path(two.0, two.1)?, row))
    }

    fn symlink(&self, link: PathPlace) -> Result<FileOperation<'a>, LineProblem> {
        Ok(FileOperation::Symlink { link: self.path(link.0, link.1)?, target: self.quoted(0)? })
    }

    fn status_of(
        &self,
        place: PathPlace,
        kind: CallKind,
        answer: usize,
    ) -> Result<FileOperation<'a>, LineProblem> {
        let (flags, bytes) = if self.succeeded() { status(self.argument(answer)?) } else { (0, 0) };
        self.on_path(place, RecordedCall { kind, flags, bytes, ..RecordedCall::default() })
    }

    /// Calls that set attributes: of a path, of a link, or of the descriptor itself.
    fn attributes_at(&self, how: &str) -> Result<FileOperation<'a>, LineProblem> {
        let path = self.argument(1)?;
        if path == "NULL" || (path == "\"\"" && how.contains("AT_EMPTY_PATH")) {
            let row = self.of_attributes(CallKind::FsetAttributes, "");
            return Ok(FileOperation::OnDescriptor(self.descriptor(0)?, row));
        }
        self.on_path((Some(0), 1), self.of_attributes(CallKind::SetAttributes, how))
    }

    fn of_attributes(&self, kind: CallKind, how: &str) -> RecordedCall {
        let link = if how.contains("AT_SYMLINK_NOFOLLOW") { RecordedCall::OF_LINK } else { 0 };
        RecordedCall { kind, flags: attributes_of(self.call.name) | link, ..RecordedCall::default() }
    }

    /// newfstatat and statx: of a path, of a link, or of the descriptor itself.
    fn status_at(&self, how: usize, answer: usize) -> Result<FileOperation<'a>, LineProblem> {
        let how = self.argument(how)?;
        if self.argument(1)? == "\"\"" && how.contains("AT_EMPTY_PATH") {
            let (flags, bytes) = if self.succeeded() { status(self.argument(answer)?) } else { (0, 0) };
            let row = RecordedCall { kind: CallKind::Fstat, flags, bytes, ..RecordedCall::default() };
            return Ok(FileOperation::OnDescriptor(self.descriptor(0)?, row));
        }
        let kind = if how.contains("AT_SYMLINK_NOFOLLOW") { CallKind::Lstat } else { CallKind::Stat };
        self.status_of((Some(0), 1), kind, answer)
    }
}

/// Which attributes of a file a call of this name sets: bits of [`RecordedCall`].
pub(super) fn attributes_of(name: &str) -> u32 {
    if name.contains("chmod") {
        RecordedCall::SETS_MODE
    } else if name.starts_with("lchown") {
        RecordedCall::SETS_OWNER | RecordedCall::OF_LINK
    } else if name.contains("chown") {
        RecordedCall::SETS_OWNER
    } else {
        RecordedCall::SETS_TIMES
    }
}
