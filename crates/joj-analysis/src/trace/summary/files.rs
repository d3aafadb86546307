//! Which files the bytes are of: those that are there one by one, those that are gone by their names.
//!
//! Invariants: 1. Two files that are there at the same time have two rows, also when one got its name from the other. 2. What is kept
//! grows with the files that are there and with names, not with files that came and went: a journal that SQLite makes for each
//! transaction is one row.

use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::Serialize;

use crate::trace::attribution::request::BlockRun;
use crate::trace::event::{DeviceNumber, FileKey};
use crate::trace::header::Header;
use crate::trace::summary::counts::RequestCount;
use crate::trace::texts::{Text, Texts};

/// So many files are named; the rest is summed.
const FILES_NAMED: usize = 25;
/// So many are told apart by what they are; those beyond by their names alone.
const THERE_MAX: usize = 1 << 16;

/// A file and what was written to it.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Default)]
pub struct FileVolume {
    /// Path, or what is known of it. Files that share it have what tells them apart behind it, in brackets.
    pub path: String,
    /// What it is for.
    pub file_type: String,
    /// It was deleted when some of this was written.
    pub deleted: bool,
    /// How many runs were written to the file, and their bytes.
    pub written: RequestCount,
    /// How many runs were read from the file, and their bytes.
    pub read: RequestCount,
}

impl FileVolume {
    fn add(&mut self, more: &Self) {
        self.deleted |= more.deleted;
        for (sum, more) in [(&mut self.written, more.written), (&mut self.read, more.read)] {
            sum.requests += more.requests;
            sum.bytes += more.bytes;
        }
    }
}

/// Counts bytes by file.
#[derive(Debug, Default)]
pub struct FileCounter {
    /// With each name that they had when they were written or read.
    there: HashMap<FileKey, Vec<(Text, FileVolume)>>,
    gone: HashMap<(DeviceNumber, Text), FileVolume>,
}

impl FileCounter {
    /// A run of data.
    pub fn add(&mut self, run: &BlockRun, is_write: bool, texts: &Texts) {
        // Without a generation an inode's number may be another file's by now.
        let is_known = run.file.generation != 0 && run.name != Text::NONE && !run.deleted;
        let has_room = self.there.len() < THERE_MAX || self.there.contains_key(&run.file);
        let new = || FileVolume {
            path: texts.get(run.name).to_owned(),
            file_type: run.file_type.text().to_owned(),
            ..FileVolume::default()
        };
        let file = if is_known && has_room {
            let names = self.there.entry(run.file).or_default();
            let at = names.iter().position(|(name, _)| *name == run.name).unwrap_or_else(|| {
                names.push((run.name, new()));
                names.len() - 1
            });
            &mut names[at].1
        } else {
            let device = if run.name == Text::NONE { DeviceNumber::NONE } else { run.file.device };
            self.gone.entry((device, run.name)).or_insert_with(new)
        };
        file.deleted |= run.deleted;
        if is_write { &mut file.written } else { &mut file.read }.add(run.bytes);
    }

    /// A file has no name any more, or no block.
    pub fn gone(&mut self, file: FileKey) {
        for (name, volume) in self.there.remove(&file).unwrap_or_default() {
            match self.gone.entry((file.device, name)) {
                std::collections::hash_map::Entry::Occupied(mut known) => known.get_mut().add(&volume),
                std::collections::hash_map::Entry::Vacant(free) => {
                    free.insert(volume);
                }
            }
        }
    }

    /// The largest, and how many others there were.
    pub fn finish(self, header: &Header) -> (Vec<FileVolume>, u64) {
        let gone = self.gone.into_iter().map(|((device, _), volume)| (device, None, volume));
        let there = self.there.into_iter().flat_map(|(file, names)| {
            names.into_iter().map(move |(_, volume)| (file.device, Some(file.inode), volume))
        });
        let mut by_path: BTreeMap<String, Vec<(DeviceNumber, Option<u64>, FileVolume)>> = BTreeMap::new();
        for row in gone.chain(there) {
            by_path.entry(row.2.path.clone()).or_default().push(row);
        }
        let mut files: Vec<FileVolume> = by_path.into_values().flat_map(|rows| apart(rows, header)).collect();
        files.sort_by(|a, b| {
            (b.written.bytes, b.read.bytes).cmp(&(a.written.bytes, a.read.bytes)).then(a.path.cmp(&b.path))
        });
        let not_named = files.len().saturating_sub(FILES_NAMED) as u64;
        files.truncate(FILES_NAMED);
        (files, not_named)
    }
}

/// Files of one path, each with what tells it from the others behind it.
fn apart(rows: Vec<(DeviceNumber, Option<u64>, FileVolume)>, header: &Header) -> Vec<FileVolume> {
    let first_device = rows.first().map(|(device, ..)| *device);
    let on_several = rows.iter().any(|(device, ..)| Some(*device) != first_device);
    let count_there = |on| rows.iter().filter(|(device, inode, _)| *device == on && inode.is_some()).count();
    let has_gone = |on| rows.iter().any(|(device, inode, _)| *device == on && inode.is_none());
    let suffix = |device: DeviceNumber, inode: Option<u64>| {
        let mut words = Vec::new();
        match inode {
            Some(inode) if count_there(device) > 1 => words.push(format!("inode {inode}")),
            None if has_gone(device) && count_there(device) > 0 => words.push("deleted before".to_owned()),
            _ => {}
        }
        if on_several {
            let mounted = header.filesystem(device).map(|filesystem| filesystem.mount_point.clone());
            words.push(format!("in {}", mounted.unwrap_or_else(|| device.to_string())));
        }
        if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) }
    };
    let suffixes: Vec<String> = rows.iter().map(|(device, inode, _)| suffix(*device, *inode)).collect();
    let named = |((_, _, volume), suffix): ((_, _, FileVolume), String)| FileVolume {
        path: volume.path + &suffix,
        ..volume
    };
    rows.into_iter().zip(suffixes).map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(inode: u64, generation: u32, name: Text) -> BlockRun {
        let file = FileKey { device: DeviceNumber(1), inode, generation };
        BlockRun { file, name, bytes: 4096, ..BlockRun::default() }
    }

    fn told(files: FileCounter) -> Vec<(String, u64)> {
        let rows = files.finish(&Header::default()).0;
        rows.into_iter().map(|file| (file.path, file.written.bytes)).collect()
    }

    #[test]
    fn files_that_had_the_same_name_are_apart() {
        let (mut files, mut texts) = (FileCounter::default(), Texts::default());
        let [first, second] = ["/v1/x", "/v2/x"].map(|name| texts.keep(name));
        for (inode, name) in [(12, first), (12, second), (12, second), (13, first)] {
            files.add(&run(inode, 5, name), true, &texts);
        }
        let expected = [("/v2/x", 8192), ("/v1/x (inode 12)", 4096), ("/v1/x (inode 13)", 4096)];
        assert_eq!(told(files), expected.map(|(path, bytes)| (path.to_owned(), bytes)));
    }

    #[test]
    fn journals_that_came_and_went_are_one_row_and_no_burden() {
        let (mut files, mut texts) = (FileCounter::default(), Texts::default());
        let name = texts.keep("/x.db-journal");
        for generation in 1..=1000 {
            files.add(&run(9, generation, name), true, &texts);
            files.gone(run(9, generation, name).file);
        }
        assert!(files.there.is_empty());
        files.add(&run(9, 2000, name), true, &texts);
        let expected = [("/x.db-journal (deleted before)", 4_096_000), ("/x.db-journal", 4096)];
        assert_eq!(told(files), expected.map(|(path, bytes)| (path.to_owned(), bytes)));
    }

    #[test]
    fn a_path_on_two_filesystems_is_two_files() {
        let (mut files, mut texts) = (FileCounter::default(), Texts::default());
        let name = texts.keep("/x");
        files.add(&run(9, 1, name), true, &texts);
        let other = FileKey { device: DeviceNumber(2), ..run(9, 1, name).file };
        files.add(&BlockRun { file: other, ..run(9, 1, name) }, true, &texts);
        let expected = [("/x (in 0:1)", 4096), ("/x (in 0:2)", 4096)];
        assert_eq!(told(files), expected.map(|(path, bytes)| (path.to_owned(), bytes)));
    }
}
