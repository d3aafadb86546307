//! The files of the host as a command of the host's sees them, in a root of its own.
//!
//! ```text
//! ROOT          the host's files, to read only: an overlay that has the copies in memory
//!   proc sys    the guest's
//!   dev         the guest's devices
//!   tmp run     of each run its own (rooted.rs)
//!   data        the filesystem on the emulated device
//! ```
//!
//! To open a file of the host, to list a directory or to follow a link takes the host's time, which is no figure of the guest's. So what
//! was opened once is copied to memory, and so is a link, and of a directory that was listed the names are. What was looked
//! for, and found or not, the kernel remembers by itself.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, lchown, symlink};
use std::path::{Path, PathBuf};

use crate::lab::guest::command::followed_links::FollowedLinks;
use crate::lab::guest::error::{GuestError, cannot};
use crate::lab::job::{HOST_TAG, guest_path};
use crate::machine::qemu::guest_kernel;
use crate::machine::qemu::opened_files::OpenedFiles;

/// What the command sees of the guest instead of the host's.
const OF_GUEST: [&str; 3] = ["proc", "sys", "dev"];
/// Memory: the overlay's copies of files in two directories, names of directories in a third.
const COPIES: &str = "/copies";
const UPPER: &str = "/copies/upper";
const WORK: &str = "/copies/work";
const NAMES: &str = "/copies/names";
/// A directory with more names stays the host's: each name is a mount.
const NAMES_MAX: usize = 2_000;
/// Copies take so much memory, in bytes; what is left over stays the host's.
const COPIES_BYTES_MAX: u64 = 512 << 20;

/// The kernel's event for a request of 9p, and what counts it (Documentation/trace/histogram.rst).
const REQUEST_EVENT: &str = "/sys/kernel/tracing/events/9p/9p_client_req";
const HISTOGRAM: &str = "hist:keys=type";

/// The root, and what in it lies in memory by now.
#[derive(Debug, Default)]
pub struct HostFiles {
    kept: BTreeSet<PathBuf>,
    copied_bytes: u64,
}

/// What of the root is used.
#[derive(Debug)]
pub struct UsedFiles {
    opened: OpenedFiles,
    followed: FollowedLinks,
}

/// The paths of what was used.
#[derive(Debug)]
pub struct ListedFiles {
    opened: Vec<PathBuf>,
    followed: Vec<PathBuf>,
}

impl UsedFiles {
    /// Ends watching. What a run used has to be listed before it ends: after that its mounts have no place any more.
    /// # Errors
    /// The kernel does not tell.
    pub fn list(self) -> Result<ListedFiles, GuestError> {
        let opened = self.opened.paths().map_err(cannot("read which files were opened"))?;
        Ok(ListedFiles { opened, followed: self.followed.paths() })
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
        make_directories(&[UPPER, WORK, NAMES])?;
        guest_kernel::mount_overlay(guest_path::HOST, UPPER, WORK, guest_path::ROOT)?;
        for name in OF_GUEST.iter().chain(&guest_path::OWN) {
            let place = below_root(name).to_string_lossy().into_owned();
            make_directories(&[&place])?;
            if OF_GUEST.contains(name) {
                guest_kernel::mount_again(&format!("/{name}"), &place)?;
            }
        }
        guest_kernel::let_change(guest_path::ROOT, false)?;
        Ok(HostFiles::default())
    }

    /// Notes what of the root is used from now on.
    /// # Errors
    /// The kernel refuses.
    pub fn watch(&self) -> Result<UsedFiles, GuestError> {
        let problem = &cannot("watch the host's files");
        let opened = OpenedFiles::watch(Path::new(guest_path::ROOT)).map_err(problem)?;
        Ok(UsedFiles { opened, followed: FollowedLinks::watch().map_err(problem)? })
    }

    /// Has what was used in memory from now on; what is no file and no directory, too large or too many stays the host's.
    /// # Errors
    /// A file cannot be copied, or not be mounted.
    pub fn keep(&mut self, used: &ListedFiles) -> Result<(), GuestError> {
        guest_kernel::let_change(guest_path::ROOT, true)?;
        for link in &used.followed {
            let problem = cannot(format!("keep /{} in memory", link.display()));
            keep_link(&below_root(&link.to_string_lossy())).map_err(problem)?;
        }
        let new: Vec<&Path> = used
            .opened
            .iter()
            .map(PathBuf::as_path)
            .filter(|path| path.starts_with(guest_path::ROOT))
            .collect();
        let problem = |path: &Path| cannot(format!("keep {} in memory", path.display()));
        for path in &new {
            self.keep_file(path).map_err(problem(path))?;
        }
        // What is mounted from here on has the rights of what it is made of.
        guest_kernel::let_change(guest_path::ROOT, false)?;
        // A directory stands in front of what is in it.
        for path in &new {
            self.keep_names(path).map_err(problem(path))?;
        }
        Ok(())
    }

    fn keep_file(&mut self, path: &Path) -> io::Result<()> {
        let Ok(facts) = fs::symlink_metadata(path) else { return Ok(()) };
        let fits = facts.is_file() && self.copied_bytes + facts.len() <= COPIES_BYTES_MAX;
        if fits && self.kept.insert(path.to_owned()) {
            self.copied_bytes += facts.len();
            // Opened to write, it is copied (overlayfs).
            OpenOptions::new().append(true).open(path)?;
        }
        Ok(())
    }

    /// Mounts the names of a directory over it, each with what was there before.
    fn keep_names(&mut self, path: &Path) -> io::Result<()> {
        let is_directory = fs::symlink_metadata(path).is_ok_and(|facts| facts.is_dir());
        if !is_directory || !self.kept.insert(path.to_owned()) {
            return Ok(());
        }
        let names: Vec<fs::DirEntry> = fs::read_dir(path)?.collect::<io::Result<_>>()?;
        if names.len() > NAMES_MAX || path == Path::new(guest_path::ROOT) {
            return Ok(());
        }
        // What is hidden by the mount is reached by the descriptor of the directory.
        let hidden = File::open(path)?;
        let copy = Path::new(NAMES).join(self.kept.len().to_string());
        fs::create_dir(&copy)?;
        mount_at(&copy, path)?;
        for entry in &names {
            let name = entry.file_name();
            show(&descriptor_path(&hidden).join(&name), &path.join(&name))?;
        }
        guest_kernel::let_change(&path.to_string_lossy(), false).map_err(io::Error::other)
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

/// Has a link in memory.
fn keep_link(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        // A change of its owner, to the same one, copies it (overlayfs).
        Ok(facts) if facts.is_symlink() => lchown(path, Some(facts.uid()), Some(facts.gid())),
        _ => Ok(()),
    }
}

fn descriptor_path(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd;
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Makes `to` what `from` is; sockets and the like are left out.
fn show(from: &Path, to: &Path) -> io::Result<()> {
    let kind = fs::symlink_metadata(from)?.file_type();
    if kind.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if kind.is_dir() {
        fs::create_dir(to)?;
    } else if kind.is_file() {
        File::create(to)?;
    } else {
        return Ok(());
    }
    mount_at(from, to)
}

fn mount_at(from: &Path, to: &Path) -> io::Result<()> {
    guest_kernel::mount_again(&from.to_string_lossy(), &to.to_string_lossy()).map_err(io::Error::other)
}

fn make_directories(paths: &[&str]) -> Result<(), GuestError> {
    paths.iter().try_for_each(|path| fs::create_dir_all(path).map_err(cannot(format!("make {path}"))))
}
