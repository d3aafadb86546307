//! What the tests of recordings share: a directory that goes, joj, and what it prints.

#![allow(dead_code, reason = "each test program uses a part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that is gone at the end of the test.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Of a test's name; two tests of one name have a directory each.
    pub fn new(test: &str) -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("joj-{test}-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    /// Where a file of it is.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A file with this text in it.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.file(name);
        std::fs::write(&path, text).expect("a file");
        path
    }

    /// The names in it.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).expect("the directory");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl AsRef<Path> for Scratch {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// joj with these words; a path is a word.
pub fn joj(words: &[&dyn AsRef<std::ffi::OsStr>]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_joj"))
        .args(words.iter().map(|word| word.as_ref()))
        .output()
        .expect("joj")
}

/// Its exit code, and what it says on standard error.
pub fn told(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Its standard output, where all went well.
pub fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// Imports a text, and gives the recording.
pub fn record(scratch: &Scratch, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let text = scratch.write(&format!("{name}.txt"), text);
    let recording = scratch.file(&format!("{name}.joj"));
    printed(&joj(&[&"record", &"--import", &text, &"-o", &recording]));
    recording
}

/// The JSON of a replay with these further words.
pub fn replay(recording: &Path, directory: &Path, words: &[&str]) -> serde_json::Value {
    let mut command: Vec<&dyn AsRef<std::ffi::OsStr>> =
        vec![&"replay", &recording, &directory, &"--json", &"-"];
    command.extend(words.iter().map(|word| word as &dyn AsRef<std::ffi::OsStr>));
    serde_json::from_str(&printed(&joj(&command))).expect("JSON")
}
