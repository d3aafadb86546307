//! One side of a run: a folder with the files, and the processes that have them open.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Gid, Uid};

use super::program::{Program, letter};
use super::worker::{Silence, Start, Worker};
use crate::real::ordeal::NOBODY;
use crate::real::place::Scratch;

/// What stands for the folder in programs and answers.
pub const FOLDER: &str = "{dir}";

/// What a statement came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// A transaction is open afterwards.
    pub in_transaction: bool,
    /// Rows, as text.
    pub rows: String,
    /// Code and message; empty for none.
    pub error: String,
}

/// See the file's head.
pub struct Side<'program> {
    test: &'static str,
    program: &'program Program,
    waldio: bool,
    scratch: Scratch,
    workers: Vec<Option<Worker>>,
    open: Vec<bool>,
}

impl<'program> Side<'program> {
    /// The files of `base`, and nobody who has them open.
    pub fn new(test: &'static str, program: &'program Program, base: &Path, waldio: bool) -> Self {
        let scratch = Scratch::new(if waldio { "waldio" } else { "stock" });
        for name in program.databases() {
            fs::copy(base, scratch.join(&name)).unwrap();
        }
        let workers = (0..program.processes()).map(|_| None).collect();
        let side = Side { test, program, waldio, scratch, workers, open: vec![false; program.cast.len()] };
        side.give_away();
        side
    }

    /// Everything in the folder belongs to the program's user.
    pub fn give_away(&self) {
        if !self.program.nobody {
            return;
        }
        let all = fs::read_dir(self.scratch.path()).unwrap().map(|entry| entry.unwrap().path());
        for path in all.chain([self.scratch.path().to_path_buf()]) {
            rustix::fs::chown(&path, Some(Uid::from_raw(NOBODY)), Some(Gid::from_raw(NOBODY))).unwrap();
        }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.scratch.path()
    }

    /// A file in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    /// Mode bits of the folder.
    pub fn set_mode(&self, mode: u32) {
        fs::set_permissions(self.scratch.path(), fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Whether it has this connection open.
    pub fn is_open(&self, who: usize) -> bool {
        self.open[who]
    }

    /// Connections of a process.
    fn of_process(&self, process: usize) -> Vec<usize> {
        (0..self.open.len()).filter(|who| self.program.cast[*who].process == process).collect()
    }

    /// Has a process do something; it is started where there is none.
    pub fn ask(&mut self, process: usize, fields: &[&str]) -> Result<String, Silence> {
        let waldio = self.waldio && self.of_process(process).iter().any(|who| self.program.cast[*who].waldio);
        let start = Start { waldio, nobody: self.program.nobody, traps: self.program.has("fail ") };
        let folder = self.scratch.path().to_str().unwrap().to_owned();
        let worker = self.workers[process - 1].get_or_insert_with(|| Worker::start(self.test, start));
        let fields: Vec<String> = fields.iter().map(|field| field.replace(FOLDER, &folder)).collect();
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        worker.ask(&fields).map(|answer| answer.replace(&folder, FOLDER))
    }

    /// Has a connection's process do something with it.
    pub fn ask_of(&mut self, who: usize, verb: &str, rest: &[&str]) -> Result<String, Silence> {
        let name = letter(who).to_string();
        let fields: Vec<&str> = [verb, &name].into_iter().chain(rest.iter().copied()).collect();
        self.ask(self.program.cast[who].process, &fields)
    }

    /// URI and VFS of a database, as this connection opens it here.
    pub fn address(&self, who: usize, database: &str) -> (String, &'static str) {
        let role = &self.program.cast[who];
        let with_waldio = self.waldio && role.waldio;
        let suits = |parameter: &&str| with_waldio || !parameter.starts_with("waldio");
        let parameters: Vec<&str> =
            role.parameters.split('&').filter(|parameter| !parameter.is_empty()).filter(suits).collect();
        let uri = format!("file:{FOLDER}/{database}?{}", parameters.join("&"));
        (uri, if with_waldio { "waldio" } else { "unix" })
    }

    /// Opens a connection that is not open, without a statement.
    pub fn open(&mut self, who: usize) -> Result<String, Silence> {
        if self.open[who] {
            return Ok("open already".to_owned());
        }
        let (uri, vfs) = self.address(who, &self.program.cast[who].database);
        let answer = self.ask_of(who, "open", &[&uri, vfs])?;
        self.open[who] = answer == "opened";
        Ok(answer)
    }

    /// Closes it, if it is open.
    pub fn close(&mut self, who: usize) -> Result<String, Silence> {
        if !std::mem::take(&mut self.open[who]) {
            return Ok("not open".to_owned());
        }
        self.ask_of(who, "close", &[])
    }

    /// Runs SQL; who is not open opens first, and reads once: SQLite looks for a log at the first statement only.
    pub fn sql(&mut self, who: usize, sql: &str) -> Result<Reply, Silence> {
        if !self.open[who] {
            let answer = self.open(who)?;
            if !self.open[who] {
                return Ok(Reply { in_transaction: false, rows: String::new(), error: answer });
            }
            self.ask_of(who, "sql", &["SELECT count(*) FROM sqlite_schema"])?;
        }
        let answer = self.ask_of(who, "sql", &[sql])?;
        let mut fields = answer.splitn(3, '\x1f').map(str::to_owned);
        let mut next = || fields.next().unwrap_or_default();
        Ok(Reply { in_transaction: next() == "1", rows: next(), error: next() })
    }

    /// SIGKILL; its connections are gone.
    pub fn kill(&mut self, process: usize) {
        for who in self.of_process(process) {
            self.open[who] = false;
        }
        if let Some(worker) = self.workers[process - 1].take() {
            worker.kill();
        }
    }

    /// Processes that were started.
    pub fn started(&self) -> Vec<usize> {
        (1..=self.workers.len()).filter(|process| self.workers[process - 1].is_some()).collect()
    }
}
