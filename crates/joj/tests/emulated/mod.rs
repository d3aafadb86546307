//! What tests of the emulated machine need.

#![allow(dead_code, reason = "each test program uses a part")]

use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Why the lab cannot run here.
pub fn missing() -> Option<String> {
    let there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !there("qemu-system-x86_64") {
        return Some("there is no qemu-system-x86_64".to_owned());
    }
    if !there("apt-get") || !there("dpkg-deb") {
        return Some("this is no Debian: its kernel is not to be had with apt".to_owned());
    }
    None
}

/// A directory of a test's own, which goes with the value.
pub struct TestFiles {
    /// Where it is.
    pub path: PathBuf,
}

impl TestFiles {
    /// An empty one.
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("joj-lab-test-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        Self { path }
    }

    /// Makes a file in it: its whole name.
    pub fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.path.join(name), text).expect("a file");
        self.name(name)
    }

    /// The whole name of a file in it.
    pub fn name(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }
}

impl Drop for TestFiles {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}
