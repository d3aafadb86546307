//! The files of the host as each run of a command of the host's sees them (rooted.rs): an overlay that has copies in memory.
//!
//! To open a file of the host, to list a directory or to follow a link takes the host's time, which is no figure of the guest's. So what
//! was opened once is copied to memory, and so is a link, and of a directory that was listed the names are held there. What was looked
//! for, and found or not, the kernel remembers by itself.
//!
//! A second look is to see the same. So what a copy would change stays the host's. A file of which two names are seen would be two files.
//! Attributes of a user's are kept by no memory (tmpfs of Linux 6.1).

use std::collections::BTreeSet;
use std::fs::{self, File, FileTimes, FileType, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, lchown};
use std::path::{Path, PathBuf};

use crate::lab::guest::command::host_names::{HostNames, NotedNames};
use crate::lab::guest::command::kept_names::KeptNames;
use crate::lab::guest::command::several_names::{SeveralNames, give_names};
use crate::lab::guest::error::{GuestError, cannot};
use crate::lab::job::{HOST_TAG, guest_path};
use crate::lab::jobs::program_crash::UsedFile;
use crate::machine::qemu::guest_kernel;
use crate::machine::qemu::opened_files::OpenedFiles;

/// Directories for what is mounted there.
const PLACES: [&str; 3] = ["proc", "sys", "dev"];
/// Memory, with the two directories of the overlay, and the other names of copies.
const COPIES: &str = "/copies";
const UPPER: &str = "/copies/upper";
const WORK: &str = "/copies/work";
const OTHER_NAMES: &str = "/copies/other-names";
/// Copies take so much memory, in bytes; what is left over stays the host's.
const COPIES_BYTES_MAX: u64 = 512 << 20;
/// The names of a file's attributes take no more (`XATTR_LIST_MAX`).
const ATTRIBUTE_NAMES_BYTES_MAX: usize = 64 << 10;

/// The kernel's event for a request of 9p, and what counts it (Documentation/trace/histogram.rst).
const REQUEST_EVENT: &str = "/sys/kernel/tracing/events/9p/9p_client_req";
const HISTOGRAM: &str = "hist:keys=type";

/// The root, and what in it lies in memory by now.
#[derive(Debug, Default)]
pub struct HostFiles {
    kept: BTreeSet<PathBuf>,
    copied_bytes: u64,
    names: KeptNames,
}

/// What of the root is used.
#[derive(Debug)]
pub struct UsedFiles {
    opened: OpenedFiles,
    names: HostNames,
}

/// The paths of what was used.
#[derive(Debug)]
pub struct ListedFiles {
    opened: Vec<PathBuf>,
    names: NotedNames,
}

impl UsedFiles {
    /// Ends watching. What a run used has to be listed before it ends: after that its mounts have no place any more.
    /// # Errors
    /// The kernel does not tell.
    pub fn list(self) -> Result<ListedFiles, GuestError> {
        let opened = self.opened.paths().map_err(cannot("read which files were opened"))?;
        Ok(ListedFiles { opened, names: self.names.noted() })
    }
}

impl ListedFiles {
    /// What they are on the host, and what was looked for there.
    pub fn facts(&self) -> Vec<UsedFile> {
        let below = self.below();
        let used: BTreeSet<&Path> =
            below.iter().filter_map(|at| at.strip_prefix(guest_path::ROOT).ok()).collect();
        let looked_for = self.names.looked_for.iter().map(PathBuf::as_path);
        let only_looked_for = looked_for.filter(|path| is_of_host(path) && !used.contains(path)).collect();
        let facts = |paths: BTreeSet<&Path>, is_read| -> Vec<UsedFile> {
            let of = |path| {
                UsedFile::of(&Path::new("/").join(path), &Path::new(guest_path::HOST).join(path), is_read)
            };
            paths.into_iter().map(of).collect()
        };
        let mut all = facts(only_looked_for, false);
        all.extend(facts(used, true));
        all
    }

    /// All of them, below the root.
    fn below(&self) -> Vec<PathBuf> {
        let followed = self.names.followed.iter().map(|link| below_root(&link.to_string_lossy()));
        let opened = self.opened.iter().filter(|path| path.starts_with(guest_path::ROOT)).cloned();
        followed.chain(opened).collect()
    }

    /// These and others.
    #[must_use]
    pub fn and(mut self, other: ListedFiles) -> ListedFiles {
        self.opened.extend(other.opened);
        self.names.followed.extend(other.names.followed);
        self.names.looked_for.extend(other.names.looked_for);
        self
    }
}

/// Where the guest finds what the command has at `path`.
pub fn below_root(path: &str) -> PathBuf {
    Path::new(guest_path::ROOT).join(path.trim_start_matches('/'))
}

impl HostFiles {
    /// Makes the root.
    /// # Errors
    /// Where the host's files cannot be mounted.
    pub fn mount() -> Result<HostFiles, GuestError> {
        make_directories(&[guest_path::HOST, guest_path::ROOT, COPIES])?;
        guest_kernel::mount_host(HOST_TAG, guest_path::HOST)?;
        guest_kernel::mount_memory(COPIES)?;
        make_directories(&[UPPER, WORK, OTHER_NAMES])?;
        guest_kernel::mount_overlay(guest_path::HOST, UPPER, WORK, guest_path::ROOT)?;
        for name in PLACES.iter().chain(&guest_path::OWN) {
            make_directories(&[&below_root(name).to_string_lossy()])?;
        }
        let root = Path::new(guest_path::ROOT);
        look_like(root, Path::new(guest_path::HOST)).map_err(cannot(format!("make {}", root.display())))?;
        guest_kernel::let_change(guest_path::ROOT, false)?;
        Ok(HostFiles::default())
    }

    /// Notes what of the root is used from now on, in the run that this thread is in.
    /// # Errors
    /// The kernel refuses.
    pub fn watch(&self) -> Result<UsedFiles, GuestError> {
        let problem = &cannot("watch the host's files");
        let opened = OpenedFiles::watch(Path::new(guest_path::ROOT)).map_err(problem)?;
        Ok(UsedFiles { opened, names: HostNames::watch().map_err(problem)? })
    }

    /// Has what was used in memory from now on; special files, what a copy would change and what is too large or too much stay the host's.
    /// # Errors
    /// Something cannot be copied.
    pub fn keep(&mut self, used: &ListedFiles) -> Result<(), GuestError> {
        let used = used.below();
        let several = SeveralNames::among(&used);
        guest_kernel::let_change(guest_path::ROOT, true)?;
        let mut listed = Vec::new();
        for path in used {
            let below = path.strip_prefix(guest_path::ROOT).unwrap_or(&path);
            let problem = cannot(format!("keep this machine's /{} in memory", below.display()));
            let kind = self.copy(&path, &several).map_err(problem)?;
            if kind.is_some_and(|kind| kind.is_dir()) {
                listed.push(path);
            }
        }
        guest_kernel::let_change(guest_path::ROOT, false)?;
        // A copy changes the directory that it is in.
        self.names.hold(&listed).map_err(cannot("hold directories open"))
    }

    /// Copies it to the upper layer; nothing where that is done, and where it stays the host's.
    fn copy(&mut self, path: &Path, several: &SeveralNames) -> io::Result<Option<FileType>> {
        // The host's files may go at any time.
        let Ok(facts) = fs::symlink_metadata(path) else { return Ok(None) };
        let kind = facts.file_type();
        let is_usual = kind.is_dir() || ((kind.is_file() || kind.is_symlink()) && several.allow(&facts));
        let fits = self.copied_bytes + facts.len() <= COPIES_BYTES_MAX;
        if !is_usual || !fits || has_user_attributes(path) || !self.kept.insert(path.to_owned()) {
            return Ok(None);
        }
        // A change of its owner, to the same one, copies it (overlayfs). So does opening a file to write, and leaves it set-user-ID.
        let copied = if kind.is_file() {
            OpenOptions::new().append(true).open(path).map(drop)
        } else {
            lchown(path, Some(facts.uid()), Some(facts.gid()))
        };
        match copied {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            done => done?,
        }
        self.copied_bytes += facts.len();
        if !kind.is_dir() {
            let below = path.strip_prefix(guest_path::ROOT).map_err(io::Error::other)?;
            give_names(&Path::new(UPPER).join(below), &facts, Path::new(OTHER_NAMES))?;
        }
        Ok(Some(kind))
    }
}

/// Counts what the guest's kernel asks the host for its files.
#[derive(Debug)]
pub struct HostRequests;

impl HostRequests {
    /// From now on.
    /// # Errors
    /// The kernel cannot count.
    pub fn begin() -> Result<HostRequests, GuestError> {
        fs::write(format!("{REQUEST_EVENT}/trigger"), HISTOGRAM).map_err(cannot("count requests"))?;
        Ok(HostRequests)
    }

    /// How many since the begin.
    /// # Errors
    /// The kernel does not tell.
    pub fn count(self) -> Result<u64, GuestError> {
        let text = fs::read_to_string(format!("{REQUEST_EVENT}/hist")).map_err(cannot("count requests"))?;
        let hits = text.lines().find_map(|line| line.trim().strip_prefix("Hits:"));
        Ok(hits.and_then(|hits| hits.trim().parse().ok()).unwrap_or(0))
    }
}

impl Drop for HostRequests {
    fn drop(&mut self) {
        let _ = fs::write(format!("{REQUEST_EVENT}/trigger"), format!("!{HISTOGRAM}"));
    }
}

/// True of names that begin with `user.`; they stand one behind the other, each with a zero byte at its end.
fn has_user_attributes(path: &Path) -> bool {
    let mut names = vec![0; ATTRIBUTE_NAMES_BYTES_MAX];
    let bytes = rustix::fs::llistxattr(path, &mut names[..]).unwrap_or(0);
    names[..bytes].split(|byte| *byte == 0).any(|name| name.starts_with(b"user."))
}

/// True of a path that a run sees as the host has it, below the root.
fn is_of_host(path: &Path) -> bool {
    PLACES.iter().chain(&guest_path::OWN).all(|place| !path.starts_with(place))
}

/// Gives a directory the owner, the mode and the times of another one.
/// # Errors
/// As chown(2), chmod(2) and utimensat(2).
pub fn look_like(directory: &Path, other: &Path) -> io::Result<()> {
    let facts = fs::metadata(other)?;
    lchown(directory, Some(facts.uid()), Some(facts.gid()))?;
    fs::set_permissions(directory, facts.permissions())?;
    let times = FileTimes::new().set_accessed(facts.accessed()?).set_modified(facts.modified()?);
    File::open(directory)?.set_times(times)
}

fn make_directories(paths: &[&str]) -> Result<(), GuestError> {
    paths.iter().try_for_each(|path| fs::create_dir_all(path).map_err(cannot(format!("make {path}"))))
}
