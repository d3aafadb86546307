//! Runs one task in a process of its own: libraries and default VFSes do not mix, counters begin at zero, and a
//! crash of what is measured does not take joj with it.

use std::env;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::Signal;

use super::signal;

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
    pub fn new(environment: Vec<(String, String)>) -> Result<Workers, String> {
        let program = env::current_exe()
            .map_err(|error| format!("cannot find joj's own file: {error}; start it by its full path"))?;
        Ok(Workers { program, environment })
    }

    /// Sends `task` to a new process and waits for the answer.
    /// # Errors
    /// [`WorkerError`]; the process has ended in any case.
    pub fn ask(&self, task: &str) -> Result<String, WorkerError> {
        if signal::is_stopped() {
            return Err(WorkerError::Stopped);
        }
        let started = Command::new(&self.program)
            .arg(SUBCOMMAND)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = started.map_err(|error| broken(&format!("it did not start: {error}")))?;
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
