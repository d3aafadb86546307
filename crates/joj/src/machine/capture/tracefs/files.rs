//! Which file an inode number stands for: its generation, its name, and whether it is a directory. Trace records have the
//! number only.
//!
//! The watch of its filesystem is asked first, which sees every creation. Next comes its number, by which ext4 finds a file, then
//! the descriptors of the process that uses it, and once that has ended what they led to when they were last asked. A file that was
//! deleted before one of them was asked has no name. Its generation is one more than that of the file before: not the kernel's
//! number, but another one.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use joj_analysis::trace::event::{DeviceNumber, Event, EventKind, FileKey};
use joj_analysis::trace::ftrace::inode_number::{is_of_some_tree, own};
use joj_analysis::trace::ftrace::record::InodeKind;
use joj_analysis::trace::ftrace::volume::Volume;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::machine::capture::tracefs::filesystems::sources::{self, Source};
use crate::machine::capture::tracefs::filesystems::subvolumes::{Open, Subvolumes};
use crate::machine::capture::tracefs::filesystems::volumes::{self, Mounted};
use crate::machine::capture::tracefs::known::{Known, named};
use crate::machine::capture::tracefs::name_changes::changes::Changes;
use crate::machine::capture::tracefs::name_changes::creations::Creations;
use crate::machine::capture::tracefs::name_changes::doubts::Doubtful;
use crate::machine::capture::tracefs::name_changes::doubts::Doubts;
use crate::machine::capture::tracefs::name_changes::file_names::FileNames;
use crate::machine::capture::tracefs::name_changes::links::Links;
use crate::machine::capture::tracefs::name_changes::watcher::Watcher;
use crate::machine::devices::disks;
use crate::machine::files::file_handle;
use crate::machine::files::mounts::{self, Mount};

/// A file of none of the filesystems that are captured.
pub const ELSEWHERE: FileKey = FileKey { device: DeviceNumber(u32::MAX), inode: 1, generation: 0 };

const NAMES_LOST: &str = "more files were made and removed between two polls than the kernel remembers (fanotify's queue): \
    some have no name";

const SUBVOLUMES: &str = "Btrfs: no record says in which subvolume a file is that is locked or written past the page cache, and it was \
    not to be found out for some that have the same inode number: their locks are left out, and with them their commits \
    (`--backend bpf` tells them apart)";

const CALLS_OF_ENDED: &str = "no record names the file of some sync calls, and their processes had ended before joj could look: each \
    counts for the file that its descriptor led to when joj looked last";

/// A file, or what is in a directory.
pub fn with_entries(path: &Path) -> Vec<PathBuf> {
    match fs::read_dir(path) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(_) => vec![path.to_owned()],
    }
}

/// Every file that was seen.
#[derive(Debug, Default)]
pub struct Files {
    /// When the watch began.
    started: Option<SystemTime>,
    sources: Vec<Source>,
    mounts: Vec<Mount>,
    pub(super) known: FxHashMap<(DeviceNumber, u64), Known>,
    pub(super) watcher: Watcher,
    /// What the watch saw, and no record reported yet.
    pub(super) changes: Changes,
    /// When the watch was last asked.
    pub(super) looked_ns: u64,
    /// The kernel threw away what the watch would have seen.
    pub(super) has_lost_names: bool,
    /// Files that the watch saw and whose creation no record reported yet.
    pub(super) creations: Creations<Known>,
    /// What is not known for a while.
    pub(super) doubts: Doubts,
    /// Files of which that is yet to be reported.
    pub(super) doubtful: Vec<Doubtful>,
    /// Made since the start, and not yet asked for.
    young: FxHashMap<(DeviceNumber, u64), InodeKind>,
    /// Which of Btrfs's files a number is.
    pub(super) subvolumes: Subvolumes,
    /// Devices of filesystems that were unmounted: nobody is asked for files there any more.
    gone: FxHashSet<DeviceNumber>,
    /// Generations of files that are gone.
    ended: FxHashMap<(DeviceNumber, u64), u32>,
    /// Which file a descriptor of a process led to when it was last asked for.
    asked: FxHashMap<(u32, u32), FileKey>,
    /// That was the answer for a process that has ended.
    has_answered_for_ended: bool,
}

impl Files {
    /// Knows the files of these volumes, of which these events tell. The second: what is missed, a sentence each.
    pub fn new(mounts: Vec<Mount>, volumes: &[Mounted], events: &[String]) -> (Self, Vec<String>) {
        let disks = disks::list();
        let sources = volumes.iter().map(|mounted| Source::of(mounted, &disks, events));
        let (sources, unplaced): (Vec<Source>, Vec<Option<String>>) = sources.unzip();
        let (names, mut limits) = FileNames::watch(volumes);
        limits.extend(unplaced.into_iter().flatten());
        let started = Some(SystemTime::now());
        let with_subvolumes = volumes.iter().filter(|mounted| mounted.has_subvolumes);
        let mut subvolumes = Subvolumes::default();
        with_subvolumes.for_each(|mounted| subvolumes.of(mounted.volume.device));
        (
            Self { started, sources, mounts, subvolumes, watcher: Watcher::begin(names), ..Self::default() },
            limits,
        )
    }

    /// The file that we have under a number, or shall have when a record reports its creation.
    pub(super) fn had(&mut self, key: (DeviceNumber, u64), generation: u32) -> Option<&mut Known> {
        let waiting = self.creations.of(key).find(|waiting| waiting.generation == generation);
        waiting.or_else(|| self.known.get_mut(&key).filter(|had| had.generation == generation))
    }

    /// True where it is not known what the file with this number was called at this time.
    pub fn is_doubtful(&mut self, file: FileKey, process: u32, time_ns: u64) -> bool {
        let generation = self.identify(file, process).generation;
        self.doubts.has(FileKey { generation, ..file }, time_ns)
    }

    /// The file with a number; asks once.
    pub fn identify(&mut self, file: FileKey, process: u32) -> &mut Known {
        let key = (file.device, file.inode);
        if !self.gone.contains(&file.device) {
            self.ask_once(file, process);
        }
        self.known.entry(key).or_default()
    }

    fn ask_once(&mut self, file: FileKey, process: u32) {
        let key = (file.device, file.inode);
        self.ask_again(file, process);
        if !self.known.contains_key(&key) {
            let found = self.by_number(file).or_else(|| self.by_process(file, process));
            // Nobody opens what is no file of a program's.
            let is_value = found.is_none()
                && self.source(file.device).is_some_and(|source| source.places.is_value(file));
            // Who has the number now got it later than this event.
            let mut is_later =
                |found: &Known| self.creations.of(key).any(|new| new.generation == found.generation);
            let found = found.filter(|found| !is_later(found));
            let found = found.map(|found| self.named_then(key, found));
            let found = self.distinct(key, found);
            let young = self.young.remove(&key);
            let placed = found.placed || young.is_some();
            let is_other = young.is_some_and(|kind| kind != InodeKind::File);
            let holds_metadata = found.holds_metadata || is_other || is_value;
            self.known.insert(key, Known { placed, holds_metadata, ..found });
        }
        self.ask_withheld(key);
    }

    /// A file that was asked for now, with the name that it had when what waits had not happened yet.
    fn named_then(&mut self, key: (DeviceNumber, u64), found: Known) -> Known {
        self.look();
        let name = found.name.map(|name| self.changes.name_then(key, name));
        let withheld = name.as_ref().is_some_and(|name| self.doubts.is_below(key.0, name));
        Known { name: name.filter(|_| !withheld), withheld, ..found }
    }

    /// True where metadata in blocks of inodes would pass for data if its places were known. On XFS requests say what they are.
    /// There no record says when a number changes hands, so a directory might be taken for the file that had its number before.
    pub fn hides_metadata(&self, device: DeviceNumber) -> bool {
        !self.source(device).is_some_and(Source::places_metadata)
    }

    /// True where the watch will say which file the number was given to at this time, and has not yet.
    pub fn awaits_creation(&mut self, file: FileKey, time_ns: u64) -> bool {
        let is_told = self.source(file.device).is_some_and(|source| source.tells_creations);
        if !is_told || !self.watcher.sees(file.device) || self.gone.contains(&file.device) {
            return false;
        }
        !self.creations.has((file.device, file.inode), time_ns)
    }

    /// The number was given to a new file at this time.
    pub fn created(&mut self, file: FileKey, kind: InodeKind, time_ns: u64) {
        let key = (file.device, file.inode);
        self.subvolumes.note(file);
        // Whoever had the number is gone.
        self.ended(file);
        let seen = self.creations.take(key, time_ns);
        match seen {
            Some(seen) => {
                let directory = kind == InodeKind::Directory || seen.directory;
                let holds_metadata = directory || kind == InodeKind::Other;
                self.known.insert(key, Known { directory, holds_metadata, ..seen });
            }
            // Who has it now is asked when it is used.
            None => {
                self.young.insert(key, kind);
            }
        }
    }

    /// An inode was brought into memory. One that had lost its last name does not come back: another file has the number (XFS, which
    /// does not tell of files without a name). One whose name another file took has lost it, too, without a record of that.
    pub fn fetched(&mut self, file: FileKey) {
        let key = (file.device, file.inode);
        let Some(known) = self.known.get_mut(&key) else { return };
        known.doubtful = true;
        if known.nameless {
            self.ended(file);
            self.young.insert(key, InodeKind::File);
        }
    }

    /// Asks who has a number that came into memory again: who has it open knows.
    fn ask_again(&mut self, file: FileKey, process: u32) {
        let key = (file.device, file.inode);
        let Some(known) = self.known.get_mut(&key).filter(|known| known.doubtful) else { return };
        known.doubtful = false;
        let before = known.generation;
        let found = self.by_process(file, process).filter(|found| found.generation != before);
        if let Some(found) = found
            && self.creations.of(key).all(|new| new.generation != found.generation)
        {
            self.ended(file);
        }
    }

    /// The file is gone.
    pub fn ended(&mut self, file: FileKey) {
        let key = (file.device, file.inode);
        if let Some(gone) = self.known.remove(&key) {
            self.ended.insert(key, gone.generation);
        }
    }

    /// The filesystem with this device was unmounted.
    pub fn forget(&mut self, device: DeviceNumber) {
        self.gone.insert(device);
    }

    /// True where the number's last owner is gone, and no other was seen. To ask for it now is in vain, and takes long.
    pub fn is_gone(&self, file: FileKey) -> bool {
        let key = (file.device, file.inode);
        self.ended.contains_key(&key) && !self.known.contains_key(&key) && !self.young.contains_key(&key)
    }

    /// The file that a thread's descriptor leads to, and what is known of it. None where that filesystem would have named the file
    /// of such a call itself (`is_named`): then the descriptor was another file's when the call was made. Of a process that has
    /// ended nobody can be asked: it is the file that the descriptor led to when it was last asked for.
    pub fn by_descriptor(&mut self, thread: u32, process: u32, descriptor: u32, is_named: bool) -> FileKey {
        // A thread that has ended has no descriptors, its process has; of a zombie the link cannot be read.
        let has_any = |holder: &u32| fs::read_link(format!("/proc/{holder}/cwd")).is_ok();
        let Some(holder) = [thread, process].into_iter().find(has_any) else {
            let before = self.asked.get(&(process, descriptor)).copied();
            self.has_answered_for_ended |= before.is_some();
            return before.unwrap_or(FileKey::NONE);
        };
        let path = PathBuf::from(format!("/proc/{holder}/fd/{descriptor}"));
        let Some((key, known)) = self.at(&path, holder) else {
            return if path.exists() && self.gone.is_empty() { ELSEWHERE } else { FileKey::NONE };
        };
        if is_named && self.source(key.device).is_some_and(Source::tells_syncs) {
            return FileKey::NONE;
        }
        self.subvolumes.note(key);
        let place = (key.device, key.inode);
        if !self.known.contains_key(&place) {
            let known = self.named_then(place, known);
            self.known.insert(place, known);
        }
        let file = FileKey { generation: self.known.entry(place).or_default().generation, ..key };
        self.asked.insert((process, descriptor), file);
        file
    }

    /// What is not known, or not for sure, a sentence each.
    pub fn limits(&self) -> impl Iterator<Item = &'static str> + use<> {
        let all = [
            (self.has_lost_names, NAMES_LOST),
            (self.subvolumes.has_confused(), SUBVOLUMES),
            (self.has_answered_for_ended, CALLS_OF_ENDED),
        ];
        all.into_iter().filter_map(|(is_so, limit)| is_so.then_some(limit))
    }

    /// Learns a file by its path. Its name, where it has blocks: no record may ever name it, as when sync(2) writes them. And
    /// where it lies.
    pub fn learn(&mut self, path: &Path) -> (Option<(Event, String)>, Vec<Event>) {
        let Some((key, known)) = self.at(path, 0) else { return (None, Vec::new()) };
        self.subvolumes.note(key);
        let place = (key.device, key.inode);
        let known = self.known.entry(place).or_insert(known);
        known.placed = true;
        let key = FileKey { generation: known.generation, ..key };
        if known.holds_metadata {
            return (None, Vec::new());
        }
        let extents = self.extents(key, Some(path));
        let untold = self.known.get_mut(&place).filter(|known| !extents.is_empty() && !known.told);
        let name = untold.and_then(|known| {
            let name = known.name.clone()?;
            known.told = true;
            Some((Event { kind: EventKind::Named, file: key, ..Event::default() }, name))
        });
        (name, extents)
    }

    /// Where a file lies that was there before the capture. On ext4 only: other filesystems say it at each write, and
    /// what is asked now may be newer than the event that made us ask.
    pub fn place(&mut self, file: FileKey, process: u32) -> Vec<Event> {
        if self.gone.contains(&file.device) || !self.source(file.device).is_some_and(Source::is_ext4) {
            return Vec::new();
        }
        let known = self.identify(file, process);
        if known.placed || known.holds_metadata {
            return Vec::new();
        }
        known.placed = true;
        let key = FileKey { generation: known.generation, ..file };
        self.extents(key, None)
    }

    /// Every file's place is asked for again when it is next synced.
    pub fn forget_places(&mut self) {
        for known in self.known.values_mut() {
            known.placed = false;
        }
        self.young.clear();
    }

    /// The volumes whose chunks are others now.
    pub fn reread_chunks(&mut self) -> Vec<Volume> {
        let mut changed = Vec::new();
        for source in self.sources.iter_mut().filter(|source| source.mounted.mount.kind == "btrfs") {
            let is_known = !self.gone.contains(&source.mounted.volume.device);
            let now = is_known.then(|| volumes::read_again(&source.mounted)).flatten();
            if let Some(now) = now.filter(|now| *now != source.mounted.volume) {
                source.mounted.volume = now.clone();
                changed.push(now);
            }
        }
        changed
    }

    fn extents(&self, file: FileKey, path: Option<&Path>) -> Vec<Event> {
        let Some(source) = self.source(file.device) else { return Vec::new() };
        let extents = source.places.extents(&source.mounted, file, path);
        if source.mounted.mounts.is_there() { extents } else { Vec::new() }
    }

    pub(super) fn source(&self, device: DeviceNumber) -> Option<&Source> {
        self.sources.iter().find(|source| source.mounted.volume.device == device)
    }

    fn by_number(&self, file: FileKey) -> Option<Known> {
        let source = self.source(file.device)?;
        let found = source.find(file)?;
        let facts = found.metadata().ok()?;
        let handle = file_handle::of_found(&found);
        Some(Known {
            generation: file_handle::generation(handle.as_ref()),
            handle,
            name: source.name_of(&found, &facts).map(|name| named(name, facts.is_dir())),
            links: Links::of(&facts, self.started),
            directory: facts.is_dir(),
            holds_metadata: !facts.is_file(),
            ..Known::default()
        })
    }

    fn by_process(&self, file: FileKey, process: u32) -> Option<Known> {
        let (_, known) = self.at(&self.descriptor_of(file, process)?, process)?;
        Some(known)
    }

    /// The descriptor through which a process has a file open.
    fn descriptor_of(&self, file: FileKey, process: u32) -> Option<PathBuf> {
        let entries = fs::read_dir(format!("/proc/{process}/fd")).ok()?.flatten();
        entries.map(|entry| entry.path()).find(|path| self.number_at(path, file, process) == Some(file.inode))
    }

    /// The number of the file at a path, if it may be this one: only then it has to be asked for more.
    fn number_at(&self, path: &Path, file: FileKey, process: u32) -> Option<u64> {
        let facts = fs::metadata(path).ok().filter(|facts| facts.ino() == own(file.inode))?;
        (self.device_of(path, process)? == file.device)
            .then(|| file_handle::number(&facts, file_handle::of(path).as_ref()))
    }

    /// The file of a record that does not say the subvolume. NONE where it may be one of several.
    pub fn in_its_subvolume(&mut self, file: FileKey, process: u32) -> FileKey {
        self.subvolumes.note(file);
        let inode = (file.device, own(file.inode));
        if !is_of_some_tree(file.inode) {
            return file;
        }
        if !self.subvolumes.has(file.device) {
            return FileKey { inode: inode.1, ..file };
        }
        let asked = self.subvolumes.open(inode, process);
        let open = asked.unwrap_or_else(|| self.open_with(file, process));
        self.subvolumes.keep_open(inode, process, open);
        let found = match open {
            Open::One(number) => Some(number),
            Open::Several => None,
            // Who is gone had a file that we have seen, most likely.
            Open::None => {
                let numbers = self.subvolumes.numbers(inode).into_iter();
                let mut seen = numbers.filter(|number| {
                    let key = (file.device, *number);
                    self.known.contains_key(&key) || self.creations.of(key).next().is_some()
                });
                seen.next().filter(|_| seen.next().is_none())
            }
        };
        let Some(inode) = found else { return self.subvolumes.confused() };
        let file = FileKey { inode, ..file };
        self.subvolumes.note(file);
        file
    }

    /// What a process has open with an inode's own number.
    fn open_with(&self, file: FileKey, process: u32) -> Open {
        let entries = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| self.number_at(&entry.path(), file, process));
        numbers.fold(Open::None, |found, number| match found {
            Open::None => Open::One(number),
            Open::One(before) if before == number => found,
            _ => Open::Several,
        })
    }

    /// The file at a path, which may be one of /proc/PID/fd.
    fn at(&self, path: &Path, process: u32) -> Option<(FileKey, Known)> {
        let facts = fs::metadata(path).ok()?;
        let device = self.device_of(path, process).filter(|device| !self.gone.contains(device))?;
        let source = self.source(device)?;
        let target = if path.starts_with("/proc") {
            fs::read_link(path).ok()?
        } else {
            fs::canonicalize(path).ok()?
        };
        let target = file_handle::without_deleted(target, &facts);
        let target = target.filter(|target| !sources::is_made_up(target, &facts));
        let mounts = self.mounts.iter().filter(|mount| mount.device == device);
        let name = target
            .and_then(|target| mounts.filter_map(|mount| mount.inside(&target)).min_by_key(String::len));
        let name = name.map(|path| named(path, facts.is_dir()));
        let handle = file_handle::of(path);
        let generation = file_handle::generation(handle.as_ref());
        let inode = file_handle::number(&facts, handle.as_ref());
        let key = FileKey { device: source.mounted.volume.device, inode, generation };
        let links = Links::of(&facts, self.started);
        let (directory, holds_metadata) = (facts.is_dir(), !facts.is_file());
        // Another filesystem may have the device by now, and another file the number.
        source.mounted.mounts.is_there().then_some(())?;
        Some((key, Known { generation, handle, name, links, directory, holds_metadata, ..Known::default() }))
    }

    fn device_of(&self, path: &Path, process: u32) -> Option<DeviceNumber> {
        mounts::device_of(path, process, &self.mounts, |device| self.source(device).is_some())
    }

    /// Another generation than the file had that was here before.
    fn distinct(&self, key: (DeviceNumber, u64), found: Option<Known>) -> Known {
        let before = self.ended.get(&key).copied();
        match (found, before) {
            (Some(found), Some(before)) if found.generation == before => {
                Known { generation: before.wrapping_add(1), ..found }
            }
            (Some(found), _) => found,
            (None, before) => {
                Known { generation: before.map_or(0, |before| before.wrapping_add(1)), ..Known::default() }
            }
        }
    }
}

#[cfg(test)]
#[path = "tests/files.rs"]
mod tests;
