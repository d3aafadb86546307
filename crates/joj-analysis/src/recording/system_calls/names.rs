//! Calls that name files by their paths.

use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::flags::{O_CLOEXEC, O_TMPFILE};
use crate::recording::paths::{absolute, is_pseudo};

use super::calls::{CACHE_SWITCH, Calls, DEVICE, DROP_CACHES, GONE, NO_FILE, Told, UNREADABLE};
use super::descriptor_links;
use super::links::PathBegin;
use super::open_names::{NameHolder, OpenName};
use super::operation::{FileOperation, NamedDescriptor, NamedPath, SystemCall};
use super::output::CallOutput;
use super::processes::Meaning;

/// The directory of relative paths while nobody has seen it: no path of the kernel's has a zero byte.
const UNSEEN_START: &str = "/\0start";
/// What it is called if nobody ever does.
const START_DIRECTORY: &str = "/start";
const SHORTENED: &str = "it failed, at a name with `/.`, `/..` or a `/` behind it";
const UNKNOWN_START: &str =
    "The directory in which the program began is not in the text: it was taken for /start.";

impl Calls {
    /// All calls are told: gives them, with a name for a directory that nobody saw.
    pub fn finish(mut self) -> CallOutput {
        self.output.stands_at(UNSEEN_START, START_DIRECTORY);
        self.output
    }

    /// The row of a call that names files.
    pub(super) fn about_names(&mut self, call: &SystemCall<'_>) -> Told {
        match &call.operation {
            FileOperation::Open { path, flags, opened } => self.open(call, path, *flags, *opened),
            FileOperation::OnPath(path, row) => self.one_path(call, path, *row),
            FileOperation::LinkDescriptor { descriptor, link } => {
                self.link_descriptor(call, *descriptor, link)
            }
            FileOperation::OnTwoPaths(first, second, row) => {
                if let Some(descriptor) = descriptor_behind(first) {
                    return self.link_descriptor(call, descriptor, second);
                }
                let told = self.one_path(call, first, *row);
                let second = self.path_of(call, second, false);
                Ok(RecordedCall { second_path: self.output.keep(&second?), ..told? })
            }
            FileOperation::Symlink { link, target } => {
                let row = RecordedCall { kind: CallKind::Symlink, ..RecordedCall::default() };
                let row = self.one_path(call, link, row)?;
                let target = target.as_deref().ok_or(UNREADABLE)?;
                Ok(RecordedCall { second_path: self.output.keep(target), ..row })
            }
            _ => Err(UNREADABLE),
        }
    }

    fn open(
        &mut self,
        call: &SystemCall<'_>,
        path: &NamedPath<'_>,
        flags: u32,
        opened: Option<&str>,
    ) -> Told {
        self.learn_directory(call.thread, path, opened);
        let row = RecordedCall { kind: CallKind::Open, flags, ..RecordedCall::default() };
        let path = match (self.path_of(call, path, row.follows_links()), opened) {
            // What is above a directory that is gone is found from there.
            (Err(GONE), Some(opened)) => Ok(opened.to_owned()),
            // A descriptor of which nobody saw what it is, by its name.
            (Ok(path), Some(opened)) if is_pseudo(&path) && opened.starts_with('/') => Ok(opened.to_owned()),
            (path, _) => path,
        };
        let number = call.new_descriptor();
        let why = match &path {
            Err(why) => Some(*why),
            Ok(_) if opened.is_some_and(|opened| !opened.starts_with('/')) => Some(NO_FILE),
            Ok(path) if opened.unwrap_or(path) == DROP_CACHES => Some(CACHE_SWITCH),
            Ok(path) => self.is_made_up(call.thread, opened.unwrap_or(path)).then_some(DEVICE),
        };
        let closes_on_exec = flags & O_CLOEXEC != 0;
        if let Some(number) = number {
            // A close of it was not seen: the kernel gives no number twice.
            self.processes.close(call.thread, number);
        }
        if let (Some(why), Some(number)) = (why, number) {
            self.processes.open(call.thread, number, Meaning::Other(why), closes_on_exec, true);
        }
        let (Ok(path), None) = (path, why) else { return Err(why.unwrap_or(UNREADABLE)) };
        let (text, path) = (&path, self.output.keep(&path));
        let mut row = RecordedCall { path, ..row };
        if let Some(number) = number {
            (row.description, row.descriptor) = (self.output.new_description(), number);
            let holder = NameHolder::Description(row.description);
            if flags & O_TMPFILE == O_TMPFILE {
                // The path is a directory's.
                self.processes.names.lose(holder);
            } else {
                self.processes.names.put(holder, text);
            }
            self.processes.open(call.thread, number, Meaning::File(row.description), closes_on_exec, true);
        }
        Ok(row)
    }

    /// A file that is open gets a name: perhaps its first one (O_TMPFILE).
    fn link_descriptor(
        &mut self,
        call: &SystemCall<'_>,
        descriptor: NamedDescriptor<'_>,
        link: &NamedPath<'_>,
    ) -> Told {
        if !call.succeeded() {
            // With AT_EMPTY_PATH it may lack a privilege that a replay does not need.
            return Err("it failed");
        }
        let description = self.description(call.thread, descriptor)?;
        let link = self.path_of(call, link, false)?;
        let row = RecordedCall { kind: CallKind::Link, description, ..RecordedCall::default() };
        let second_path = self.output.keep(&link);
        Ok(RecordedCall { descriptor: descriptor.number.unwrap_or(-1), second_path, ..row })
    }

    fn one_path(&mut self, call: &SystemCall<'_>, path: &NamedPath<'_>, row: RecordedCall) -> Told {
        let path = self.path_of(call, path, row.follows_links() || path.follows)?;
        if self.is_made_up(call.thread, &path) {
            return Err(DEVICE);
        }
        Ok(RecordedCall { path: self.output.keep(&path), ..row })
    }

    /// The absolute path to which an argument leads, as seen from the directory in which it begins. `follows`: through a link under
    /// its last name, too.
    pub(super) fn path_of(
        &mut self,
        call: &SystemCall<'_>,
        named: &NamedPath<'_>,
        follows: bool,
    ) -> Result<String, &'static str> {
        let thread = call.thread;
        let path = named.path.as_deref().ok_or(UNREADABLE)?;
        let mut root = self.processes.root(thread).ok_or(GONE)?.to_owned();
        let mut directory = root.clone();
        if named.in_root || !path.starts_with('/') {
            directory = self.begin_of(thread, named.directory)?;
        }
        if named.in_root {
            root.clone_from(&directory);
        }
        let begin = PathBegin { directory: &directory, root: &root, follows };
        let made_up = |path: &str| descriptor_links::target(&self.processes, thread, path);
        let end = self.links.resolve(begin, path, &made_up);
        if let Some(why) = end.no_path {
            return Err(why);
        }
        let is_failed = call.result.is_some_and(|result| result < 0);
        // A replay's call on the path that is left may succeed.
        if is_failed && end.is_shortened { Err(SHORTENED) } else { Ok(end.path) }
    }

    /// True for what is no file, also below a directory that the thread takes for `/`.
    fn is_made_up(&self, thread: u32, path: &str) -> bool {
        let root = self.processes.root(thread).unwrap_or("/");
        is_pseudo(path) || path.strip_prefix(root).is_some_and(is_pseudo)
    }

    /// The directory in which a relative path begins.
    fn begin_of(
        &mut self,
        thread: u32,
        directory: Option<NamedDescriptor<'_>>,
    ) -> Result<String, &'static str> {
        if let Some(descriptor) = directory.filter(|descriptor| *descriptor != NamedDescriptor::default()) {
            return self.known_path(thread, descriptor);
        }
        match self.processes.directory(thread) {
            OpenName::Path(directory) => Ok(directory.to_owned()),
            OpenName::Gone => Err(GONE),
            OpenName::Unknown => {
                if let Some(start) = self.start.clone() {
                    self.processes.change_directory(thread, &start);
                    return Ok(start);
                }
                self.output.infer(UNKNOWN_START);
                Ok(UNSEEN_START.to_owned())
            }
        }
    }

    /// `openat(AT_FDCWD, "a/b") = 3</x/a/b>` says where relative paths begin.
    fn learn_directory(&mut self, thread: u32, path: &NamedPath<'_>, opened: Option<&str>) {
        let is_of_thread = match path.directory {
            Some(directory) => directory == NamedDescriptor::default(),
            None => true,
        };
        if let (true, Some(opened), Some(path), OpenName::Unknown) =
            (is_of_thread, opened, path.path.as_deref(), self.processes.directory(thread))
            && let Some(directory) = opened.strip_suffix(&format!("/{path}"))
            && !path.is_empty()
        {
            self.is_in(thread, &absolute("/", directory));
        }
    }

    /// Where relative paths of a thread begin, as whoever saw its calls says. If it has entered no directory that is known, that says
    /// where the program began.
    pub fn is_in(&mut self, thread: u32, directory: &str) {
        let start = match self.processes.directory(thread) {
            OpenName::Path(known) if known == directory => return,
            OpenName::Path(known) => {
                known.strip_prefix(UNSEEN_START).map(|rest| directory.strip_suffix(rest))
            }
            OpenName::Unknown => Some(Some(directory)),
            OpenName::Gone => None,
        };
        let start = start.flatten().filter(|_| self.processes.are_of_one()).map(|start| absolute("/", start));
        if let Some(start) = start {
            self.output.stands_at(UNSEEN_START, &start);
            self.output.take_back(UNKNOWN_START);
            self.processes.names.stands_at(UNSEEN_START, &start);
            self.links.stands_at(UNSEEN_START, &start);
            self.start = Some(start);
        }
        self.processes.change_directory(thread, directory);
    }
}

/// The descriptor that a path of the kernel's names, where it is followed: `/proc/self/fd/3`.
fn descriptor_behind(path: &NamedPath<'_>) -> Option<NamedDescriptor<'static>> {
    let text = path.path.as_deref().filter(|_| path.follows)?;
    let number = match text.strip_prefix("/dev/fd/") {
        Some(number) => number,
        None => text.strip_prefix("/proc/")?.split_once("/fd/").filter(|(who, _)| is_own(who))?.1,
    };
    Some(NamedDescriptor { number: Some(number.parse().ok()?), ..NamedDescriptor::default() })
}

/// Other processes' descriptors are named by their numbers.
fn is_own(process: &str) -> bool {
    matches!(process, "self" | "thread-self")
}
