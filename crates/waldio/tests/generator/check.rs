//! A judge: makes the databases that programs begin with, and reads copies of what they leave, with stock SQLite and with
//! waldio, in a process of its own.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::worker::{Start, Worker};
use crate::real::place::Scratch;

/// See the file's head.
pub struct Judge {
    worker: Worker,
    scratch: Scratch,
    number: u64,
}

/// What a database holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Content {
    /// All but the rows of `kept`, as text.
    pub all: String,
    /// The rows of `kept`.
    pub kept: BTreeSet<u64>,
}

/// Rows of `t` at the beginning; with pages of 1024 bytes a dozen pages.
const ROWS: u64 = 40;

impl Judge {
    /// A judge whose process is the test `test`.
    pub fn new(test: &'static str) -> Judge {
        let start = Start { waldio: true, nobody: false, traps: false };
        Judge { worker: Worker::start(test, start), scratch: Scratch::new("judge"), number: 0 }
    }

    fn sql(&mut self, sql: &str) -> Result<String, String> {
        let answer =
            self.worker.ask(&["sql", "J", sql]).map_err(|silence| format!("the judge {silence:?}"))?;
        let mut fields = answer.splitn(3, '\x1f').skip(1);
        let (rows, error) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        if error.is_empty() { Ok(rows.to_owned()) } else { Err(format!("{sql}: {error}")) }
    }

    fn open(&mut self, path: &Path, vfs: &str) -> Result<(), String> {
        let uri = format!("file:{}", path.display());
        let answer = self.worker.ask(&["open", "J", &uri, vfs]).map_err(|silence| format!("{silence:?}"))?;
        if answer == "opened" { Ok(()) } else { Err(answer) }
    }

    fn close(&mut self) {
        let _ = self.worker.ask(&["close", "J"]);
    }

    /// A database in WAL mode, closed.
    pub fn base(&mut self, page_bytes: u32, reserved_bytes: u8) -> PathBuf {
        let path = self.scratch.join(&format!("base-{page_bytes}-{reserved_bytes}"));
        if path.exists() {
            return path;
        }
        self.open(&path, "unix").unwrap();
        let _ = self.worker.ask(&["control", "J", "38", &reserved_bytes.to_string()]);
        let fill = page_bytes / 4;
        self.sql(&format!(
            "PRAGMA page_size = {page_bytes}; PRAGMA journal_mode = WAL;
             CREATE TABLE t(a INTEGER PRIMARY KEY, b UNIQUE, c NOT NULL); CREATE TABLE u(a INTEGER PRIMARY KEY, b);
             CREATE TABLE kept(id INTEGER PRIMARY KEY);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})
             INSERT INTO t SELECT i, i * 10, printf('%.*c', {fill}, 'o') || i FROM n"
        ))
        .unwrap();
        self.close();
        path
    }

    /// What somebody would find who opened a copy of `database` now with this VFS.
    pub fn content(&mut self, database: &Path, vfs: &str) -> Result<Content, String> {
        self.number += 1;
        let copy = self.scratch.join(&format!("copy-{}.db", self.number));
        let ends = ["", "-wal", "-journal"];
        let with = |path: &Path, end: &str| PathBuf::from(format!("{}{end}", path.display()));
        for end in ends {
            // Most have no journal, and a closed one no log.
            let _ = fs::copy(with(database, end), with(&copy, end));
        }
        let content = self.open(&copy, vfs).and_then(|()| self.read());
        self.close();
        for end in ["", "-wal", "-journal", "-shm", "-wal-spare"] {
            let _ = fs::remove_file(with(&copy, end));
        }
        content
    }

    fn read(&mut self) -> Result<Content, String> {
        let integrity = self.sql("PRAGMA integrity_check")?;
        if integrity != "ok" {
            return Err(format!("integrity_check: {}", &integrity[..integrity.len().min(300)]));
        }
        let mut all = self.sql("SELECT type, name, sql FROM sqlite_schema ORDER BY name")?;
        for (table, columns) in [("t", "a, b, c"), ("u", "a, b")] {
            // Programs may drop them.
            if let Ok(rows) = self.sql(&format!("SELECT {columns} FROM {table} ORDER BY a")) {
                all.push_str(&format!("\n{table}: {rows}"));
            }
        }
        let kept = self.sql("SELECT id FROM kept ORDER BY id")?;
        let kept = kept.split(';').filter_map(|id| id.parse().ok()).collect();
        Ok(Content { all, kept })
    }
}
