//! Tasks to workers and their answers, typed.

use crate::bench::worker::task::{Answer, Reply, Task};
use crate::machine::proc::worker_process::{WorkerError, Workers};

/// Why a measurement cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// A signal asked for it.
    Signal,
    /// The disk is full: no other run would fare better. What to do about it.
    Full(String),
    /// This task failed; others may not. What, where, how to mend.
    Failed(String),
}

impl From<Stop> for String {
    fn from(stop: Stop) -> String {
        match stop {
            Stop::Signal => "it was told to stop".to_owned(),
            Stop::Full(reason) | Stop::Failed(reason) => reason,
        }
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
    pub fn ask(&self, task: &Task) -> Result<Answer, Stop> {
        let text = serde_json::to_string(task).map_err(|error| Stop::Failed(error.to_string()))?;
        let answer = self.workers.ask(&text).map_err(|error| match error {
            WorkerError::Stopped => Stop::Signal,
            WorkerError::Broken(reason) => Stop::Failed(reason),
        })?;
        let reply: Reply = serde_json::from_str(&answer)
            .map_err(|error| Stop::Failed(format!("a worker's answer is no answer: {error}")))?;
        reply.map_err(|refusal| match refusal.disk_full {
            true => Stop::Full(refusal.message),
            false => Stop::Failed(refusal.message),
        })
    }
}
