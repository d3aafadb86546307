//! Files whose names are not known for a while: the watch and the calls do not say in which order they came and went.

use joj_analysis::trace::event::{DeviceNumber, FileKey};
use rustc_hash::FxHashMap;

use crate::machine::capture::tracefs::name_changes::file_names::Seen;

/// A file whose name is not known, as one of its changes, and since when.
pub type Doubtful = (u64, Seen);

/// A directory that was renamed, at a time that is not known.
#[derive(Debug)]
pub struct Moved {
    /// The directory.
    pub directory: FileKey,
    /// When it was renamed first, at the earliest.
    pub from_ns: u64,
    /// What it was called, in order.
    pub names: Vec<String>,
    /// What it is called since the last look.
    pub now: Option<String>,
}

impl Moved {
    /// True for the name of a file that was perhaps below it, or is.
    pub fn may_hold(&self, device: DeviceNumber, name: &str) -> bool {
        let mut names = self.names.iter().chain(&self.now);
        device == self.directory.device && names.any(|above| rest_below(name, above).is_some())
    }

    /// What a file is called now that had this name when the directory had its first.
    pub fn name_now(&self, name: &str) -> Option<String> {
        let (first, now) = (self.names.first()?, self.now.as_deref()?);
        Some(format!("{now}/{}", rest_below(name, first)?))
    }
}

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

    /// True while the names of files below some directory of this filesystem are not known.
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
fn rest_below<'a>(name: &'a str, directory: &str) -> Option<&'a str> {
    name.strip_prefix(directory)?.strip_prefix('/').filter(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_a_directory_that_moved_only_its_first_name_leads_to_its_last() {
        let directory = FileKey { device: DeviceNumber(8), inode: 12, generation: 3 };
        let names = ["/a", "/b", "/b", "/c"].map(str::to_owned).to_vec();
        let moved = Moved { directory, from_ns: 1, names, now: Some("/c".to_owned()) };
        assert_eq!(
            ["/a/x", "/b/x", "/ab/x"].map(|name| moved.name_now(name)),
            [Some("/c/x".to_owned()), None, None]
        );
        let may_hold = |device, name| moved.may_hold(DeviceNumber(device), name);
        assert!(may_hold(8, "/a/x") && may_hold(8, "/b/x") && may_hold(8, "/c/y/x"));
        assert!(!may_hold(8, "/d/x") && !may_hold(8, "/a") && !may_hold(9, "/a/x"));
    }

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
