//! Files whose names are not known for a while: the watch and the calls do not say in which order they came and went.

use joj_analysis::trace::event::{DeviceNumber, FileKey};
use rustc_hash::FxHashMap;

use crate::machine::capture::tracefs::name_changes::file_names::Seen;

/// A file whose name is not known, as one of its changes, and since when.
pub type Doubtful = (u64, Seen);

/// Until when what is not known.
#[derive(Debug, Default)]
pub struct Doubts {
    /// By filesystem and number: the file's generation, and until when.
    files: FxHashMap<(DeviceNumber, u64), (u32, u64)>,
    /// What directories were called, perhaps.
    directories: Vec<(DeviceNumber, String, u64)>,
}

impl Doubts {
    /// A file's name is not known until then. Returns until when it was not known before, if that was after `from_ns`: what it was called
    /// at that time is in doubt now, too.
    pub fn note(&mut self, file: FileKey, from_ns: u64, until_ns: u64) -> Option<u64> {
        let before = self.files.insert((file.device, file.inode), (file.generation, until_ns));
        let (generation, before_ns) = before?;
        (generation == file.generation && (from_ns..until_ns).contains(&before_ns)).then_some(before_ns)
    }

    /// Nor are those of files below these names, if the file is a directory.
    pub fn note_below(&mut self, device: DeviceNumber, names: Vec<String>, until_ns: u64) {
        self.directories.extend(names.into_iter().map(|name| (device, name, until_ns)));
    }

    /// True where nobody knows what this file was called at this time.
    pub fn has(&self, file: FileKey, time_ns: u64) -> bool {
        let found = self.files.get(&(file.device, file.inode));
        found.is_some_and(|(generation, until_ns)| *generation == file.generation && time_ns < *until_ns)
    }

    /// True for a name below a directory that was perhaps called so, or is now.
    pub fn is_below(&self, device: DeviceNumber, name: &str) -> bool {
        self.directories
            .iter()
            .any(|(of, directory, _)| *of == device && rest_below(name, directory).is_some())
    }

    /// True where nobody knows for a while what files below some directory of this filesystem are called.
    pub fn has_any_below(&self, device: DeviceNumber) -> bool {
        self.directories.iter().any(|(of, ..)| *of == device)
    }

    /// What was before this time is not asked for any more.
    pub fn forget(&mut self, before_ns: u64) {
        self.files.retain(|_, (_, until_ns)| *until_ns >= before_ns);
        self.directories.retain(|(.., until_ns)| *until_ns >= before_ns);
    }
}

/// A name's part behind that of a directory above.
pub fn rest_below<'a>(name: &'a str, directory: &str) -> Option<&'a str> {
    name.strip_prefix(directory)?.strip_prefix('/').filter(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubt_is_about_one_file_and_ends() {
        let mut doubts = Doubts::default();
        let file = FileKey { device: DeviceNumber(8), inode: 12, generation: 3 };
        assert_eq!(doubts.note(file, 50, 100), None);
        assert!(doubts.has(file, 99) && !doubts.has(file, 100));
        assert!(!doubts.has(FileKey { generation: 4, ..file }, 99), "another file that had the number");
        doubts.note_below(DeviceNumber(8), vec!["/a".to_owned()], 100);
        let is_below = |doubts: &Doubts, device, name| doubts.is_below(DeviceNumber(device), name);
        assert!(is_below(&doubts, 8, "/a/x") && is_below(&doubts, 8, "/a/b/x"));
        assert!(
            !is_below(&doubts, 8, "/ab/x") && !is_below(&doubts, 8, "/a/") && !is_below(&doubts, 9, "/a/x")
        );
        doubts.forget(100);
        assert!(is_below(&doubts, 8, "/a/x"), "what happened at its end may be asked for");
        assert_eq!(doubts.note(FileKey { generation: 4, ..file }, 50, 100), None);
        assert_eq!(doubts.note(FileKey { generation: 4, ..file }, 90, 110), Some(100));
        doubts.forget(111);
        assert!(!is_below(&doubts, 8, "/a/x") && !doubts.has(file, 99));
    }
}
