//! The recordings that a plan's cells replay: joj's own, and those whose files the user names. They are read before anything starts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use joj_analysis::lab::cell::Cell;

use crate::lab::commands::error::LabError;
use crate::replay::command::bytes_before;
use crate::workloads::Placed;

/// Those of joj's own recordings that `cells` replay and the user has not given another file for. They are added to `given`, and their
/// files are there as long as what is returned.
/// # Errors
/// One cannot be written.
fn brought(cells: &[Cell], given: &mut Vec<(String, PathBuf)>) -> Result<Vec<Placed>, LabError> {
    let mut brought = Vec::new();
    for name in cells.iter().filter_map(|cell| cell.recording.as_ref()) {
        if given.iter().any(|(given, _)| given == name) {
            continue;
        }
        if let Some(placed) = Placed::named(name)? {
            given.push((name.clone(), placed.file()));
            brought.push(placed);
        }
    }
    Ok(brought)
}

/// The file of each recording that `cells` replay, of those that were `given` by name, and of joj's own, which are there as long as the
/// second value. Each is read as its cells do it.
/// # Errors
/// Where one is missing, no cell replays one, or one cannot be replayed on a device of that capacity.
pub fn read(
    cells: &[Cell],
    given: &[(String, PathBuf)],
    device_bytes: u64,
) -> Result<(BTreeMap<String, PathBuf>, Vec<Placed>), LabError> {
    let mut given = given.to_vec();
    let brought = brought(cells, &mut given)?;
    let files = files(cells, &given)?;
    let mut read = Vec::new();
    for cell in cells {
        let Some(file) = cell.recording.as_ref().and_then(|name| files.get(name)) else { continue };
        if !read.contains(&(file, cell.compat)) {
            check_room(file, bytes_before(file, cell.compat)?, device_bytes)?;
            read.push((file, cell.compat));
        }
    }
    Ok((files, brought))
}

fn files(cells: &[Cell], given: &[(String, PathBuf)]) -> Result<BTreeMap<String, PathBuf>, LabError> {
    let replayed = || cells.iter().filter_map(|cell| cell.recording.as_ref());
    if let Some((name, _)) = given.iter().find(|(name, _)| replayed().all(|replayed| replayed != name)) {
        return Err(LabError::UnusedRecording(name.clone()));
    }
    let found = |name: &String| {
        let file = given.iter().find(|(given, _)| given == name);
        file.cloned().ok_or_else(|| LabError::NoRecording(name.clone()))
    };
    replayed().map(found).collect()
}

/// Whether a recording's files, which have `needed_bytes` before its first call, fit on a device.
/// # Errors
/// They do not.
pub fn check_room(recording: &Path, needed_bytes: u64, device_bytes: u64) -> Result<(), LabError> {
    if needed_bytes < device_bytes {
        return Ok(());
    }
    let (needed_mib, device_mib) = (needed_bytes >> 20, device_bytes >> 20);
    Err(LabError::TooLarge { recording: recording.to_owned(), needed_mib, device_mib })
}

#[cfg(test)]
mod tests {
    use super::*;
    use joj_analysis::lab::plan::Plan;

    #[test]
    fn each_recording_is_given_once_and_is_one_that_a_cell_replays() {
        let text = "format = 'joj-lab-plan'\nversion = 2\ntitle = 't'\n[[matrix]]\nfilesystem = ['ext4', 'f2fs']\n\
                    device = ['ram']\ntask = ['replay']\nrecording = ['a', 'b']\n";
        let cells = toml::from_str::<Plan>(text).unwrap().cells().unwrap();
        let given = |names: &[&str]| {
            let files: Vec<_> = names.iter().map(|name| ((*name).to_owned(), PathBuf::from(name))).collect();
            super::files(&cells, &files)
        };
        assert_eq!(given(&["b", "a"]).unwrap().keys().collect::<Vec<_>>(), ["a", "b"]);
        let missing = given(&["a"]).unwrap_err().to_string();
        assert!(missing.contains("--recording b=FILE"), "{missing}");
        let own = text.replace("'a', 'b'", "'browser', 'b'");
        let own = toml::from_str::<Plan>(&own).unwrap().cells().unwrap();
        let mut files = vec![("b".to_owned(), PathBuf::from("b"))];
        let brought = brought(&own, &mut files).unwrap();
        assert_eq!((brought.len(), files.len(), files[1].0.as_str()), (1, 2, "browser"), "joj's own, once");
        let unused = given(&["a", "b", "c"]).unwrap_err().to_string();
        assert!(unused.contains("a recording c"), "{unused}");
    }
}
