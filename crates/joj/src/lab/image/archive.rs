//! The archive that the guest boots from: joj as its first process, libraries, programs, kernel modules.
//!
//! Source: Documentation/driver-api/early-userspace/buffer-format.rst of the kernel (newc, uncompressed: unpacking is
//! what the emulated processor is slowest at).

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cpio::newc::{Builder, ModeFileType, trailer};

use crate::lab::image::error::ImageError;
use crate::lab::image::libraries::{self, LOADER};
use crate::lab::image::packages::Packages;
use crate::lab::job::guest_path;

/// Programs of packages that the guest runs.
const PROGRAMS: [&str; 5] = ["mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "mkfs.nilfs2", "mkfs.f2fs"];
/// The guest's directories.
const DIRECTORIES: [&str; 14] = [
    "dev", "proc", "sys", "tmp", "run", "etc", "bin", "sbin", "lib", "lib64", "modules", "share", "volume",
    "root",
];
/// Starts joj where there is a job, and a shell where there is none.
const INIT: &str = "#!/bin/busybox sh\nexec /joj lab-guest\n";

/// What goes into the archive besides packages.
#[derive(Debug, Clone)]
pub struct Contents {
    /// The joj that runs: it is the guest's first process too.
    pub joj: PathBuf,
    /// SQLite builds to load.
    pub sqlite: Vec<PathBuf>,
    /// The extension, where the plan needs it.
    pub waldio: Option<PathBuf>,
}

/// Writes the archive.
/// # Errors
/// Where a file is missing, or there is no room; a part may be left.
pub fn write(file: &Path, contents: &Contents, packages: &Packages) -> Result<(), ImageError> {
    let entries = entries(contents, packages)?;
    let problem = |error: io::Error| ImageError::file("write", file)(error);
    let mut archive = Archive { writer: BufWriter::new(File::create(file).map_err(problem)?), next_inode: 1 };
    for directory in DIRECTORIES {
        archive.special(directory, ModeFileType::Directory, 0o755, 0, 0).map_err(problem)?;
    }
    // What the kernel opens for the first process, before there is a devtmpfs.
    archive.special("dev/console", ModeFileType::Char, 0o600, 5, 1).map_err(problem)?;
    archive.bytes("init", INIT.as_bytes(), ModeFileType::Regular, 0o755).map_err(problem)?;
    archive.bytes("etc/mtab", b"/proc/mounts", ModeFileType::Symlink, 0o777).map_err(problem)?;
    for (name, from) in entries {
        archive.file(&name, &from)?;
    }
    let mut writer = trailer(archive.writer).map_err(problem)?;
    writer.flush().map_err(problem)
}

/// Names in the archive, and where each comes from.
fn entries(contents: &Contents, packages: &Packages) -> Result<Vec<(String, PathBuf)>, ImageError> {
    let mut entries = vec![(below(guest_path::JOJ), contents.joj.clone()), (below(LOADER), LOADER.into())];
    let mut own = vec![contents.joj.clone()];
    for sqlite in &contents.sqlite {
        entries.push((in_libraries(sqlite), sqlite.clone()));
        own.push(sqlite.clone());
    }
    if let Some(waldio) = &contents.waldio {
        entries.push((below(guest_path::WALDIO), waldio.clone()));
        own.push(waldio.clone());
    }
    let mut theirs = Vec::new();
    for name in PROGRAMS {
        let file = packages.program(name).ok_or(ImageError::NotCached(name))?;
        entries.push((format!("sbin/{name}"), file.clone()));
        theirs.push(file);
    }
    if let Some(busybox) = packages.program("busybox") {
        entries.push(("bin/busybox".to_owned(), busybox));
    }
    entries.extend(module_entries(&packages.modules())?);
    // joj's libraries are this machine's; what the packages bring comes second.
    let mut named = BTreeSet::new();
    let libraries = libraries::needed_by(&own, &[])?;
    let besides = libraries::needed_by(&theirs, &packages.library_directories())?;
    for library in libraries.into_iter().chain(besides) {
        let name = in_libraries(&library);
        if !entries.iter().any(|(taken, _)| *taken == name) && named.insert(name.clone()) {
            entries.push((name, library));
        }
    }
    Ok(entries)
}

fn module_entries(modules: &Path) -> Result<Vec<(String, PathBuf)>, ImageError> {
    let files = fs::read_dir(modules).map_err(ImageError::file("read", modules))?;
    let paths = files.flatten().map(|entry| entry.path());
    Ok(paths.map(|path| (format!("modules/{}", name_of(&path)), path)).collect())
}

fn below(path: &str) -> String {
    path.trim_start_matches('/').to_owned()
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Where a library lies in the archive.
fn in_libraries(path: &Path) -> String {
    format!("{}/{}", below(guest_path::LIBRARIES), name_of(path))
}

struct Archive<W: Write> {
    writer: W,
    next_inode: u32,
}

impl<W: Write> Archive<W> {
    fn builder(&mut self, name: &str, kind: ModeFileType, mode: u32) -> Builder {
        self.next_inode += 1;
        Builder::new(name).ino(self.next_inode).mode(mode).set_mode_file_type(kind)
    }

    fn special(
        &mut self,
        name: &str,
        kind: ModeFileType,
        mode: u32,
        major: u32,
        minor: u32,
    ) -> io::Result<()> {
        let builder = self.builder(name, kind, mode).rdev_major(major).rdev_minor(minor);
        builder.write(&mut self.writer, 0).finish().map(|_| ())
    }

    fn bytes(&mut self, name: &str, bytes: &[u8], kind: ModeFileType, mode: u32) -> io::Result<()> {
        let size = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        let mut entry = self.builder(name, kind, mode).write(&mut self.writer, size);
        entry.write_all(bytes)?;
        entry.finish().map(|_| ())
    }

    fn file(&mut self, name: &str, from: &Path) -> Result<(), ImageError> {
        let problem = |error: io::Error| ImageError::NotPut { file: from.to_owned(), error };
        let mut file = File::open(from).map_err(problem)?;
        let facts = file.metadata().map_err(problem)?;
        let size = u32::try_from(facts.len())
            .map_err(|_| ImageError::TooLarge { file: from.to_owned(), bytes: facts.len() })?;
        let builder = self.builder(name, ModeFileType::Regular, facts.permissions().mode() & 0o777);
        let mut entry = builder.write(&mut self.writer, size);
        io::copy(&mut file, &mut entry).map_err(problem)?;
        entry.finish().map_err(problem).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn the_archive_can_be_read_again() {
        let mut archive = Archive { writer: Vec::new(), next_inode: 0 };
        archive.special("dev/console", ModeFileType::Char, 0o600, 5, 1).unwrap();
        archive.bytes("init", b"#!/x\n", ModeFileType::Regular, 0o755).unwrap();
        let bytes = trailer(archive.writer).unwrap();
        let console = cpio::newc::Reader::new(&bytes[..]).unwrap();
        assert_eq!((console.entry().name(), console.entry().mode()), ("dev/console", 0o020_600));
        assert_eq!((console.entry().rdev_major(), console.entry().rdev_minor()), (5, 1));
        let rest = console.finish().unwrap();
        let mut init = cpio::newc::Reader::new(rest).unwrap();
        let mut text = String::new();
        init.read_to_string(&mut text).unwrap();
        assert_eq!((init.entry().name(), init.entry().mode(), text.as_str()), ("init", 0o100_755, "#!/x\n"));
    }
}
