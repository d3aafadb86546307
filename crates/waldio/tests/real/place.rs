//! File systems to test on: a folder, or an image file that is mounted. All of it is gone when the value is dropped.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use super::child::must;

/// A folder of its own, removed when dropped.
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Below JOJ_TEST_DIR or /var/tmp. Not /tmp: that is often a tmpfs, on which there is nothing to make durable.
    pub fn new(name: &str) -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let parent = std::env::var("JOJ_TEST_DIR").unwrap_or_else(|_| "/var/tmp".to_owned());
        let number = COUNT.fetch_add(1, SeqCst);
        let path = Path::new(&parent).join(format!("joj-real-{}-{number}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch { path }
    }

    /// A path inside.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Killed processes leave the page in memory that their databases had.
        for status in
            fs::read_dir(&self.path).into_iter().flatten().flatten().flat_map(|file| file.metadata())
        {
            let _ = fs::remove_file(format!("/dev/shm/waldio-line-{:x}-{}", status.dev(), status.ino()));
        }
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A mounted file system, unmounted when dropped.
pub struct Mount {
    // Unmounted by `drop` below, then the scratch folder goes: fields are dropped after it.
    point: PathBuf,
    _scratch: Scratch,
}

impl Mount {
    /// An image of `mib` MiB (sparse) with this file system, or why there cannot be one. "ext4-1k" is ext4 with blocks of
    /// 1 KiB, smaller than a page of memory.
    pub fn image(kind: &str, mib: u64) -> Result<Mount, String> {
        let (filesystem, _) = kind.split_once('-').unwrap_or((kind, ""));
        let make: &[&str] = match kind {
            // Blocks of 4 KiB as on every disk; mkfs would give a small image blocks of 1 KiB, on which a full disk kills
            // stock SQLite: it makes sure of one byte in each page of the wal-index that it maps.
            "ext4" => {
                &["mkfs.ext4", "-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"]
            }
            "ext4-1k" => {
                &["mkfs.ext4", "-q", "-F", "-b", "1024", "-E", "lazy_itable_init=0,lazy_journal_init=0"]
            }
            "xfs" => &["mkfs.xfs", "-q", "-f"],
            "btrfs" => &["mkfs.btrfs", "-q", "-f"],
            other => return Err(format!("no image of {other}")),
        };
        needs_root()?;
        needs_filesystem(filesystem)?;
        needs_program(make[0])?;
        let scratch = Scratch::new(filesystem);
        let image = scratch.join("image");
        fs::File::create(&image)
            .and_then(|file| file.set_len(mib << 20))
            .map_err(|error| error.to_string())?;
        run(Command::new(make[0]).args(&make[1..]).arg(&image))?;
        let point = scratch.join("mounted");
        fs::create_dir(&point).map_err(|error| error.to_string())?;
        run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&point))?;
        Ok(Mount { point, _scratch: scratch })
    }

    /// The file system in an image that is there.
    pub fn of_image(image: &Path) -> Result<Mount, String> {
        needs_root()?;
        Mount::over("image", |_, point| run(Command::new("mount").args(["-o", "loop"]).arg(image).arg(point)))
    }

    /// A tmpfs.
    pub fn tmpfs() -> Result<Mount, String> {
        needs_root()?;
        Mount::over("tmpfs", |_, point| {
            run(Command::new("mount").args(["-t", "tmpfs", "-o", "size=64m", "tmpfs"]).arg(point))
        })
    }

    /// An overlay: an empty lower folder, everything in the upper one, as a container has it.
    pub fn overlay() -> Result<Mount, String> {
        needs_root()?;
        needs_filesystem("overlay")?;
        Mount::over("overlay", |scratch, point| {
            let folder = |name: &str| {
                let path = scratch.join(name);
                fs::create_dir(&path).map_err(|error| error.to_string())?;
                Ok::<String, String>(path.display().to_string())
            };
            let (lower, upper, work) = (folder("lower")?, folder("upper")?, folder("work")?);
            let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
            run(Command::new("mount").args(["-t", "overlay", "-o", &options, "overlay"]).arg(point))
        })
    }

    /// A FUSE file system that passes everything on to a folder.
    pub fn fuse() -> Result<Mount, String> {
        needs_program("bindfs")?;
        if !Path::new("/dev/fuse").exists() {
            return Err("there is no /dev/fuse".to_owned());
        }
        Mount::over("fuse", |scratch, point| {
            let below = scratch.join("below");
            fs::create_dir(&below).map_err(|error| error.to_string())?;
            // Anyone but root may mount for himself alone.
            run(Command::new("bindfs").arg("--no-allow-other").arg(below).arg(point))
        })
    }

    fn over(name: &str, mount: impl FnOnce(&Scratch, &Path) -> Result<(), String>) -> Result<Mount, String> {
        let scratch = Scratch::new(name);
        let point = scratch.join("mounted");
        fs::create_dir(&point).map_err(|error| error.to_string())?;
        mount(&scratch, &point)?;
        Ok(Mount { point, _scratch: scratch })
    }

    /// A path inside.
    pub fn join(&self, name: &str) -> PathBuf {
        self.point.join(name)
    }

    /// Mounts it anew with other options: "ro" or "rw".
    pub fn remount(&self, options: &str) {
        must(Command::new("mount").args(["-o", &format!("remount,{options}")]).arg(&self.point));
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily where something still has a file open: the image goes with the last user.
        if run(Command::new("umount").arg(&self.point)).is_err() {
            let _ = run(Command::new("umount").arg("-l").arg(&self.point));
        }
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// Why root is missing, if it is.
pub fn needs_root() -> Result<(), String> {
    if rustix::process::geteuid().is_root() { Ok(()) } else { Err("only root may mount".to_owned()) }
}

fn needs_program(name: &str) -> Result<(), String> {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let found = path.split(':').any(|folder| Path::new(folder).join(name).exists());
    if found { Ok(()) } else { Err(format!("{name} is not installed")) }
}

fn needs_filesystem(name: &str) -> Result<(), String> {
    let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let built_in = known.lines().any(|line| line.split_whitespace().last() == Some(name));
    if built_in || run(Command::new("modprobe").arg(name)).is_ok() {
        return Ok(());
    }
    Err(format!("this kernel has no {name}"))
}

/// Says on stderr that a part did not run, and why: the test suite counts these lines.
pub fn skipped(why: &str) {
    // Past libtest's capture, which swallows what a passing test prints.
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}
