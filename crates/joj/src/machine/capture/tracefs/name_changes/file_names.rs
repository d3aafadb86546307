//! Names that files get and lose on the watched filesystems, with their directories.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use joj_analysis::trace::event::{DeviceNumber, FileKey};

use crate::machine::capture::tracefs::filesystems::volumes::Mounted;
use crate::machine::files::file_handle::{self, Handle};
use crate::machine::files::file_watch::{Change, Watch};

/// A change, and the name from the filesystem's root; its last part alone where the directory is gone already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The filesystem.
    pub device: DeviceNumber,
    /// What happened.
    pub change: Change,
    /// The name.
    pub path: String,
    /// The name before, where it was renamed.
    pub before: Option<String>,
    /// Directories may have had other names then: the kernel makes one of equal moves, and one had a name again.
    pub unsure: bool,
}

impl Seen {
    /// The file.
    pub fn file(&self) -> FileKey {
        FileKey { device: self.device, inode: self.change.inode, generation: self.change.generation }
    }

    /// True where this file and that one got each other's names (renameat2 with RENAME_EXCHANGE): one call, and two changes.
    pub fn is_exchanged_with(&self, other: &Self) -> bool {
        self.device == other.device
            && self.change.inode != other.change.inode
            && self.before.as_ref() == Some(&other.path)
            && other.before.as_ref() == Some(&self.path)
    }

    /// What a file is called after this change that had this name before it; `None` where it keeps its name.
    pub fn name_after(&self, inode: u64, name: &str) -> Option<String> {
        self.moved(inode, name, self.before.as_deref()?, &self.path)
    }

    /// What a file was called before this change that has this name after it; `None` where it had the same.
    fn name_before(&self, inode: u64, name: &str) -> Option<String> {
        self.moved(inode, name, &self.path, self.before.as_deref()?)
    }

    fn moved(&self, inode: u64, name: &str, from: &str, to: &str) -> Option<String> {
        let rest = name.strip_prefix(from)?;
        let is_meant = if self.change.directory {
            rest.is_empty() || rest.starts_with('/')
        } else {
            rest.is_empty() && inode == self.change.inode
        };
        is_meant.then(|| format!("{to}{rest}"))
    }
}

/// What a file was called before these changes, the newest first, by what it is called after them.
pub fn name_before<'a>(mut name: String, inode: u64, newest_first: impl Iterator<Item = &'a Seen>) -> String {
    let mut undone: Option<&Seen> = None;
    for change in newest_first {
        // Where two got each other's names, one of the two is meant.
        if undone.take().is_some_and(|last| last.is_exchanged_with(change)) {
            continue;
        }
        if let Some(had) = change.name_before(inode, &name) {
            name = had;
            undone = Some(change);
        }
    }
    name
}

/// So often the watch is asked again for what happened while files were asked for their names.
pub const LOOKS_MAX: usize = 8;

/// Directories that were removed: in which directory each was, and its name there.
type Gone = HashMap<Handle, (Handle, String)>;

#[derive(Debug)]
struct Watched {
    mounted: Mounted,
    watch: Watch,
    /// What directories are called, since the last move of one.
    directories: HashMap<Handle, String>,
}

/// The watched filesystems.
#[derive(Debug, Default)]
pub struct FileNames {
    watched: Vec<Watched>,
}

impl FileNames {
    /// Begins to watch. The second: what is missed, a sentence each.
    pub fn watch(volumes: &[Mounted]) -> (Self, Vec<String>) {
        let (mut names, mut limits) = (Self::default(), Vec::new());
        for mounted in volumes {
            let mount = &mounted.mount;
            let watch = Watch::new(&mount.mount_point).or_else(|error| match error.kind() {
                // A subvolume's.
                io::ErrorKind::CrossesDevices if mount.kind == "btrfs" => Watch::of_btrfs(&mount.source),
                _ => Err(error),
            });
            match watch {
                Ok(watch) => {
                    names.watched.push(Watched { mounted: mounted.clone(), watch, directories: HashMap::new() });
                }
                Err(error) => limits.push(format!(
                    "cannot watch {} ({error}): files there have a name only where a process still has them open some \
                     0.1 s later (Linux 5.17 and newer can, as CAP_SYS_ADMIN)",
                    mount.mount_point.display()
                )),
            }
        }
        (names, limits)
    }

    /// The watched filesystems.
    pub fn devices(&self) -> Vec<DeviceNumber> {
        self.watched.iter().map(|watched| watched.mounted.mount.device).collect()
    }

    /// Readable where something happened, one for each.
    /// # Errors
    /// EMFILE.
    pub fn descriptors(&self) -> io::Result<Vec<OwnedFd>> {
        self.watched.iter().map(|watched| watched.watch.descriptor()).collect()
    }

    /// What changed since the last call, in order for each filesystem. True if the kernel threw some away.
    pub fn changes(&mut self) -> (Vec<Seen>, bool) {
        let (mut seen, mut lost) = (Vec::new(), false);
        for watched in &mut self.watched {
            let (changes, overflow) = watched.changes();
            lost |= overflow;
            seen.extend(changes);
        }
        (seen, lost)
    }
}

impl Watched {
    /// What changed, with the names of that time. A directory can only be asked what it is called now: what happened to it since
    /// is undone, so that the newest change is named first.
    fn changes(&mut self) -> (Vec<Seen>, bool) {
        let (mut changes, mut lost) = self.drain();
        if changes.iter().any(is_move) {
            self.directories.clear();
        }
        // A directory that is moved between a look and its question is in the next look, whichever name it told.
        let mut asked = 0;
        for _ in 0..LOOKS_MAX {
            for change in &changes[asked..] {
                self.ask(&change.parent);
                change.before.iter().for_each(|(parent, _)| self.ask(parent));
            }
            asked = changes.len();
            let (more, overflow) = self.drain();
            lost |= overflow;
            if more.is_empty() {
                break;
            }
            // What was told may be from before such a move, and what came behind it is called otherwise.
            if more.iter().any(is_move) {
                self.directories.clear();
                asked = 0;
            }
            changes.extend(more);
        }
        let gone = changes.iter().filter(|change| change.directory && change.deleted);
        let gone: Gone =
            gone.map(|gone| (gone.handle.clone(), (gone.parent.clone(), gone.name.clone()))).collect();
        let unsure = has_a_name_again(&changes);
        let (mut seen, mut moved) = (Vec::new(), Vec::new());
        for change in changes.into_iter().rev() {
            let path = self.path(&change.parent, &change.name, &moved, &gone);
            let before = change.before.as_ref();
            let before = before.map(|(parent, name)| self.path(parent, name, &moved, &gone));
            let is_move = is_move(&change);
            let one = Seen { device: self.mounted.mount.device, change, path, before, unsure };
            if is_move {
                moved.push(one.clone());
            }
            seen.push(one);
        }
        if !moved.is_empty() || !gone.is_empty() {
            self.directories.clear();
        }
        seen.reverse();
        (seen, lost)
    }

    fn drain(&mut self) -> (Vec<Change>, bool) {
        self.watch.changes().unwrap_or((Vec::new(), true))
    }

    /// Learns what a directory is called now.
    fn ask(&mut self, directory: &Handle) {
        if self.directories.contains_key(directory) {
            return;
        }
        let found = self
            .mounted
            .directory()
            .and_then(|top| self.mounted.path_of(&file_handle::open(&top, directory.0, &directory.1).ok()?));
        if let Some(path) = found.and_then(|path| self.mounted.mount.inside(&path)) {
            self.directories.insert(directory.clone(), path);
        }
    }

    /// The name in a directory, before these moves, the newest first. The last part alone where nobody knows the directory.
    fn path(&self, parent: &Handle, name: &str, moved: &[Seen], gone: &Gone) -> String {
        let mut parts = vec![name];
        let mut parent = parent;
        // A directory that is gone by now is called as it was when it went.
        while let (None, Some((above, name))) = (self.directories.get(parent), gone.get(parent)) {
            parts.push(name);
            parent = above;
            if parts.len() > gone.len() + 1 {
                break;
            }
        }
        let Some(top) = self.directories.get(parent) else { return name.to_owned() };
        let mut path = PathBuf::from(name_before(top.clone(), 0, moved.iter()));
        path.extend(parts.iter().rev());
        path.to_string_lossy().into()
    }
}

/// True where a directory came back to a name: of its moves some may be missing, and those that are there may have happened later.
fn has_a_name_again(changes: &[Change]) -> bool {
    let mut lost: HashSet<(&Handle, &Handle, &str)> = HashSet::new();
    changes.iter().filter(|change| is_move(change)).any(|change| {
        lost.extend(change.before.iter().map(|(parent, name)| (&change.handle, parent, name.as_str())));
        lost.contains(&(&change.handle, &change.parent, change.name.as_str()))
    })
}

/// True where files below have other names afterwards.
fn is_move(change: &Change) -> bool {
    change.directory && change.before.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_comes_back_to_a_name_makes_the_others_unsure() {
        let handle = |number: u8| (1, vec![number]);
        let moved = |directory: u8, before: &str, name: &str| Change {
            inode: directory.into(),
            generation: 1,
            handle: handle(directory),
            directory: true,
            created: false,
            deleted: false,
            thread: 1,
            parent: handle(2),
            name: name.to_owned(),
            before: Some((handle(2), before.to_owned())),
        };
        assert!(!has_a_name_again(&[moved(5, "p", "q"), moved(6, "r", "p"), moved(5, "q", "s")]));
        assert!(has_a_name_again(&[moved(5, "p", "q"), moved(6, "r", "p"), moved(5, "q", "p")]));
        let file = Change { directory: false, ..moved(7, "b", "a") };
        assert!(!has_a_name_again(&[Change { directory: false, ..moved(7, "a", "b") }, file]));
    }
}
