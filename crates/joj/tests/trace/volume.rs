//! A filesystem in a file for one test, and SQLite's transactions on it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Python's SQLite: autocommit INSERTs of 100 bytes with synchronous=FULL, and no clean close.
const INSERTS: &str = "
import os, sqlite3, sys
database, mode, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
connection = sqlite3.connect(database, isolation_level=None)
connection.execute('PRAGMA journal_mode=' + mode)
connection.execute('PRAGMA synchronous=FULL')
connection.execute('CREATE TABLE IF NOT EXISTS t(a INTEGER PRIMARY KEY, b)')
for _ in range(count):
    connection.execute('INSERT INTO t(b) VALUES(?)', ('x' * 100,))
os._exit(0)
";

/// Makes fdatasync what older and bundled builds of SQLite call: fsync.
const FSYNC_ONLY: &str = "#include <unistd.h>\nint fdatasync(int file) { return fsync(file); }\n";

/// Mounted through a loop device; gone with the value.
pub struct Volume {
    directory: PathBuf,
    /// Further loop devices that belong to it.
    other_disks: Vec<String>,
}

impl Volume {
    /// Makes a filesystem of 1 GB, sparse. `Err` says why this machine cannot.
    pub fn create(kind: &str) -> Result<Self, String> {
        Self::create_with(kind, &[], "noatime")
    }

    /// The same with further options for mkfs, and these for mount.
    pub fn create_with(kind: &str, make: &[&str], mount: &str) -> Result<Self, String> {
        let volume = Self::empty(kind)?;
        volume.mount(kind, make, mount)?;
        Ok(volume)
    }

    /// The same for an ext4 or XFS whose journal is on another disk.
    pub fn with_journal_elsewhere(kind: &str) -> Result<Self, String> {
        let mut volume = Self::empty(kind)?;
        let disk = volume.other_disk("journal", 64 << 20)?;
        if kind == "xfs" {
            volume.mount(kind, &["-l", &format!("logdev={disk}")], &format!("noatime,logdev={disk}"))?;
        } else {
            run(Command::new("mke2fs").args(["-Fq", "-O", "journal_dev", "-b", "4096", &disk]))?;
            volume.mount(kind, &["-J", &format!("device={disk}")], "noatime")?;
        }
        Ok(volume)
    }

    /// A Btrfs on three disks, whose data has parity.
    pub fn with_parity() -> Result<Self, String> {
        let mut volume = Self::empty("btrfs")?;
        let mut disks = Vec::new();
        for name in ["second", "third"] {
            disks.push(volume.other_disk(name, 1 << 30)?);
        }
        let make = [&["-d", "raid5", "-m", "raid1"][..], &[&disks[0], &disks[1]]].concat();
        volume.mount("btrfs", &make, &format!("noatime,device={},device={}", disks[0], disks[1]))?;
        Ok(volume)
    }

    fn other_disk(&mut self, name: &str, bytes: u64) -> Result<String, String> {
        let image = self.sparse(name, bytes)?;
        let disk = run(Command::new("losetup").args(["--find", "--show"]).arg(&image))?.trim().to_owned();
        self.other_disks.push(disk.clone());
        Ok(disk)
    }

    fn empty(kind: &str) -> Result<Self, String> {
        if !rustix::process::getuid().is_root() {
            return Err("capturing needs root".to_owned());
        }
        let number = std::thread::current().id();
        let name = format!("joj-trace-{}-{kind}-{number:?}", std::process::id()).replace(['(', ')'], "");
        let volume = Self { directory: std::env::temp_dir().join(name), other_disks: Vec::new() };
        std::fs::create_dir_all(volume.path()).map_err(|error| error.to_string())?;
        Ok(volume)
    }

    fn sparse(&self, name: &str, bytes: u64) -> Result<PathBuf, String> {
        let path = self.beside(name);
        let file = std::fs::File::create(&path).map_err(|error| error.to_string())?;
        file.set_len(bytes).map_err(|error| error.to_string())?;
        Ok(path)
    }

    fn mount(&self, kind: &str, make: &[&str], mount: &str) -> Result<(), String> {
        let image = self.sparse("image", 1 << 30)?;
        let options: &[&str] = if kind == "ext4" { &["-Fq", "-b", "4096"] } else { &["-fq"] };
        run(Command::new(format!("mkfs.{kind}")).args(options).args(make).arg(&image))?;
        run(Command::new("mount").args(["-o", &format!("loop,{mount}")]).arg(&image).arg(self.path()))?;
        Ok(())
    }

    /// Where it is mounted.
    pub fn path(&self) -> PathBuf {
        self.directory.join("mnt")
    }

    /// Writes what is left from before: under way when a capture begins, it would be in the disk's counters alone.
    pub fn settle(&self) {
        let directory = std::fs::File::open(self.path()).expect("the volume");
        rustix::fs::syncfs(&directory).expect("syncfs");
    }

    /// A file beside the mounted filesystem, not on it.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The command that inserts `count` rows into a new database, the only file of the volume.
    pub fn inserts(&self, mode: &str, count: u32) -> Vec<String> {
        for entry in std::fs::read_dir(self.path()).expect("the volume").flatten() {
            // lost+found stays.
            let _ = std::fs::remove_file(entry.path());
        }
        let script = self.beside("inserts.py");
        std::fs::write(&script, INSERTS).expect("a script");
        let database = self.path().join("test.db");
        ["/usr/bin/python3", &text(&script), &text(&database), mode, &count.to_string()]
            .map(str::to_owned)
            .into()
    }

    /// The library to preload so that each fdatasync becomes an fsync.
    pub fn fsync_only(&self) -> PathBuf {
        self.library("fsync", FSYNC_ONLY)
    }

    /// The library to preload that keeps an account of a program's writes and syncs.
    pub fn accountant(&self) -> PathBuf {
        self.library("calls", include_str!("calls.c"))
    }

    fn library(&self, name: &str, text: &str) -> PathBuf {
        let (source, library) = (self.beside(&format!("{name}.c")), self.beside(&format!("{name}.so")));
        std::fs::write(&source, text).expect("a source");
        run(Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source)).expect("cc");
        library
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        // A program that another thread is just starting has our open files until it runs.
        let was_busy = |_| {
            let answer = run(Command::new("umount").arg(self.path()));
            let was_busy = answer.is_err_and(|reason| reason.contains("busy"));
            if was_busy {
                std::thread::sleep(Duration::from_millis(20));
            }
            was_busy
        };
        if (0..100).all(was_busy) {
            // On a busy machine that takes longer: the kernel unmounts once nobody uses it.
            let _ = run(Command::new("umount").arg("--lazy").arg(self.path()));
        }
        for disk in &self.other_disks {
            let _ = run(Command::new("losetup").args(["--detach", disk]));
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Runs a program; `Err` is what it said.
pub fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        Ok(said(&output.stdout))
    } else {
        Err(format!("{command:?}: {}", said(&output.stderr)))
    }
}

fn said(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Runs `joj trace` with these options on a volume, around a command.
pub fn joj(volume: &Volume, options: &[&str], environment: &[(&str, PathBuf)], command: &[String]) -> Output {
    let mut joj = Command::new(env!("CARGO_BIN_EXE_joj"));
    joj.args(["trace", "--device"]).arg(volume.path()).args(options).arg("--");
    // The environment is the command's, not joj's: what is preloaded would change joj's own calls.
    joj.arg("/usr/bin/env")
        .args(environment.iter().map(|(name, value)| format!("{name}={}", value.display())));
    joj.args(command).output().expect("joj")
}

/// The volume, or a line that says why the test is skipped.
pub fn volume_or_skip(kind: &str) -> Option<Volume> {
    or_skip(Volume::create(kind))
}

/// The same for a volume that was made otherwise.
pub fn or_skip(volume: Result<Volume, String>) -> Option<Volume> {
    volume.inspect_err(|reason| println!("skipped: no such volume: {reason}")).ok()
}

/// True where this way of capturing is there; else a line says why the test is skipped.
pub fn has_backend(backend: &str) -> bool {
    // Each look loads what a capture loads, two seconds of a processor with eBPF.
    static KNOWN: Mutex<BTreeMap<String, Result<(), String>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let captures = known.entry(backend.to_owned()).or_insert_with(|| can_capture(backend));
    if let Err(why) = captures {
        println!("skipped: cannot capture with {backend}: {why}");
    }
    captures.is_ok()
}

fn can_capture(backend: &str) -> Result<(), String> {
    let output = Command::new(env!("CARGO_BIN_EXE_joj"))
        .args(["trace", "--backend", backend, "--json", "-", "--", "true"])
        .output()
        .expect("joj");
    let said = said(&output.stderr);
    // On an idle machine there is nothing to capture.
    if output.status.success() || said.contains("nothing was captured") { Ok(()) } else { Err(said) }
}
