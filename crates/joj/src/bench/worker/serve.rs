//! A worker: one task, one answer, end of process.

use std::io;

use serde_json::{Error, Value};

use crate::bench::worker::contended::run::ContendedTask;
use crate::bench::worker::contended::writers::WriteTask;
use crate::bench::worker::crash::checker::CrashCheckTask;
use crate::bench::worker::crash::writer::CrashWriteTask;
use crate::bench::worker::database_run::RowTask;
use crate::bench::worker::file_run::FileTask;
use crate::bench::worker::initialisation_run::InitialisationTask;
use crate::bench::worker::libraries::{DescribeTask, OptionsTask};
use crate::bench::worker::limit_run::{CalibrationTask, LimitTask};
use crate::bench::worker::pattern_run::PatternTask;
use crate::bench::worker::task::{Task, say};
use crate::machine::proc::worker_process::end_with_parent;

/// Does a task of one kind and says what came of it.
type Doing = fn(Value) -> Result<(), String>;

/// What a worker can do, by the tasks' names.
const TASKS: [(&str, Doing); 12] = [
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
    doing::<CrashWriteTask>(),
    doing::<CrashCheckTask>(),
];

const fn doing<T: Task>() -> (&'static str, Doing) {
    (T::NAME, |task| say(&serde_json::from_value::<T>(task).map_err(no_task)?.run()))
}

fn no_task(error: Error) -> String {
    format!("bench-worker is for joj's own use, it found no task: {error}")
}

/// Reads a task from standard input, does it, writes the reply to standard output.
/// # Errors
/// Where the task is none: only joj itself starts workers.
pub fn serve() -> Result<(), String> {
    end_with_parent();
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(|error| error.to_string())?;
    let (name, task): (String, Value) = serde_json::from_str(&line).map_err(no_task)?;
    match TASKS.iter().find(|(known, _)| *known == name) {
        Some((_, doing)) => doing(task),
        None => Err(format!("bench-worker knows no task `{name}`: it is not in the list of serve.rs")),
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
