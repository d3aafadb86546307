//! Recordings as text of strace, and what `joj whatif` makes of them.

#![allow(dead_code, reason = "each test program uses a part")]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use serde_json::Value;

use crate::replay::{joj, printed};

/// Text of strace, a line every 100 us.
#[derive(Default)]
pub struct Text {
    pub text: String,
    pub now_us: u64,
}

impl Text {
    pub fn line(&mut self, call: &str) -> &mut Self {
        let now_us = 1_700_000_000_000_000 + self.now_us;
        self.text += &format!("1 {}.{:06} {call} <0.000010>\n", now_us / 1_000_000, now_us % 1_000_000);
        self.now_us += 100;
        self
    }

    /// A page of a database is written, as SQLite does it with a journal that it deletes.
    pub fn commit(&mut self, page: u64) -> &mut Self {
        self.line(r#"open("/d/app.db-journal", O_RDWR|O_CREAT, 0644) = 4"#)
            .line(r#"pwrite64(4, ""..., 512, 0) = 512"#)
            .line("fdatasync(4) = 0")
            .line(r#"open("/d", O_RDONLY|O_DIRECTORY) = 5"#)
            .line("fsync(5) = 0")
            .line("close(5) = 0")
            .line(r#"pwrite64(3, ""..., 4096, 0) = 4096"#)
            .line(&format!(r#"pwrite64(3, ""..., 4096, {}) = 4096"#, page * 4096))
            .line("fdatasync(3) = 0")
            .line("close(4) = 0")
            .line(r#"unlink("/d/app.db-journal") = 0"#)
    }

    /// A file is written and made durable.
    pub fn file(&mut self, name: &str) -> &mut Self {
        self.line(&format!(r#"open("{name}", O_RDWR|O_CREAT|O_TRUNC, 0644) = 6"#))
            .line(r#"write(6, ""..., 1000) = 1000"#)
            .line("fsync(6) = 0")
            .line("close(6) = 0")
    }
}

/// The JSON of `joj whatif` with these further words.
pub fn whatif(recording: &Path, directory: &Path, words: &[&str]) -> Value {
    let mut command: Vec<&dyn AsRef<OsStr>> = vec![&"whatif", &recording, &directory, &"--json", &"-"];
    command.extend(words.iter().map(|word| word as &dyn AsRef<OsStr>));
    serde_json::from_str(&printed(&joj(&command))).expect("JSON")
}

/// By configuration its figures, or the reason why there are none.
pub fn rows_of(result: &Value) -> BTreeMap<String, Result<Value, String>> {
    let rows = result["rows"].as_array().expect("rows").iter();
    let outcome = |row: &Value| match row["outcome"].get("measured") {
        Some(figures) => Ok(figures.clone()),
        None => Err(row["outcome"]["unavailable"].as_str().expect("a reason").to_owned()),
    };
    rows.map(|row| (row["configuration"].as_str().expect("a name").to_owned(), outcome(row))).collect()
}

pub fn names_of_whatif(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("joj-whatif") || name.starts_with("joj-replay")).collect()
}
