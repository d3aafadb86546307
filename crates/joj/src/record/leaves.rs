//! Whether the files are as the recorded calls leave them: what else changed them is in no recording.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use joj_analysis::recording::Recording;
use joj_analysis::recording::file_tree::{FileTree, TreeEntry};
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
    let mut differ = after.iter().filter_map(difference);
    let first = differ.next()?;
    let first = if has_names { format!(", the first {first}") } else { String::new() };
    Some(format!(
        "Files that are not as the recorded calls leave them, because calls that are not in the recording changed them, or another \
         program, or because they have another name that is not in it: {}{first}",
        1 + differ.count()
    ))
}

/// `/a (20 bytes, not 10)`.
fn difference((path, left): (&String, &TreeEntry)) -> Option<String> {
    let place = bytes_of(path);
    let found = fs::symlink_metadata(Path::new(OsStr::from_bytes(&place)));
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
