//! Whether the files are as the recorded calls leave them: what else changed them is in no recording.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use joj_analysis::recording::Recording;
use joj_analysis::recording::file_tree::{FileIndex, FileTree, TreeEntry};
use joj_analysis::recording::paths::bytes_of;
use joj_analysis::trace::header::{CALLS_VERSION, Header};

/// Says how many of the files that the calls leave are others by now, and which the first is, if names may be told; `None` where all are
/// the same.
pub fn others(recording: &Recording, has_names: bool) -> Option<String> {
    let header = Header { version: CALLS_VERSION, ..recording.header.clone() };
    let mut tree = FileTree::of(&header);
    for call in &recording.calls {
        tree.apply(call, &recording.texts);
    }
    let after = tree.after();
    let mut names = NamesOfFiles::default();
    let mut differ = after.iter().filter_map(|(path, left)| {
        let found = fs::symlink_metadata(Path::new(OsStr::from_bytes(&bytes_of(path))));
        let is_file = found.as_ref().ok().filter(|status| status.is_file());
        let other = is_file.and_then(|status| names.difference(path, tree.file_of(path)?, status));
        difference((path, left), found).or(other)
    });
    let first = differ.next()?;
    let first = if has_names { format!(", the first {first}") } else { String::new() };
    Some(format!(
        "Files that are not as the recorded calls leave them, because calls that are not in the recording changed them, or another \
         program, or because they have another name that is not in it: {}{first}",
        1 + differ.count()
    ))
}

/// Which names are one file: by the calls, and by now.
#[derive(Debug, Default)]
struct NamesOfFiles {
    /// The first name of each, with the other side's file.
    by_calls: HashMap<FileIndex, (String, (u64, u64))>,
    by_now: HashMap<(u64, u64), (String, FileIndex)>,
}

impl NamesOfFiles {
    /// `/a (one file with /b)`, where they are two by the calls, or the other way round.
    fn difference(&mut self, path: &str, file: FileIndex, status: &Metadata) -> Option<String> {
        let found = (status.dev(), status.ino());
        let (first, now) = self.by_calls.entry(file).or_insert_with(|| (path.to_owned(), found)).clone();
        if now != found {
            return Some(format!("{path} (not one file with {first})"));
        }
        let (first, by_calls) = self.by_now.entry(found).or_insert_with(|| (path.to_owned(), file));
        (*by_calls != file).then(|| format!("{path} (one file with {first})"))
    }
}

/// `/a (20 bytes, not 10)`.
fn difference((path, left): (&String, &TreeEntry), found: io::Result<Metadata>) -> Option<String> {
    match (left, found) {
        // What is in a link nobody looks at.
        (TreeEntry::Symlink(_), Ok(_)) => None,
        (TreeEntry::Directory, Ok(status)) if status.is_dir() => None,
        (TreeEntry::File(bytes), Ok(status)) if status.is_file() => {
            (*bytes != status.len()).then(|| format!("{path} ({} bytes, not {bytes})", status.len()))
        }
        (TreeEntry::File(_) | TreeEntry::Directory, Ok(_)) => Some(format!("{path} (of another kind)")),
        (_, Err(error)) if error.kind() == ErrorKind::NotFound => Some(format!("{path} (missing)")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::{env, process};

    use super::*;

    #[test]
    fn names_that_are_one_file_by_the_calls_or_by_now_alone_are_told() {
        let directory = env::temp_dir().join(format!("joj-leaves-{}", process::id()));
        fs::create_dir(&directory).expect("a directory");
        let [a, b, c] = ["a", "b", "c"].map(|name| directory.join(name));
        fs::write(&a, "").expect("a file");
        fs::hard_link(&a, &b).expect("a link");
        fs::write(&c, "").expect("a file");
        let [a, b, c] = [a, b, c].map(|path| fs::symlink_metadata(path).expect("a status"));
        fs::remove_dir_all(&directory).expect("removed");
        for (files, second, third) in [
            ([0, 0, 1], None, None),
            ([0, 1, 2], Some("/b (one file with /a)"), None),
            ([0, 0, 0], None, Some("/c (not one file with /a)")),
        ] {
            let mut names = NamesOfFiles::default();
            let mut told = |name, file, status| names.difference(name, FileIndex(file), status);
            assert_eq!(told("/a", files[0], &a), None);
            assert_eq!(told("/b", files[1], &b).as_deref(), second, "{files:?}");
            assert_eq!(told("/c", files[2], &c).as_deref(), third, "{files:?}");
        }
    }
}
