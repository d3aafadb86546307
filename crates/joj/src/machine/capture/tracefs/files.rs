//! Which file an inode number stands for: its generation, its name, and whether it is a directory. Trace records have the
//! number only.
//!
//! Asked, in this order: the watch of its filesystem (which sees every creation), its number itself (ext4 finds a file
//! by it), and the descriptors of the process that uses it. A file that was deleted before anybody could be asked has no name,
//! and the generation is one more than its predecessor's: a number that tells them apart, not the kernel's.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use joj_analysis::trace::event::{DeviceNumber, Event, EventKind, FileKey};
use joj_analysis::trace::ftrace::volume::Volume;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::machine::capture::tracefs::changes::Creations;
use crate::machine::capture::tracefs::file_names::{FileNames, Seen};
use crate::machine::capture::tracefs::links::Links;
use crate::machine::capture::tracefs::places::Places;
use crate::machine::capture::tracefs::volumes::{self, Mounted};
use crate::machine::devices::disks;
use crate::machine::files::file_handle;
use crate::machine::files::file_watch::Change;
use crate::machine::files::mounts::Mount;
use crate::machine::proc::clock;

/// A file of none of the filesystems that are captured.
pub const ELSEWHERE: FileKey = FileKey { device: DeviceNumber(u32::MAX), inode: 1, generation: 0 };

/// What is known of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// `i_generation`, or a number that tells it from others that had its inode number.
    pub generation: u32,
    /// Its last name, from the filesystem's root; a directory's ends with a slash.
    pub name: Option<String>,
    /// Its other names.
    pub links: Links,
    /// Directories have extents too, which hold metadata.
    pub directory: bool,
    /// The watch saw it being created.
    pub created: bool,
    /// True once its name was handed on.
    pub told: bool,
    /// True once somebody asked where it lies, or saw it from its first block on.
    pub placed: bool,
}

impl Known {
    /// As the watch saw it, with this name.
    fn seen(change: &Change, path: &str) -> Self {
        Self {
            generation: change.generation,
            name: Some(named(path.to_owned(), change.directory)),
            links: Links::default(),
            directory: change.directory,
            created: change.created,
            told: false,
            placed: change.created,
        }
    }
}

/// A name as it is handed on.
fn named(mut path: String, is_directory: bool) -> String {
    if is_directory && !path.ends_with('/') {
        path.push('/');
    }
    path
}

/// The events without which nobody tells that a number was given to a new file, by the beginning of a filesystem's name.
const CREATIONS: [(&str, &[&str]); 3] = [
    ("ext", &["events/ext4/ext4_allocate_inode"]),
    ("xfs", &["events/xfs/xfs_create", "events/xfs/xfs_iget_miss"]),
    ("btrfs", &["events/btrfs/btrfs_inode_new"]),
];

/// A filesystem whose files can be asked for.
#[derive(Debug)]
struct Source {
    mounted: Mounted,
    places: Places,
    /// Records tell when a number is given to a new file.
    tells_creations: bool,
    /// The mount point's inode number; 0 on Btrfs, where each subvolume has one of that number.
    top: u64,
}

impl Source {
    /// ext2 and ext3 are mounted by the same driver. It does not tell where it writes what it wrote before.
    fn is_ext4(&self) -> bool {
        self.mounted.mount.kind.starts_with("ext")
    }

    /// Whose removals are told by records of the thread that removes.
    fn tells_removals(&self) -> bool {
        self.is_ext4() || self.mounted.mount.kind == "f2fs"
    }

    /// Whose own records name the file of each sync call. /proc would be asked later, when the descriptor may be another file's.
    fn tells_syncs(&self) -> bool {
        self.is_ext4() || matches!(self.mounted.mount.kind.as_str(), "xfs" | "btrfs" | "f2fs")
    }

    /// XFS's requests say themselves that they carry a directory (REQ_META); to F2FS a directory's blocks are data.
    fn places_directories(&self) -> bool {
        matches!(self.mounted.mount.kind.as_str(), "xfs" | "f2fs")
    }
}

/// Every file that was seen.
#[derive(Debug, Default)]
pub struct Files {
    /// When the watch began.
    started: Option<SystemTime>,
    sources: Vec<Source>,
    mounts: Vec<Mount>,
    known: FxHashMap<(DeviceNumber, u64), Known>,
    watch: FileNames,
    /// Files that the watch saw and whose creation no record told yet.
    creations: Creations<Known>,
    /// Made since the start, and not yet asked for.
    young: FxHashSet<(DeviceNumber, u64)>,
    /// Generations of files that are gone.
    ended: FxHashMap<(DeviceNumber, u64), u32>,
}

impl Files {
    /// Knows the files of these volumes, of which these events tell. The second: what is missed, a sentence each.
    pub fn new(mounts: Vec<Mount>, volumes: &[Mounted], events: &[String]) -> (Self, Vec<String>) {
        let (disks, mut unplaced) = (disks::list(), Vec::new());
        let sources = volumes.iter().map(|mounted| {
            let top = mounted.top.filter(|_| mounted.mount.kind != "btrfs").map_or(0, |(_, inode)| inode);
            let tells = |event: &&str| events.iter().any(|path| path == event);
            let creation = CREATIONS.iter().find(|(kind, _)| mounted.mount.kind.starts_with(kind));
            let tells_creations = creation.is_some_and(|(_, events)| events.iter().all(tells));
            let places = Places::of(mounted, &disks).unwrap_or_else(|missed| {
                unplaced.push(missed);
                Places::default()
            });
            Source { mounted: mounted.clone(), places, tells_creations, top }
        });
        let sources = sources.collect();
        let (watch, mut limits) = FileNames::watch(volumes);
        limits.extend(unplaced);
        let started = Some(SystemTime::now());
        (Self { started, sources, mounts, watch, ..Self::default() }, limits)
    }

    /// Takes what the watch saw. Renamings and removals are handed back: their times are yet to be found. True if the kernel
    /// threw some away. To be called when the records up to now were read and not yet used: a record of a creation is there
    /// before the watch sees it, and waits longer.
    pub fn look(&mut self, lost: &mut bool) -> (u64, Vec<Seen>) {
        let (seen, some_lost) = self.watch.changes();
        let now_ns = clock::shared_ns();
        *lost |= some_lost;
        let mut later = Vec::new();
        for seen in seen {
            if seen.change.created {
                self.saw_creation(now_ns, &seen);
            }
            if seen.change.deleted
                && let Some(had) = self.had((seen.device, seen.change.inode), seen.change.generation)
            {
                had.links.note_going(&seen.path);
            }
            if seen.change.deleted || !seen.change.created {
                later.push(Seen { change: Change { created: false, ..seen.change }, ..seen });
            }
        }
        (now_ns, later)
    }

    fn saw_creation(&mut self, now_ns: u64, seen: &Seen) {
        let Seen { device, change, path, .. } = seen;
        let key = (*device, change.inode);
        // A file that we have got a link: another name, and no number.
        if let Some(had) = self.had(key, change.generation).filter(|had| !had.links.is_born()) {
            had.links.add(path.clone());
            return;
        }
        let known = Known::seen(change, path);
        if self.source(*device).is_some_and(|source| source.tells_creations) {
            self.creations.push(key, now_ns, known);
        } else {
            self.known.insert(key, known);
        }
    }

    /// A file has another name, or a name less: the event for it, where no record tells, and the name.
    pub fn changed(&mut self, seen: Seen) -> Option<(Event, String)> {
        let Seen { device, change, path, before } = seen;
        let path = named(path, change.directory);
        let key = (device, change.inode);
        let file = FileKey { device, inode: change.inode, generation: change.generation };
        let source = self.source(device);
        let tells_removals = source.is_some_and(Source::tells_removals);
        let event = |kind| Event { kind, file, ..Event::default() };
        let Some(Known { links, name, directory, .. }) = self.had(key, change.generation) else {
            if change.deleted {
                // Its number may be another's by now.
                return (!tells_removals).then(|| (event(EventKind::Unlinked), path));
            }
            self.known.insert(key, Known::seen(&change, &path));
            return Some((event(EventKind::Named), path));
        };
        let shown = name.clone();
        if !change.deleted {
            let before = before.map(|before| named(before, *directory));
            links.rename(name, before.as_deref(), path);
        } else if !links.remove(name, &path) {
            return (!tells_removals).then(|| (event(EventKind::Unlinked), path));
        }
        let now = name.clone().filter(|_| *name != shown)?;
        Some((event(EventKind::Named), now))
    }

    /// The file that we have under a number, or shall have when a record tells of its creation.
    fn had(&mut self, key: (DeviceNumber, u64), generation: u32) -> Option<&mut Known> {
        let waiting = self.creations.of(key).find(|waiting| waiting.generation == generation);
        waiting.or_else(|| self.known.get_mut(&key).filter(|had| had.generation == generation))
    }

    /// The file behind a number; asks once.
    pub fn identify(&mut self, file: FileKey, process: u32) -> &mut Known {
        let key = (file.device, file.inode);
        if !self.known.contains_key(&key) {
            let found = self.by_number(file).or_else(|| self.by_process(file, process));
            // Who has the number now got it later than this event.
            let mut is_later =
                |found: &Known| self.creations.of(key).any(|new| new.generation == found.generation);
            let found = found.filter(|found| !is_later(found));
            let found = self.distinct(key, found);
            let placed = found.placed || self.young.remove(&key);
            self.known.insert(key, Known { placed, ..found });
        }
        self.known.entry(key).or_default()
    }

    /// True where blocks of directories would pass for data if their places were known. On XFS requests say what they are; and
    /// the file that had a directory's number before might not be known from it: nothing there tells when a number changes hands.
    pub fn hides_directories(&self, device: DeviceNumber) -> bool {
        !self.source(device).is_some_and(Source::places_directories)
    }

    /// True where the watch will say which file the number was given to at this time, and has not yet.
    pub fn awaits_creation(&mut self, file: FileKey, time_ns: u64) -> bool {
        let is_told = self.source(file.device).is_some_and(|source| source.tells_creations);
        if !is_told || !self.watch.sees(file.device) {
            return false;
        }
        !self.creations.has((file.device, file.inode), time_ns)
    }

    /// The number was given to a new file at this time.
    pub fn created(&mut self, file: FileKey, directory: bool, time_ns: u64) {
        let key = (file.device, file.inode);
        // Whoever had the number is gone.
        self.ended(file);
        let seen = self.creations.take(key, time_ns);
        match seen {
            Some(seen) => {
                self.known.insert(key, Known { directory: directory || seen.directory, ..seen });
            }
            // Who has it now is asked when it is used.
            None => {
                self.young.insert(key);
            }
        }
    }

    /// The file is gone.
    pub fn ended(&mut self, file: FileKey) {
        let key = (file.device, file.inode);
        if let Some(gone) = self.known.remove(&key) {
            self.ended.insert(key, gone.generation);
        }
    }

    /// True where the number's last owner is gone, and nobody saw another. Whoever asks for it now asks in vain, and at length.
    pub fn is_gone(&self, file: FileKey) -> bool {
        let key = (file.device, file.inode);
        self.ended.contains_key(&key) && !self.known.contains_key(&key) && !self.young.contains(&key)
    }

    /// The file behind a thread's descriptor, and what is known of it; none where that filesystem would have named it itself, if such a
    /// call is named: then the descriptor was another file's when the call was made.
    pub fn by_descriptor(&mut self, thread: u32, descriptor: u32, is_named: bool) -> FileKey {
        let path = PathBuf::from(format!("/proc/{thread}/fd/{descriptor}"));
        let Some((key, known)) = self.at(&path, thread) else {
            return if path.exists() { ELSEWHERE } else { FileKey::NONE };
        };
        if is_named && self.source(key.device).is_some_and(Source::tells_syncs) {
            return FileKey::NONE;
        }
        let known = self.known.entry((key.device, key.inode)).or_insert(known);
        FileKey { generation: known.generation, ..key }
    }

    /// Learns a file by its path. Its name, where it has blocks: no record may ever name it, as when sync(2) writes them. And
    /// where it lies.
    pub fn learn(&mut self, path: &Path) -> (Option<(Event, String)>, Vec<Event>) {
        let Some((key, known)) = self.at(path, 0) else { return (None, Vec::new()) };
        let place = (key.device, key.inode);
        let known = self.known.entry(place).or_insert(known);
        known.placed = true;
        let key = FileKey { generation: known.generation, ..key };
        if known.directory {
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
        if !self.source(file.device).is_some_and(Source::is_ext4) {
            return Vec::new();
        }
        let known = self.identify(file, process);
        if known.placed || known.directory {
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
            let Some(now) = volumes::volume(&source.mounted.mount) else { continue };
            if now.volume != source.mounted.volume {
                source.mounted.volume = now.volume.clone();
                changed.push(now.volume);
            }
        }
        changed
    }

    fn extents(&self, file: FileKey, path: Option<&Path>) -> Vec<Event> {
        let source = self.source(file.device);
        source.map_or_else(Vec::new, |source| source.places.extents(&source.mounted, file, path))
    }

    fn source(&self, device: DeviceNumber) -> Option<&Source> {
        self.sources.iter().find(|source| source.mounted.volume.device == device)
    }

    /// A descriptor that names the file.
    fn find(&self, file: FileKey) -> Option<File> {
        let source = self.source(file.device)?;
        if file.inode == source.top {
            return source.mounted.directory();
        }
        // Elsewhere a handle needs the generation, which is what we want to know. F2FS would do without, but takes a number that
        // is no inode's for damage: from then on it writes in other ways, and asks for fsck (f2fs_check_nid_range).
        source.is_ext4().then_some(())?;
        file_handle::open_inode(&source.mounted.directory()?, file.inode, 0).ok()
    }

    fn by_number(&self, file: FileKey) -> Option<Known> {
        let found = self.find(file)?;
        let facts = found.metadata().ok()?;
        let descriptor = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&found));
        let path = fs::read_link(&descriptor).ok();
        let Source { mounted, top, .. } = self.source(file.device)?;
        let mount = &mounted.mount;
        // Where the kernel has no name in memory, it calls the file by the mount's own name.
        let nameless = |path: &Path| path == mount.mount_point || path == Path::new("/");
        let path = path.filter(|path| file.inode == *top || !nameless(path));
        Some(Known {
            generation: file_handle::generation(Path::new(&descriptor)).unwrap_or(0),
            name: path
                .and_then(|path| mount.inside(&without_deleted(path, &facts)))
                .map(|path| named(path, facts.is_dir())),
            links: Links::of(&facts, self.started),
            directory: facts.is_dir(),
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
        let is_file = |path: &PathBuf| {
            let same_number = fs::metadata(path).is_ok_and(|facts| facts.ino() == file.inode);
            same_number && self.device_of(path, process) == Some(file.device)
        };
        entries.map(|entry| entry.path()).find(is_file)
    }

    /// The file at a path, which may be one of /proc/PID/fd.
    fn at(&self, path: &Path, process: u32) -> Option<(FileKey, Known)> {
        let facts = fs::metadata(path).ok()?;
        let device = self.device_of(path, process)?;
        let source = self.source(device)?;
        let target = if path.starts_with("/proc") {
            fs::read_link(path).ok()?
        } else {
            fs::canonicalize(path).ok()?
        };
        let target = without_deleted(target, &facts);
        let inside = self.mounts.iter().filter(|mount| mount.device == device);
        let name = inside.filter_map(|mount| mount.inside(&target)).min_by_key(String::len);
        let name = name.map(|path| named(path, facts.is_dir()));
        let generation = file_handle::generation(path).unwrap_or(0);
        let key = FileKey { device: source.mounted.volume.device, inode: facts.ino(), generation };
        let (links, directory) = (Links::of(&facts, self.started), facts.is_dir());
        Some((key, Known { generation, name, links, directory, ..Known::default() }))
    }

    /// `s_dev`: what stat says, but for Btrfs, where each subvolume has a device number of its own.
    fn device_of(&self, path: &Path, process: u32) -> Option<DeviceNumber> {
        let device = fs::metadata(path).ok()?.dev();
        let device = DeviceNumber::new(rustix::fs::major(device), rustix::fs::minor(device))?;
        if self.source(device).is_some() {
            return Some(device);
        }
        if let Ok(descriptor) = path.strip_prefix(format!("/proc/{process}/fd")) {
            let facts =
                fs::read_to_string(format!("/proc/{process}/fdinfo/{}", descriptor.display())).ok()?;
            let number: u64 =
                facts.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok())?;
            return self.mounts.iter().find(|mount| mount.identity == number).map(|mount| mount.device);
        }
        let path = fs::canonicalize(path).ok()?;
        let holding = self.mounts.iter().filter(|mount| path.starts_with(&mount.mount_point));
        holding.max_by_key(|mount| mount.mount_point.as_os_str().len()).map(|mount| mount.device)
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

/// The kernel marks the path of a file without a name.
fn without_deleted(path: PathBuf, facts: &fs::Metadata) -> PathBuf {
    if facts.nlink() > 0 {
        return path;
    }
    let bytes = path.as_os_str().as_bytes();
    bytes.strip_suffix(b" (deleted)").map_or_else(|| path.clone(), |name| OsStr::from_bytes(name).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_nobodys_between_two_files() {
        let file = FileKey { device: DeviceNumber(8), inode: 12, generation: 0 };
        let mut files = Files::default();
        assert!(!files.is_gone(file), "nobody said anything of it");
        files.identify(file, 0);
        assert!(!files.is_gone(file));
        files.ended(file);
        assert!(files.is_gone(file));
        files.created(file, false, 0);
        assert!(!files.is_gone(file), "another has it");
        files.identify(file, 0);
        files.ended(file);
        assert!(files.is_gone(file));
    }
}
