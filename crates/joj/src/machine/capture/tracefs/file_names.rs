//! Names that files get and lose on the watched filesystems, with their directories.

use std::collections::HashMap;
use std::fs;
use std::os::fd::AsRawFd;
use std::path::Path;

use joj_analysis::trace::event::DeviceNumber;

use crate::machine::capture::tracefs::volumes::Mounted;
use crate::machine::files::file_handle;
use crate::machine::files::file_watch::{Change, Handle, Watch};

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
}

impl Seen {
    /// True where this file and that one got each other's names (renameat2 with RENAME_EXCHANGE): one call, and two changes.
    pub fn is_exchanged_with(&self, other: &Self) -> bool {
        self.device == other.device
            && self.change.inode != other.change.inode
            && self.before.as_ref() == Some(&other.path)
            && other.before.as_ref() == Some(&self.path)
    }
}

#[derive(Debug)]
struct Watched {
    mounted: Mounted,
    watch: Watch,
    parents: HashMap<Handle, String>,
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
            match Watch::new(&mount.mount_point) {
                Ok(watch) => {
                    names.watched.push(Watched { mounted: mounted.clone(), watch, parents: HashMap::new() });
                }
                Err(error) => limits.push(format!(
                    "cannot watch {} ({error}): files that live there for less than the time between two polls have \
                     no name; Linux 5.17 and newer can (FAN_REPORT_TARGET_FID)",
                    mount.mount_point.display()
                )),
            }
        }
        (names, limits)
    }

    /// True for a filesystem that is watched.
    pub fn sees(&self, device: DeviceNumber) -> bool {
        self.watched.iter().any(|watched| watched.mounted.mount.device == device)
    }

    /// What changed since the last call, in order for each filesystem. True if the kernel threw some away.
    pub fn changes(&mut self) -> (Vec<Seen>, bool) {
        let (mut seen, mut lost) = (Vec::new(), false);
        for watched in &mut self.watched {
            let (changes, overflow) = watched.watch.changes().unwrap_or((Vec::new(), true));
            lost |= overflow;
            for change in changes {
                let path = watched.path(&change.parent, &change.name);
                let before = change.before.as_ref().map(|(parent, name)| watched.path(parent, name));
                if change.directory {
                    watched.parents.clear();
                }
                seen.push(Seen { device: watched.mounted.mount.device, change, path, before });
            }
        }
        (seen, lost)
    }
}

impl Watched {
    fn path(&mut self, parent: &Handle, name: &str) -> String {
        let parent = self.parents.get(parent).cloned().or_else(|| {
            let opened = file_handle::open(&self.mounted.directory()?, parent.0, &parent.1).ok()?;
            let path = fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd())).ok()?;
            let path = self.mounted.mount.inside(&path)?;
            self.parents.insert(parent.clone(), path.clone());
            Some(path)
        });
        parent
            .map_or_else(|| name.to_owned(), |parent| Path::new(&parent).join(name).to_string_lossy().into())
    }
}
