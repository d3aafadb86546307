//! For tests: a filesystem in a file, mounted through a loop device, gone with the value.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use joj_analysis::trace::event::DeviceNumber;

use crate::machine::proc::clock;

/// A filesystem in a loop image, mounted for a test.
pub struct TestVolume {
    directory: PathBuf,
    device: String,
}

impl TestVolume {
    /// Makes one of `kind`, which `mkfs.KIND` must be there for.
    /// # Errors
    /// Why this machine cannot: a reason to skip the test.
    pub fn create(kind: &str, megabytes: u64) -> Result<Self, String> {
        let name = format!("joj-test-{}-{kind}-{:?}", std::process::id(), std::thread::current().id());
        let directory = std::env::temp_dir().join(name.replace(['(', ')'], ""));
        std::fs::create_dir_all(directory.join("mnt")).map_err(|error| error.to_string())?;
        let mut volume = Self { directory, device: String::new() };
        let image = volume.directory.join("image");
        let file = std::fs::File::create(&image).map_err(|error| error.to_string())?;
        file.set_len(megabytes << 20).map_err(|error| error.to_string())?;
        // ext4 would take smaller blocks for a small filesystem, and write inode tables in its own time.
        let ext4 = ["-Fq", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"];
        let options: &[&str] = if kind == "ext4" { &ext4 } else { &["-fq"] };
        run(&format!("mkfs.{kind}"), &[options, &[&text(&image)]].concat())?;
        volume.device = run("losetup", &["-f", "--show", &text(&image)])?.trim().to_owned();
        run("mount", &["-o", "noatime", &volume.device, &text(&volume.path())])?;
        Ok(volume)
    }

    /// Where it is mounted.
    pub fn path(&self) -> PathBuf {
        self.directory.join("mnt")
    }

    /// The loop device on which it lies.
    pub fn disk(&self) -> DeviceNumber {
        use std::os::unix::fs::MetadataExt;
        let device = std::fs::metadata(&self.device).unwrap().rdev();
        DeviceNumber::new(rustix::fs::major(device), rustix::fs::minor(device)).unwrap()
    }
}

impl Drop for TestVolume {
    fn drop(&mut self) {
        // A program that another thread is just starting has our open files until it runs.
        for _ in 0..100 {
            match run("umount", &[&text(&self.path())]) {
                Err(reason) if reason.contains("busy") => clock::pause(Duration::from_millis(20)),
                _ => break,
            }
        }
        if !self.device.is_empty() {
            let _ = run("losetup", &["-d", &self.device]);
        }
        let _ = std::fs::remove_file(self.directory.join("image"));
        let _ = std::fs::remove_dir(self.path());
        let _ = std::fs::remove_dir(&self.directory);
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output =
        Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
