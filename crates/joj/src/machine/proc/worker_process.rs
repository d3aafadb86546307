//! Runs one task in a process of its own: libraries and default VFSes do not mix, counters begin at zero, and a
//! crash of what is measured does not take joj with it.

use std::env;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use rustix::process::Signal;
use thiserror::Error;

use crate::machine::proc::signal;

/// The hidden subcommand that reads a task from standard input and answers on standard output.
pub const SUBCOMMAND: &str = "bench-worker";

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerError {
    /// A signal asked joj to end.
    Stopped,
    /// The process ended without one, or could not be started.
    Broken(String),
}

/// joj cannot be started a second time.
#[derive(Debug, Error)]
#[error("cannot find joj's own file: {0}; start it by its full path")]
pub struct NoOwnFile(#[source] std::io::Error);

/// How to start workers.
#[derive(Debug)]
pub struct Workers {
    program: PathBuf,
    environment: Vec<(String, String)>,
}

impl Workers {
    /// Workers of this very program, with `environment` besides what it has itself.
    /// # Errors
    /// Where the program cannot tell its own path.
    pub fn new(environment: Vec<(String, String)>) -> Result<Workers, NoOwnFile> {
        let program = env::current_exe().map_err(NoOwnFile)?;
        Ok(Workers { program, environment })
    }

    /// The words of a command that does the task in a file, for whoever starts it. Its exit code is the answer, and what it says on
    /// standard error; the environment is joj's own.
    pub fn words(&self, task_file: &Path) -> Vec<OsString> {
        vec![self.program.clone().into(), SUBCOMMAND.into(), task_file.into()]
    }

    fn spawn(&self) -> Result<Child, WorkerError> {
        let started = Command::new(&self.program)
            .arg(SUBCOMMAND)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        started.map_err(|error| broken(&format!("it did not start: {error}")))
    }

    /// Starts a process to talk with, line by line.
    /// # Errors
    /// Where it does not start.
    pub fn converse(&self) -> Result<Conversation, WorkerError> {
        let mut child = self.spawn()?;
        let input = child.stdin.take();
        let output = child.stdout.take().map(BufReader::new);
        Ok(Conversation { child, input, output })
    }

    /// Sends `task` to a new process and waits for the answer.
    /// # Errors
    /// [`WorkerError`]; the process has ended in any case.
    pub fn ask(&self, task: &str) -> Result<String, WorkerError> {
        if signal::is_stopped() {
            return Err(WorkerError::Stopped);
        }
        let mut child = self.spawn()?;
        signal::watch_worker(child.id());
        let talked = talk(&mut child, task);
        signal::forget_worker();
        let status = child.wait().map_err(|error| broken(&error.to_string()))?;
        if signal::is_stopped() {
            return Err(WorkerError::Stopped);
        }
        match talked {
            Ok(answer) if status.success() => Ok(answer),
            Ok(_) => Err(broken(&ending(status))),
            Err(error) => Err(broken(&format!("{error}, {}", ending(status)))),
        }
    }
}

/// A process that is told and that answers in lines; dropping it ends it.
#[derive(Debug)]
pub struct Conversation {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<BufReader<ChildStdout>>,
}

impl Conversation {
    /// Sends a line.
    /// # Errors
    /// Where the process has ended.
    pub fn tell(&mut self, line: &str) -> Result<(), WorkerError> {
        let Some(input) = &mut self.input else { return Err(broken("it was told to end")) };
        writeln!(input, "{line}").map_err(|error| broken(&error.to_string()))
    }

    /// Waits for a line.
    /// # Errors
    /// Where the process ends without one.
    pub fn hear(&mut self) -> Result<String, WorkerError> {
        let mut line = String::new();
        if let Some(output) = &mut self.output {
            output.read_line(&mut line).map_err(|error| broken(&error.to_string()))?;
        }
        if line.is_empty() { Err(broken(&self.ending())) } else { Ok(line) }
    }

    fn ending(&mut self) -> String {
        let _ = self.child.kill();
        self.child.wait().map_or_else(|error| error.to_string(), ending)
    }

    /// Waits for the process to end by itself, once it has answered everything.
    /// # Errors
    /// How it ended, where not well.
    pub fn finish(mut self) -> Result<(), WorkerError> {
        self.input = None;
        let status = self.child.wait().map_err(|error| broken(&error.to_string()))?;
        if status.success() { Ok(()) } else { Err(broken(&ending(status))) }
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        // Both fail where it has ended already, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn broken(reason: &str) -> WorkerError {
    WorkerError::Broken(format!("the measuring process gave no answer: {reason}"))
}

fn ending(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(number), _) => format!("signal {number} ended it"),
        (None, code) => format!("it ended with code {}", code.unwrap_or(-1)),
    }
}

fn talk(child: &mut Child, task: &str) -> std::io::Result<String> {
    if let Some(mut input) = child.stdin.take() {
        input.write_all(task.as_bytes())?;
    }
    let mut answer = String::new();
    if let Some(mut output) = child.stdout.take() {
        output.read_to_string(&mut answer)?;
    }
    Ok(answer)
}

/// In the worker: ends it when joj is killed by what cannot be caught.
pub fn end_with_parent() {
    // Without it a killed joj leaves a worker behind until its run is over: a pity, not a reason to stop.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
}
