//! A process that holds connections and does what it is told, one line at a time.
//!
//! A command is fields with `\x1f` between them; the answer is one line. Both ends are pipes whose descriptors the child
//! copies out of the way first: descriptors 0 to 2 are then free to be closed.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use blockio::real::descriptors;
use rustix::process::{Resource, Signal, set_parent_process_death_signal};

use crate::real::child::{again, role};
use crate::real::fork::forked;
use crate::real::sqlite::{Connection, SqlError, system};
use crate::real::{ordeal, refusal};

/// Nothing takes longer on the slowest machine: who has not answered after this hangs.
const PATIENCE: Duration = Duration::from_secs(30);
const BETWEEN: char = '\x1f';
/// In front of each answer: what the test harness prints is no answer.
const ANSWER: &str = "\x02";

/// A worker's end, as its test sees it.
pub struct Worker {
    child: Child,
    commands: ChildStdin,
    answers: Receiver<String>,
}

/// How a worker begins.
#[derive(Debug, Clone, Copy)]
pub struct Start {
    /// Loads waldio.
    pub waldio: bool,
    /// Belongs to `nobody`.
    pub nobody: bool,
    /// Some of its system calls will be refused.
    pub traps: bool,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// It ended.
    Died,
    /// It takes too long.
    Hangs,
}

impl Worker {
    /// Starts the test `test` again as a worker; it begins with `at_work`.
    pub fn start(test: &str, start: Start) -> Worker {
        let flags = [start.waldio, start.nobody, start.traps].map(|flag| if flag { "1" } else { "0" });
        let mut command = again(test, &flags);
        // What it complains of is no answer; `GENERATOR_TRACE` shows it.
        let tells = std::env::var_os("GENERATOR_TRACE").is_some();
        let stderr = if tells { Stdio::inherit() } else { Stdio::null() };
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr).spawn().unwrap();
        let commands = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (give, answers) = channel();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some(answer) = line.split_once(ANSWER).map(|(_, answer)| answer.to_owned())
                    && give.send(answer).is_err()
                {
                    return;
                }
            }
        });
        Worker { child, commands, answers }
    }

    /// Has it do something.
    pub fn ask(&mut self, fields: &[&str]) -> Result<String, Silence> {
        let line = fields.join(&BETWEEN.to_string()).replace('\n', " ");
        if writeln!(self.commands, "{line}").is_err() {
            return Err(Silence::Died);
        }
        self.answers.recv_timeout(PATIENCE).map_err(|error| match error {
            RecvTimeoutError::Timeout => Silence::Hangs,
            RecvTimeoutError::Disconnected => {
                eprintln!("a worker ended: {:?}", self.child.wait());
                Silence::Died
            }
        })
    }

    /// SIGKILL; returns when it is gone.
    pub fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// True in a worker that `test` started, when its work is done: the test returns.
pub fn at_work(test: &str) -> bool {
    let Some(flags) = role(test) else { return false };
    let flag = |index: usize| flags[index] == "1";
    set_parent_process_death_signal(Some(Signal::KILL)).unwrap();
    ordeal::ignore_file_size_signal();
    let (input, output) = (ordeal::high_copy(0).unwrap(), ordeal::high_copy(1).unwrap());
    system();
    if flag(0) {
        system().load(None).unwrap();
    }
    if flag(2) {
        refusal::refuse("flock", "EPERM", 0);
    }
    if flag(1) {
        ordeal::become_nobody();
        // It went with the rights.
        set_parent_process_death_signal(Some(Signal::KILL)).unwrap();
    }
    let mut desk = Desk::default();
    let mut output = File::from(output);
    for line in BufReader::new(File::from(input)).lines().map_while(Result::ok) {
        let fields: Vec<&str> = line.split(BETWEEN).collect();
        let answer = desk.answer(&fields);
        let line = format!("{ANSWER}{}\n", answer.replace('\n', "\\n"));
        if output.write_all(line.as_bytes()).is_err() {
            break;
        }
    }
    true
}

/// The child's connections.
#[derive(Default)]
struct Desk {
    open: HashMap<String, Connection>,
    /// The names of those that are stock's.
    of_stock: HashSet<String>,
}

impl Desk {
    fn answer(&mut self, fields: &[&str]) -> String {
        if let ["open", name, _, vfs] = *fields {
            if vfs == "unix" {
                self.of_stock.insert(name.to_owned());
            } else {
                self.of_stock.remove(name);
            }
        }
        if fields.get(1).is_some_and(|name| self.of_stock.contains(*name)) {
            // SQLite opens a database at a standard stream's descriptor, closes it, and its process has lost all locks on it. Two
            // may write at once then, on either side; waldio fills such descriptors itself.
            descriptors::fill_streams();
        }
        match *fields {
            ["open", name, uri, vfs] => match system().open_with(uri, Some(vfs)) {
                Ok(opened) => {
                    // Who waits for another connection of the same test waits in vain.
                    opened.busy_timeout(0);
                    self.open.insert(name.to_owned(), opened);
                    "opened".to_owned()
                }
                Err(error) => told(&error),
            },
            ["close", name] => {
                self.open.remove(name);
                "closed".to_owned()
            }
            ["sql", name, sql] => self.with(name, |db| run(db, sql)),
            ["backup", name, uri, vfs] => self.with(name, |db| match system().open_with(uri, Some(vfs)) {
                Ok(to) => format!("{:?}", db.back_up(&to, 3)),
                Err(error) => told(&error),
            }),
            ["control", name, operation, argument] => self.with(name, |db| {
                format!("{:?}", db.control(operation.parse().unwrap(), argument.parse().unwrap()))
            }),
            ["timeout", name, milliseconds] => self.with(name, |db| {
                db.busy_timeout(milliseconds.parse().unwrap());
                "set".to_owned()
            }),
            _ => befall(fields),
        }
    }

    fn with(&self, name: &str, action: impl FnOnce(&Connection) -> String) -> String {
        self.open.get(name).map_or_else(|| "not open".to_owned(), action)
    }
}

fn told(error: &SqlError) -> String {
    format!("error {}: {}", error.code, error.message)
}

/// `0` or `1` for an open transaction, then rows and error.
fn run(db: &Connection, sql: &str) -> String {
    let (rows, error) = db.run(sql);
    let rows: Vec<String> = rows.iter().map(|row| row.join("|")).collect();
    let error = error.map(|error| told(&error)).unwrap_or_default();
    let open = u8::from(!db.is_autocommit());
    format!("{open}{BETWEEN}{}{BETWEEN}{error}", rows.join(";"))
}

/// What befalls the process.
fn befall(fields: &[&str]) -> String {
    let bound = |value: &str| (value != "all").then(|| value.parse().unwrap());
    match *fields {
        ["sleep", milliseconds] => {
            let wanted: u64 = milliseconds.parse().unwrap();
            let began = Instant::now();
            system().sleep(i32::try_from(wanted).unwrap());
            // Behind a refusal so short a sleep may be taken for the busy handler's first naps.
            let short = wanted > 2 && began.elapsed() < Duration::from_millis(wanted);
            return if short { "woke early".to_owned() } else { "slept".to_owned() };
        }
        ["fork"] => {
            let child = || {
                system().sleep(1);
                7
            };
            // The desk has one thread, and waldio's own hold none of its locks for long. A child that hangs is a finding.
            return format!("child {}", forked(child).finish());
        }
        ["standard"] => ordeal::close_descriptors(0..3),
        ["stderr"] => ordeal::close_descriptors(2..3),
        ["complain"] => ordeal::complain(),
        ["files", value] => ordeal::bound(Resource::Nofile, bound(value)),
        ["bytes", value] => ordeal::bound(Resource::Fsize, bound(value)),
        ["fail", call, error, count] => {
            refusal::refuse(call, error, if count == "all" { i64::MAX } else { count.parse().unwrap() });
        }
        _ => panic!("not a command: {fields:?}"),
    }
    "done".to_owned()
}
