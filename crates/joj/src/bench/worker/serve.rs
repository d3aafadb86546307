//! A worker: one task, one answer, end of process.

use std::io;

use serde_json::Value;
use thiserror::Error;

use crate::bench::worker::crash::checker::CrashCheckTask;
use crate::bench::worker::crash::writer::CrashWriteTask;
use crate::bench::worker::database_run::RowTask;
use crate::bench::worker::file_run::FileTask;
use crate::bench::worker::initialisation_run::InitialisationTask;
use crate::bench::worker::io_run::IoTask;
use crate::bench::worker::libraries::{DescribeTask, OptionsTask};
use crate::bench::worker::limit_run::{CalibrationTask, LimitTask};
use crate::bench::worker::many_writers::run::ContendedTask;
use crate::bench::worker::many_writers::writers::WriteTask;
use crate::bench::worker::mobibench::run::{MobibenchSyncTask, MobibenchTask};
use crate::bench::worker::page_transactions::run::PageTransactionsTask;
use crate::bench::worker::pattern_run::PatternTask;
use crate::bench::worker::task::{Task, say};
use crate::machine::proc::worker_process::end_with_parent;

/// Why a worker gives no reply.
#[derive(Debug, Error)]
pub enum ServeError {
    /// Standard input cannot be read.
    #[error(transparent)]
    Input(io::Error),
    /// What stands there is no task.
    #[error("bench-worker is for joj's own use, it found no task: {0}")]
    NoTask(#[source] serde_json::Error),
    /// There is nothing that does the task: a fault of joj's.
    #[error("bench-worker knows no task `{0}`: it is not in the list of serve.rs")]
    UnknownTask(String),
    /// The reply cannot be written as JSON: a fault of joj's.
    #[error(transparent)]
    Reply(serde_json::Error),
}

/// Does a task of one kind and says what came of it.
type Doing = fn(Value) -> Result<(), ServeError>;

/// What a worker can do, by the tasks' names.
const TASKS: [(&str, Doing); 16] = [
    doing::<DescribeTask>(),
    doing::<OptionsTask>(),
    doing::<CalibrationTask>(),
    doing::<LimitTask>(),
    doing::<RowTask>(),
    doing::<ContendedTask>(),
    doing::<WriteTask>(),
    doing::<InitialisationTask>(),
    doing::<PatternTask>(),
    doing::<FileTask>(),
    doing::<IoTask>(),
    doing::<MobibenchTask>(),
    doing::<MobibenchSyncTask>(),
    doing::<PageTransactionsTask>(),
    doing::<CrashWriteTask>(),
    doing::<CrashCheckTask>(),
];

const fn doing<T: Task>() -> (&'static str, Doing) {
    (T::NAME, |task| {
        let task: T = serde_json::from_value(task).map_err(ServeError::NoTask)?;
        say(&task.run()).map_err(ServeError::Reply)
    })
}

/// Reads a task from standard input, does it, writes the reply to standard output.
/// # Errors
/// Where the task is none: only joj itself starts workers.
pub fn serve() -> Result<(), ServeError> {
    end_with_parent();
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(ServeError::Input)?;
    let (name, task): (String, Value) = serde_json::from_str(&line).map_err(ServeError::NoTask)?;
    match TASKS.iter().find(|(known, _)| *known == name) {
        Some((_, doing)) => doing(task),
        None => Err(ServeError::UnknownTask(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_tasks_have_one_name() {
        for (index, (name, _)) in TASKS.iter().enumerate() {
            assert!(TASKS[..index].iter().all(|(earlier, _)| earlier != name), "{name}");
        }
    }
}
