//! The files below a directory, copied: each run of a program begins with the same ones.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, lchown, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, SeekFrom, Timespec, Timestamps, mknodat, seek, utimensat};
use rustix::io::Errno;

use crate::machine::files::work_dir::is_of_joj;
use crate::machine::proc::signal::is_stopped;
use crate::whatif::directory_copy::attributes::{self, NotTaken};
use crate::whatif::directory_copy::error::CopyError;

/// A block of `st_blocks` (stat(2)).
const BLOCK_BYTES: u64 = 512;
/// So much of a file is copied before joj looks whether a signal asked it to end.
const PIECE_BYTES: u64 = 64 << 20;

/// Bytes that a copy of the files below a directory takes: holes take none, and a file with several names is there once. What joj made is
/// none of them, and `own` is a directory of this joj.
/// # Errors
/// A signal, or what the system said, of which file.
pub fn bytes(directory: &Path, own: &Path) -> Result<u64, CopyError> {
    let (mut sum, mut known) = (0, HashSet::new());
    walk(directory, &Own::of(own), &mut |_, facts| {
        if facts.is_file() && known.insert((facts.dev(), facts.ino())) {
            sum += facts.len().min(facts.blocks() * BLOCK_BYTES);
        }
        Ok(())
    })?;
    Ok(sum)
}

/// Copies them into `to`, an empty directory, with their owners, permissions, times and attributes, and gives `to` those of `itself`: the
/// directory's as it was before anything was made in it. A file with several names has them in the copy, too, and holes stay holes. Sockets
/// are left out, and without root devices and other users' ownership. Gives what of the attributes the place does not take.
/// # Errors
/// A signal, or what the system said, of which file. A part is there then.
pub fn copy(from: &Path, to: &Path, itself: &fs::Metadata, own: &Path) -> Result<NotTaken, CopyError> {
    let mut not_taken = NotTaken::default();
    let mut directories = vec![(from.to_owned(), itself.clone())];
    let mut known: HashMap<(u64, u64), PathBuf> = HashMap::new();
    walk(from, &Own::of(own), &mut |path, facts| {
        let name = path.strip_prefix(from).unwrap_or(path);
        let place = to.join(name);
        let kind = facts.file_type();
        if kind.is_dir() {
            fs::create_dir(&place)?;
            directories.push((path.to_owned(), facts.clone()));
            return Ok(());
        }
        let inode = (facts.dev(), facts.ino());
        if let Some(first) = known.get(&inode) {
            return fs::hard_link(first, &place);
        }
        if kind.is_symlink() {
            symlink(fs::read_link(path)?, &place)?;
        } else if kind.is_file() {
            copy_data(path, &place, facts.len())?;
        } else if !make_special(&place, facts)? {
            return Ok(());
        }
        if facts.nlink() > 1 {
            known.insert(inode, place.clone());
        }
        let lacks = set_facts(path, &place, facts)?;
        not_taken.add(&lacks, name);
        set_times(&place, facts)
    })?;
    // After what is in them: that changes their times, and some may not be written to.
    for (path, facts) in directories.iter().rev() {
        let name = path.strip_prefix(from).unwrap_or(path);
        let place = to.join(name);
        let set = set_times(&place, facts).and_then(|()| set_facts(path, &place, facts));
        let lacks = set.map_err(|error| CopyError::of(&place, error))?;
        not_taken.add(&lacks, name);
    }
    Ok(not_taken)
}

/// Sets owner, permissions and attributes; gives the names of attributes that the place does not take.
fn set_facts(path: &Path, place: &Path, facts: &fs::Metadata) -> io::Result<Vec<OsString>> {
    // A change of the owner takes the bits that the permissions set, and capabilities.
    set_owner(place, facts)?;
    let mut lacks = attributes::copy(path, place);
    if !facts.is_symlink() {
        fs::set_permissions(place, facts.permissions())?;
        lacks.extend(attributes::copy_acls(path, place)?);
    }
    Ok(lacks)
}

/// Copies what the file has, and leaves its holes (lseek(2), `SEEK_DATA`).
fn copy_data(from: &Path, to: &Path, len: u64) -> io::Result<()> {
    let (mut source, mut place) = (File::open(from)?, File::create_new(to)?);
    place.set_len(len)?;
    let mut at = 0;
    while at < len {
        let (begin, end) = match seek(&source, SeekFrom::Data(at)) {
            Ok(begin) => (begin, seek(&source, SeekFrom::Hole(begin))?),
            // There is nothing more.
            Err(Errno::NXIO) => break,
            // The filesystem does not tell.
            Err(_) => (at, len),
        };
        // In pieces: none takes long.
        let end = end.min(begin + PIECE_BYTES);
        seek(&source, SeekFrom::Start(begin))?;
        seek(&place, SeekFrom::Start(begin))?;
        match io::copy(&mut io::Read::take(&mut source, end - begin), &mut place) {
            _ if is_stopped() => return Err(io::ErrorKind::Interrupted.into()),
            // A signal of another kind: the piece is copied again.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            copied => {
                copied?;
                at = end;
            }
        }
    }
    Ok(())
}

/// Makes a pipe or a device; false for what is neither, or may not be made.
fn make_special(place: &Path, facts: &fs::Metadata) -> io::Result<bool> {
    let kind = facts.file_type();
    let what = match () {
        () if kind.is_fifo() => FileType::Fifo,
        () if kind.is_char_device() => FileType::CharacterDevice,
        () if kind.is_block_device() => FileType::BlockDevice,
        () => return Ok(false),
    };
    match mknodat(CWD, place, what, Mode::from_raw_mode(facts.mode()), facts.rdev()) {
        Err(Errno::PERM) => Ok(false),
        made => made.map(|()| true).map_err(io::Error::from),
    }
}

/// Only root may give files away.
fn set_owner(place: &Path, facts: &fs::Metadata) -> io::Result<()> {
    match lchown(place, Some(facts.uid()), Some(facts.gid())) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        set => set,
    }
}

/// Of the file itself, where it is a link, too; some filesystems do not take those.
fn set_times(place: &Path, facts: &fs::Metadata) -> io::Result<()> {
    let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
    let times = Timestamps {
        last_access: time(facts.atime(), facts.atime_nsec()),
        last_modification: time(facts.mtime(), facts.mtime_nsec()),
    };
    match utimensat(CWD, place, &times, AtFlags::SYMLINK_NOFOLLOW) {
        Err(_) if facts.is_symlink() => Ok(()),
        set => Ok(set?),
    }
}

type Visit<'a> = dyn FnMut(&Path, &fs::Metadata) -> io::Result<()> + 'a;

/// A directory of this joj, which may be without a lock.
struct Own(Option<(u64, u64)>);

impl Own {
    fn of(directory: &Path) -> Own {
        Own(fs::metadata(directory).ok().map(|facts| (facts.dev(), facts.ino())))
    }

    fn is(&self, facts: &fs::Metadata) -> bool {
        self.0 == Some((facts.dev(), facts.ino()))
    }
}

/// Each file below a directory that joj did not make, a directory before what is in it.
fn walk(directory: &Path, own: &Own, visit: &mut Visit<'_>) -> Result<(), CopyError> {
    let problem = |error| CopyError::of(directory, error);
    for entry in fs::read_dir(directory).map_err(problem)? {
        let entry = entry.map_err(problem)?;
        let path = entry.path();
        if is_of_joj(&path) {
            continue;
        }
        if is_stopped() {
            return Err(CopyError::Stopped);
        }
        let facts = match entry.metadata() {
            // It is gone meanwhile, as those of another joj may be.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            facts => facts.map_err(|error| CopyError::of(&path, error))?,
        };
        if own.is(&facts) {
            continue;
        }
        visit(&path, &facts).map_err(|error| CopyError::of(&path, error))?;
        if facts.is_dir() {
            walk(&path, own, visit)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileExt, PermissionsExt};

    use rustix::fs::{XattrFlags, lgetxattr, lsetxattr};

    use super::*;
    use crate::whatif::directory_copy::attributes::tests::acl;

    #[test]
    fn a_copy_has_the_files_but_those_of_joj() {
        let place = std::env::temp_dir().join(format!("joj-copy-{}", std::process::id()));
        let (from, to) = (place.join("from"), place.join("to"));
        // The first is of a joj, the next has no lock, and nobody's name is that of the last; `own` is this joj's.
        for directory in ["a/b", "joj-whatif-1-0", "own", "joj-whatif-2-0", "joj-whatif-mine"] {
            fs::create_dir_all(from.join(directory)).unwrap();
        }
        fs::create_dir_all(&to).unwrap();
        for file in ["a/b/c", "joj-whatif-1-0/d", "own/d"] {
            fs::write(from.join(file), "text").unwrap();
        }
        for file in ["joj-whatif-1-0.lock", "joj-whatif-mine.lock"] {
            fs::write(from.join(file), "").unwrap();
        }
        let own = from.join("own");
        fs::set_permissions(from.join("a/b/c"), fs::Permissions::from_mode(0o750)).unwrap();
        symlink("a/b", from.join("link")).unwrap();
        fs::hard_link(from.join("a/b/c"), from.join("same")).unwrap();
        mknodat(CWD, from.join("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        for name in ["link", "pipe"] {
            set_times(&from.join(name), &fs::metadata("/").unwrap()).unwrap();
        }
        // Neither name of a socket is copied, and that is no error.
        let _socket = std::os::unix::net::UnixListener::bind(from.join("socket")).unwrap();
        fs::hard_link(from.join("socket"), from.join("socket-again")).unwrap();
        let sparse = File::create(from.join("sparse")).unwrap();
        sparse.set_len(9 << 20).unwrap();
        sparse.write_all_at(b"data", 4 << 20).unwrap();
        let block = sparse.metadata().unwrap().blocks() * BLOCK_BYTES;
        assert_eq!(bytes(&from, &own).unwrap(), 4 + block);
        fs::set_permissions(&from, fs::Permissions::from_mode(0o1770)).unwrap();
        let itself = fs::metadata(&from).unwrap();
        std::os::unix::fs::chown(&to, None, Some(itself.gid())).unwrap();
        copy(&from, &to, &itself, &own).unwrap();
        let top = fs::metadata(&to).unwrap();
        let told = |facts: &fs::Metadata| (facts.mode(), facts.uid(), facts.gid(), facts.modified().unwrap());
        assert_eq!(told(&top), told(&itself));
        let mut names = Vec::new();
        walk(&to, &Own(None), &mut |path, _| {
            names.push(path.strip_prefix(&to).unwrap().display().to_string());
            Ok(())
        })
        .unwrap();
        names.sort();
        let mine = ["joj-whatif-2-0", "joj-whatif-mine", "joj-whatif-mine.lock"];
        assert_eq!(names[..3], ["a", "a/b", "a/b/c"]);
        assert_eq!(names[3..6], mine);
        assert_eq!(names[6..], ["link", "pipe", "same", "sparse"]);
        let copied = |name: &str| fs::symlink_metadata(to.join(name)).unwrap();
        assert_eq!(copied("same").ino(), copied("a/b/c").ino());
        assert!(copied("pipe").file_type().is_fifo());
        for name in ["link", "pipe", "same"] {
            let time = |facts: fs::Metadata| facts.modified().unwrap();
            assert_eq!(time(copied(name)), time(fs::symlink_metadata(from.join(name)).unwrap()), "{name}");
        }
        assert!(copied("sparse").blocks() * BLOCK_BYTES < 1 << 20, "its holes are holes");
        assert_eq!(fs::read(to.join("sparse")).unwrap(), fs::read(from.join("sparse")).unwrap());
        assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("a/b"));
        let facts = |place: &Path| fs::metadata(place.join("a/b/c")).unwrap();
        assert_eq!(facts(&to).mode(), facts(&from).mode());
        assert_eq!(facts(&to).modified().unwrap(), facts(&from).modified().unwrap());
        fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn attributes_and_acls_are_copied_and_nothing_gets_those_of_the_place() {
        let place = std::env::temp_dir().join(format!("joj-copy-attributes-{}", std::process::id()));
        let (from, to) = (place.join("from"), place.join("to"));
        fs::create_dir_all(from.join("directory")).unwrap();
        fs::create_dir_all(&to).unwrap();
        for name in ["acl", "plain", "read-only"] {
            fs::write(from.join(name), "text").unwrap();
        }
        let set = |place: &Path, name: &str, value: &[u8]| lsetxattr(place, name, value, XattrFlags::empty());
        let (access, default) = ("system.posix_acl_access", "system.posix_acl_default");
        if set(&from.join("plain"), "user.joj", b"value").is_err()
            || set(&from.join("acl"), access, &acl(0)).is_err()
        {
            fs::remove_dir_all(&place).unwrap();
            println!("skipped: no ACLs here");
            return;
        }
        set(&from.join("read-only"), "user.joj", b"").unwrap();
        fs::set_permissions(from.join("read-only"), fs::Permissions::from_mode(0o444)).unwrap();
        set(&from.join("directory"), default, &acl(6)).unwrap();
        set(&from, "user.joj", b"top").unwrap();
        let itself = fs::metadata(&from).unwrap();
        assert_eq!(copy(&from, &to, &itself, &to).unwrap(), NotTaken::default());
        let all = |top: &Path| {
            let files = ["", "acl", "plain", "read-only", "directory"].map(|name| top.join(name));
            let names = ["user.joj", access, default];
            let value = |file: &Path, name: &str| {
                let mut value = [0; 64];
                lgetxattr(file, name, &mut value).ok().map(|bytes| value[..bytes].to_vec())
            };
            files.map(|file| (fs::metadata(&file).unwrap().mode(), names.map(|name| value(&file, name))))
        };
        assert_eq!(all(&to), all(&from));
        assert_eq!(all(&to)[1].1[1], Some(acl(0)));
        fs::remove_dir_all(&place).unwrap();
    }
}
