//! What tests of the emulated machine need.

#![allow(dead_code, reason = "each test program uses a part")]

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};

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

/// The QEMUs that the child's threads started.
pub fn qemus_of(child: &Child) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{}/task", child.id())).into_iter().flatten().flatten();
    let texts = threads.map(|thread| fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    let numbers: Vec<u32> = texts
        .flat_map(|text| text.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<_>>())
        .collect();
    numbers.into_iter().filter(|pid| is_qemu(*pid)).collect()
}

/// A machine, not a QEMU that only says its version.
pub fn is_qemu(pid: u32) -> bool {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words = words.split(|byte| *byte == 0);
    words.next().is_some_and(|program| program.starts_with(b"qemu-system"))
        && words.any(|word| word == b"-kernel")
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
