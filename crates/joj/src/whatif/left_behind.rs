//! What runs of a program leave: mounts in their copies, and processes. It is cleared away, so that no run sees another's, and named. So is
//! what their copies lacked from the begin.

use std::collections::{BTreeMap, BTreeSet};

use crate::machine::files::mounts;
use crate::show::text::count;
use crate::whatif::directory_copy::attributes::NotTaken;
use crate::whatif::directory_copy::place::CopyPlace;
use crate::whatif::left_processes::LeftProcesses;
use crate::whatif::memory::SHARED_MEMORY;

/// What all runs together left so far.
#[derive(Debug)]
pub struct LeftBehind {
    processes: LeftProcesses,
    ended: u64,
    /// Where in its copy the program left something mounted.
    mounted: BTreeSet<String>,
    /// Attributes that copies lacked, by where they were.
    not_taken: BTreeMap<&'static str, NotTaken>,
    /// Copies that could not be removed, and why.
    kept: Vec<String>,
}

impl LeftBehind {
    /// From now on.
    pub fn watch() -> LeftBehind {
        LeftBehind {
            processes: LeftProcesses::adopt(),
            ended: 0,
            mounted: BTreeSet::new(),
            not_taken: BTreeMap::new(),
            kept: Vec::new(),
        }
    }

    /// Ahead of a program's run: its copy lacks this of the original.
    pub fn copied(&mut self, copy: &CopyPlace, not_taken: NotTaken) {
        let is_in_memory = copy.whole().starts_with(SHARED_MEMORY);
        let known =
            self.not_taken.entry(if is_in_memory { "in /dev/shm" } else { "on the disk" }).or_default();
        if not_taken.files > known.files {
            *known = not_taken;
        }
    }

    /// Behind the end of a program in a copy: ends the processes that it left, and unmounts what they mounted there.
    pub fn clear(&mut self, copy: &CopyPlace) {
        self.ended += self.processes.end();
        let whole = copy.path().canonicalize().unwrap_or_else(|_| copy.path().to_owned());
        for point in mounts::detach_within(copy.whole()) {
            let name = point.strip_prefix(&whole).unwrap_or(&point).display().to_string();
            self.mounted.insert(if name.is_empty() { ".".to_owned() } else { name });
        }
    }

    /// Removes a copy.
    pub fn remove(&mut self, copy: CopyPlace) {
        let path = copy.whole().display().to_string();
        if let Err(error) = copy.remove() {
            self.kept.push(format!("The copy {path} stays: {error}."));
        }
    }

    /// What to know of it.
    pub fn notes(self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.ended > 0 {
            let what = match self.ended {
                1 => "1 process that was".to_owned(),
                ended => format!("{} processes that were", count(ended)),
            };
            notes.push(format!(
                "When the program ended, in all of its runs together, it left {what} still at work: joj ended them, and no time has them."
            ));
        }
        if !self.mounted.is_empty() {
            let points: Vec<String> = self.mounted.into_iter().collect();
            let points = points.join(", ");
            notes.push(format!(
                "The program left something mounted in its copy of the directory ({points}): joj unmounted it, and deleted nothing behind it."
            ));
        }
        for (place, NotTaken { files, first }) in self.not_taken {
            let Some(first) = first else { continue };
            let files = if files == 1 { "1 file".to_owned() } else { format!("{} files", count(files)) };
            notes.push(format!(
                "The copies {place} lack extended attributes or ACLs of {files}, as they cannot be set there. The first is {first}."
            ));
        }
        notes.extend(self.kept);
        notes
    }
}
