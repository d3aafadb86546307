//! Calls that name files by their paths.

use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::flags::{O_CLOEXEC, O_CREAT, O_TRUNC};
use crate::recording::paths::{absolute, is_pseudo, unquoted};
use crate::trace::import::LineProblem;
use crate::trace::texts::name_of;

use super::arguments::{CallText, how_flags, status, without_mark};
use super::calls::{Calls, DEVICE, Told, UNREADABLE};
use super::line::TextDescriptor;
use super::processes::Meaning;

/// The directory of relative paths where the text does not tell.
const START_DIRECTORY: &str = "/start";
const UNKNOWN_START: &str =
    "The directory in which the program began is not in the text: it was taken for /start.";

impl Calls {
    /// The row of a call that names files; `None` where this is none.
    pub(super) fn about_names(
        &mut self,
        at: &CallText<'_, '_>,
    ) -> Result<Option<Result<RecordedCall, &'static str>>, LineProblem> {
        let told = match at.call.name {
            "open" => self.open(at, None, 0, at.flags(1)?),
            "creat" => self.open(at, None, 0, O_CREAT | O_TRUNC | 1),
            "openat" => self.open(at, Some(0), 1, at.flags(2)?),
            "openat2" => self.open(at, Some(0), 1, how_flags(at, 2)?),
            "truncate" | "truncate64" => {
                let bytes = at.number(1)?.cast_unsigned();
                self.one_path(
                    at,
                    CallKind::Truncate,
                    (None, 0),
                    RecordedCall { bytes, ..RecordedCall::default() },
                )
            }
            "unlink" => self.one_path(at, CallKind::Unlink, (None, 0), RecordedCall::default()),
            "rmdir" => self.one_path(at, CallKind::Rmdir, (None, 0), RecordedCall::default()),
            "unlinkat" => {
                let is_directory = at.argument(2)?.contains("AT_REMOVEDIR");
                let kind = if is_directory { CallKind::Rmdir } else { CallKind::Unlink };
                self.one_path(at, kind, (Some(0), 1), RecordedCall::default())
            }
            "mkdir" => self.one_path(at, CallKind::Mkdir, (None, 0), RecordedCall::default()),
            "mkdirat" => self.one_path(at, CallKind::Mkdir, (Some(0), 1), RecordedCall::default()),
            "access" => self.one_path(
                at,
                CallKind::Access,
                (None, 0),
                RecordedCall { flags: at.flags(1)?, ..RecordedCall::default() },
            ),
            "faccessat" | "faccessat2" => self.one_path(
                at,
                CallKind::Access,
                (Some(0), 1),
                RecordedCall { flags: at.flags(2)?, ..RecordedCall::default() },
            ),
            "stat" | "stat64" => self.status_of(at, CallKind::Stat, (None, 0), 1),
            "lstat" | "lstat64" => self.status_of(at, CallKind::Lstat, (None, 0), 1),
            "newfstatat" | "fstatat64" => self.status_at(at, 3, 2),
            "statx" => self.status_at(at, 2, 4),
            "rename" => self.two_paths(at, CallKind::Rename, (None, 0), (None, 1), 0),
            "renameat" => self.two_paths(at, CallKind::Rename, (Some(0), 1), (Some(2), 3), 0),
            "renameat2" => self.two_paths(at, CallKind::Rename, (Some(0), 1), (Some(2), 3), at.flags(4)?),
            "link" => self.two_paths(at, CallKind::Link, (None, 0), (None, 1), 0),
            "linkat" => self.two_paths(at, CallKind::Link, (Some(0), 1), (Some(2), 3), 0),
            "symlink" => self.symlink(at, (None, 1)),
            "symlinkat" => self.symlink(at, (Some(1), 2)),
            _ => return Ok(None),
        };
        told.map(Some)
    }

    fn open(&mut self, at: &CallText<'_, '_>, directory: Option<usize>, path: usize, flags: u32) -> Told {
        self.learn_directory(at, directory, path)?;
        let path = self.path_at(at, directory, path)?;
        let number =
            at.call.result.and_then(|result| i32::try_from(result).ok()).filter(|number| *number >= 0);
        let why = match &path {
            Err(why) => Some(*why),
            Ok(path) => is_pseudo(at.call.result_path.unwrap_or(path)).then_some(DEVICE),
        };
        let closes_on_exec = flags & O_CLOEXEC != 0;
        if let Some(number) = number {
            // A close of it is missing in the text: the kernel gives no number twice.
            self.processes.close(at.thread, number);
        }
        if let (Some(why), Some(number)) = (why, number) {
            self.processes.open(at.thread, number, Meaning::Other(why), closes_on_exec, true);
        }
        let (Ok(path), None) = (path, why) else { return Ok(Err(why.unwrap_or(UNREADABLE))) };
        let path = self.output.keep(&path);
        let mut row = RecordedCall { kind: CallKind::Open, flags, path, ..RecordedCall::default() };
        if let Some(number) = number {
            (row.description, row.descriptor) = (self.output.new_description(), number);
            self.paths.insert(row.description, path);
            self.processes.open(at.thread, number, Meaning::File(row.description), closes_on_exec, true);
        }
        Ok(Ok(row))
    }

    fn one_path(
        &mut self,
        at: &CallText<'_, '_>,
        kind: CallKind,
        place: (Option<usize>, usize),
        row: RecordedCall,
    ) -> Told {
        let path = self.path_at(at, place.0, place.1)?;
        Ok(path.and_then(|path| {
            if is_pseudo(&path) {
                Err(DEVICE)
            } else {
                Ok(RecordedCall { kind, path: self.output.keep(&path), ..row })
            }
        }))
    }

    fn two_paths(
        &mut self,
        at: &CallText<'_, '_>,
        kind: CallKind,
        one: (Option<usize>, usize),
        two: (Option<usize>, usize),
        flags: u32,
    ) -> Told {
        let row = self.one_path(at, kind, one, RecordedCall { flags, ..RecordedCall::default() })?;
        let second = self.path_at(at, two.0, two.1)?;
        Ok(row.and_then(|row| Ok(RecordedCall { second_path: self.output.keep(&second?), ..row })))
    }

    fn symlink(&mut self, at: &CallText<'_, '_>, link: (Option<usize>, usize)) -> Told {
        let target = unquoted(at.argument(0)?);
        let row = self.one_path(at, CallKind::Symlink, link, RecordedCall::default())?;
        Ok(row.and_then(|row| {
            let target = target.ok_or(UNREADABLE)?;
            Ok(RecordedCall { second_path: self.output.keep(&name_of(&target)), ..row })
        }))
    }

    fn status_of(
        &mut self,
        at: &CallText<'_, '_>,
        kind: CallKind,
        place: (Option<usize>, usize),
        answer: usize,
    ) -> Told {
        let (flags, bytes) = if at.succeeded() { status(at.argument(answer)?) } else { (0, 0) };
        self.one_path(at, kind, place, RecordedCall { flags, bytes, ..RecordedCall::default() })
    }

    /// newfstatat and statx: of a path, of a link, or of the descriptor itself.
    fn status_at(&mut self, at: &CallText<'_, '_>, how: usize, answer: usize) -> Told {
        let how = at.argument(how)?;
        if at.argument(1)? == "\"\"" && how.contains("AT_EMPTY_PATH") {
            let row = self.of_descriptor(at, CallKind::Fsync)?;
            let (flags, bytes) = if at.succeeded() { status(at.argument(answer)?) } else { (0, 0) };
            return Ok(row.map(|row| RecordedCall { kind: CallKind::Fstat, flags, bytes, ..row }));
        }
        let kind = if how.contains("AT_SYMLINK_NOFOLLOW") { CallKind::Lstat } else { CallKind::Stat };
        self.status_of(at, kind, (Some(0), 1), answer)
    }

    /// The absolute path of an argument, as seen from the directory that another one names.
    pub(super) fn path_at(
        &mut self,
        at: &CallText<'_, '_>,
        directory: Option<usize>,
        path: usize,
    ) -> Result<Result<String, &'static str>, LineProblem> {
        let Some(path) = unquoted(at.argument(path)?) else { return Ok(Err(UNREADABLE)) };
        let path = name_of(&path);
        if path.starts_with('/') {
            return Ok(Ok(absolute("/", &path)));
        }
        let directory = directory.map(|index| at.descriptor(index)).transpose()?;
        let known = match directory {
            Some(descriptor) => self.known_path(at.thread, descriptor),
            None => None,
        };
        let is_of_thread = directory.is_none_or(|descriptor| descriptor.number.is_none());
        Ok(
            match known
                .or_else(|| self.processes.directory(at.thread).filter(|_| is_of_thread).map(str::to_owned))
            {
                Some(directory) => Ok(absolute(&directory, &path)),
                None if is_of_thread => {
                    self.output.infer(UNKNOWN_START);
                    Ok(absolute(START_DIRECTORY, &path))
                }
                None => Err(UNREADABLE),
            },
        )
    }

    /// `openat(AT_FDCWD, "a/b") = 3</x/a/b>` says where relative paths begin.
    fn learn_directory(
        &mut self,
        at: &CallText<'_, '_>,
        directory: Option<usize>,
        path: usize,
    ) -> Result<(), LineProblem> {
        let is_of_thread = match directory {
            Some(index) => at.descriptor(index)? == TextDescriptor { number: None, known: None },
            None => true,
        };
        let path = unquoted(at.argument(path)?).map(|path| name_of(&path).into_owned());
        if let (true, Some(found), Some(path), None) =
            (is_of_thread, at.call.result_path, path, self.processes.directory(at.thread))
            && let Some(directory) = without_mark(found).strip_suffix(&format!("/{path}"))
            && !path.is_empty()
        {
            self.processes.change_directory(at.thread, absolute("/", directory));
        }
        Ok(())
    }

    /// The path of a descriptor: what strace says of it, or of its opening.
    pub(super) fn known_path(&self, thread: u32, descriptor: TextDescriptor<'_>) -> Option<String> {
        if let Some(known) = descriptor.known {
            return known.starts_with('/').then(|| without_mark(known).to_owned());
        }
        match self.processes.meaning(thread, descriptor.number?)? {
            Meaning::File(description) => Some(self.output.text(*self.paths.get(description)?).to_owned()),
            Meaning::Other(_) => None,
        }
    }
}
