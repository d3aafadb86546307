//! The files below a directory, copied: each run of a program begins with the same ones.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::machine::proc::signal::is_stopped;

/// Directories of joj's own, which begin so, are none of the program's.
const OWN_NAMES: [&str; 2] = ["joj-whatif-", "joj-replay-"];

/// Bytes of the files below a directory that a copy has.
/// # Errors
/// What the system said, of which file.
pub fn bytes(directory: &Path) -> Result<u64, (PathBuf, io::Error)> {
    let mut sum = 0;
    walk(directory, &mut |_, facts| {
        sum += if facts.is_file() { facts.len() } else { 0 };
        Ok(())
    })?;
    Ok(sum)
}

/// Copies them into `to`, an empty directory, with their permissions and times. A file with several names becomes several files. Pipes and
/// sockets are left out.
/// # Errors
/// What the system said, of which file; [`io::ErrorKind::Interrupted`] after a signal. A part is there then.
pub fn copy(from: &Path, to: &Path) -> Result<(), (PathBuf, io::Error)> {
    let mut directories = Vec::new();
    walk(from, &mut |path, facts| {
        let place = to.join(path.strip_prefix(from).unwrap_or(path));
        let kind = facts.file_type();
        if kind.is_symlink() {
            symlink(fs::read_link(path)?, &place)
        } else if kind.is_dir() {
            fs::create_dir(&place)?;
            directories.push((place, facts.clone()));
            Ok(())
        } else if kind.is_file() {
            fs::copy(path, &place)?;
            set_times(&place, facts)
        } else {
            Ok(())
        }
    })?;
    // After what is in them: that changes their times, and some may not be written to.
    for (place, facts) in directories.iter().rev() {
        let set = set_times(place, facts).and_then(|()| fs::set_permissions(place, facts.permissions()));
        set.map_err(|error| (place.clone(), error))?;
    }
    Ok(())
}

fn set_times(place: &Path, facts: &fs::Metadata) -> io::Result<()> {
    let times = fs::FileTimes::new().set_accessed(facts.accessed()?).set_modified(facts.modified()?);
    match File::open(place).and_then(|file| file.set_times(times)) {
        // Its program may not read it, either.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        set => set,
    }
}

type Visit<'a> = dyn FnMut(&Path, &fs::Metadata) -> io::Result<()> + 'a;

/// Each file below a directory, a directory before what is in it.
fn walk(directory: &Path, visit: &mut Visit<'_>) -> Result<(), (PathBuf, io::Error)> {
    let problem = |error| (directory.to_owned(), error);
    for entry in fs::read_dir(directory).map_err(problem)? {
        let entry = entry.map_err(problem)?;
        let name = entry.file_name();
        if OWN_NAMES.iter().any(|own| name.to_string_lossy().starts_with(own)) {
            continue;
        }
        let path = entry.path();
        if is_stopped() {
            return Err((path, io::ErrorKind::Interrupted.into()));
        }
        let facts = entry.metadata().map_err(|error| (path.clone(), error))?;
        visit(&path, &facts).map_err(|error| (path.clone(), error))?;
        if facts.is_dir() {
            walk(&path, visit)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    #[test]
    fn a_copy_has_the_files_but_those_of_joj() {
        let place = std::env::temp_dir().join(format!("joj-copy-{}", std::process::id()));
        let (from, to) = (place.join("from"), place.join("to"));
        for directory in ["a/b", "joj-whatif-1-0"] {
            fs::create_dir_all(from.join(directory)).unwrap();
        }
        fs::create_dir_all(&to).unwrap();
        for file in ["a/b/c", "joj-whatif-1-0/d"] {
            fs::write(from.join(file), "text").unwrap();
        }
        fs::set_permissions(from.join("a/b/c"), fs::Permissions::from_mode(0o750)).unwrap();
        symlink("a/b", from.join("link")).unwrap();
        assert_eq!(bytes(&from).unwrap(), 4);
        copy(&from, &to).unwrap();
        let mut names = Vec::new();
        walk(&to, &mut |path, _| {
            names.push(path.strip_prefix(&to).unwrap().display().to_string());
            Ok(())
        })
        .unwrap();
        names.sort();
        assert_eq!(names, ["a", "a/b", "a/b/c", "link"]);
        assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("a/b"));
        let facts = |place: &Path| fs::metadata(place.join("a/b/c")).unwrap();
        assert_eq!(facts(&to).mode(), facts(&from).mode());
        assert_eq!(facts(&to).modified().unwrap(), facts(&from).modified().unwrap());
        fs::remove_dir_all(&place).unwrap();
    }
}
