//! Tasks to workers and their answers, typed.

use thiserror::Error;

use crate::bench::worker::task::{Reply, Task};
use crate::machine::proc::worker_process::{WorkerError, Workers};

/// Why a measurement cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Stop {
    /// A signal asked for it.
    #[error("it was told to stop")]
    Signal,
    /// The disk is full: no other run would fare better. What to do about it.
    #[error("{0}")]
    Full(String),
    /// This task failed; others may not. What, where, how to mend.
    #[error("{0}")]
    Failed(String),
}

impl From<Stop> for String {
    fn from(stop: Stop) -> String {
        stop.to_string()
    }
}

/// Sends tasks.
#[derive(Debug)]
pub struct Asker<'workers> {
    workers: &'workers Workers,
}

impl<'workers> Asker<'workers> {
    /// Sends them to these workers.
    pub fn new(workers: &'workers Workers) -> Self {
        Asker { workers }
    }

    /// Has `task` done and waits.
    /// # Errors
    /// [`Stop`]
    pub fn ask<T: Task>(&self, task: &T) -> Result<T::Answer, Stop> {
        exchange(task, |line| self.send(line))
    }

    /// Brings a worker `line`, and returns with its reply.
    /// # Errors
    /// Where there is none.
    pub fn send(&self, line: &str) -> Result<String, Stop> {
        self.workers.ask(line).map_err(|error| match error {
            WorkerError::Stopped => Stop::Signal,
            WorkerError::Broken(reason) => Stop::Failed(reason),
        })
    }
}

/// What a worker answers to `task`, whose line `send` brings there; it returns with the worker's.
/// # Errors
/// [`Stop`]; what `send` says.
pub fn exchange<T: Task>(
    task: &T,
    send: impl FnOnce(&str) -> Result<String, Stop>,
) -> Result<T::Answer, Stop> {
    let line = send(&task.line().map_err(|error| Stop::Failed(error.to_string()))?)?;
    let reply: Reply<T> = serde_json::from_str(&line)
        .map_err(|error| Stop::Failed(format!("a worker's answer is no answer: {error}")))?;
    reply.map_err(|refusal| match refusal.disk_full {
        true => Stop::Full(refusal.message),
        false => Stop::Failed(refusal.message),
    })
}
