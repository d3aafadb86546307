//! A worker: one task, one answer, end of process.

use std::fs;
use std::io;
use std::path::Path;

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
use crate::bench::worker::lsmvbt::run::LsmvbtTask;
use crate::bench::worker::many_writers::run::ContendedTask;
use crate::bench::worker::many_writers::writers::WriteTask;
use crate::bench::worker::mobibench::run::{MobibenchSyncTask, MobibenchTask};
use crate::bench::worker::page_transactions::recorded_pass::RecordedPassTask;
use crate::bench::worker::page_transactions::run::PageTransactionsTask;
use crate::bench::worker::pattern_run::{FramesTask, PatternTask};
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
    /// A task from a file could not be done. Why.
    #[error("{0}")]
    Refused(String),
}

/// Does a task of one kind and answers.
type Doing = fn(Value, AnswerWay) -> Result<(), ServeError>;

/// How a worker answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerWay {
    /// With a line on standard output, where joj reads it.
    Line,
    /// With the exit code alone: standard output is that of joj itself. A refusal is an error.
    ExitCode,
}

/// What a worker can do, by the tasks' names.
const TASKS: [(&str, Doing); 19] = [
    doing::<DescribeTask>(),
    doing::<OptionsTask>(),
    doing::<CalibrationTask>(),
    doing::<LimitTask>(),
    doing::<RowTask>(),
    doing::<ContendedTask>(),
    doing::<WriteTask>(),
    doing::<InitialisationTask>(),
    doing::<PatternTask>(),
    doing::<FramesTask>(),
    doing::<FileTask>(),
    doing::<IoTask>(),
    doing::<LsmvbtTask>(),
    doing::<MobibenchTask>(),
    doing::<MobibenchSyncTask>(),
    doing::<PageTransactionsTask>(),
    doing::<RecordedPassTask>(),
    doing::<CrashWriteTask>(),
    doing::<CrashCheckTask>(),
];

const fn doing<T: Task>() -> (&'static str, Doing) {
    (T::NAME, |task, way| {
        let task: T = serde_json::from_value(task).map_err(ServeError::NoTask)?;
        match (way, task.run()) {
            (AnswerWay::Line, reply) => say(&reply).map_err(ServeError::Reply),
            (AnswerWay::ExitCode, reply) => {
                reply.map(|_| ()).map_err(|refusal| ServeError::Refused(refusal.message))
            }
        }
    })
}

/// Reads a task from standard input, does it, writes the reply to standard output. Or reads it from a file: then the exit code is the
/// reply.
/// # Errors
/// Where the task is none: only joj itself starts workers. From a file also where it could not be done.
pub fn serve(file: Option<&Path>) -> Result<(), ServeError> {
    let (line, way) = match file {
        // Who records it started it in a thread that is over: its end is not joj's.
        Some(file) => (fs::read_to_string(file).map_err(ServeError::Input)?, AnswerWay::ExitCode),
        None => {
            end_with_parent();
            let mut line = String::new();
            io::stdin().read_line(&mut line).map_err(ServeError::Input)?;
            (line, AnswerWay::Line)
        }
    };
    let (name, task): (String, Value) = serde_json::from_str(&line).map_err(ServeError::NoTask)?;
    match TASKS.iter().find(|(known, _)| *known == name) {
        Some((_, doing)) => doing(task, way),
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
