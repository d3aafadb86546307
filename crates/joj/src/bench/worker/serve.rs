//! A worker: one task, one answer, end of process.

use std::io;

use crate::bench::worker::contended::{run as contended_run, writers};
use crate::bench::worker::crash::{checker, writer};
use crate::bench::worker::database_run;
use crate::bench::worker::file_run;
use crate::bench::worker::initialisation_run;
use crate::bench::worker::libraries::{describe, load, set_options};
use crate::bench::worker::limit_run::{calibrate, limits};
use crate::bench::worker::pattern_run;
use crate::bench::worker::task::{Answer, Refusal, Reply, Task, Window, WriteTask};
use crate::machine::proc::worker_process::end_with_parent;

/// Reads a task from standard input, does it, writes the reply to standard output.
/// # Errors
/// Where the task is none: only joj itself starts workers.
pub fn serve() -> Result<(), String> {
    end_with_parent();
    let mut text = String::new();
    io::stdin().read_line(&mut text).map_err(|error| error.to_string())?;
    let task: Task = serde_json::from_str(&text)
        .map_err(|error| format!("bench-worker is for joj's own use, it found no task: {error}"))?;
    let reply: Reply = match &task {
        Task::Describe(libraries) => describe(libraries),
        Task::SetOptions { libraries, directory, options } => set_options(libraries, directory, options),
        Task::Calibrate { directory } => calibrate(directory),
        Task::Limit { directory, kinds, operations, sources } => {
            limits(directory, kinds, *operations, sources)
        }
        Task::Row(row) => load(&row.libraries).and_then(|api| database_run::run(&api, row)),
        Task::Contend(contended) => {
            load(&contended.libraries).and_then(|api| contended_run::run(&api, contended))
        }
        Task::Initialise(initialisation) => initialisation_run::run(initialisation),
        Task::Pattern(pattern) => pattern_run::run(pattern),
        Task::Files(files) => file_run::run(files),
        Task::Write(write) => write_in_window(write),
        Task::CrashWrite(write) => load(&write.database.libraries).and_then(|api| writer::run(&api, write)),
        Task::CrashCheck(check) => checker::run(check, load),
    };
    say(&reply)
}

fn say(reply: &Reply) -> Result<(), String> {
    println!("{}", serde_json::to_string(reply).map_err(|error| error.to_string())?);
    Ok(())
}

/// Opens the connections, says so, reads when to write, writes.
fn write_in_window(task: &WriteTask) -> Reply {
    let refuse = |message: String| Refusal { message, disk_full: false };
    // Before SQLite and its extensions start threads: the filter holds for threads started later.
    let counter = writers::counter(task)?;
    let api = load(&task.libraries)?;
    let when_ready = || {
        say(&Ok(Answer::Ready))?;
        let mut text = String::new();
        io::stdin().read_line(&mut text).map_err(|error| error.to_string())?;
        serde_json::from_str::<Window>(&text).map_err(|error| format!("no time to write was given: {error}"))
    };
    let told = writers::Told {
        when_ready: || when_ready().map_err(refuse),
        when_enough: || say(&Ok(Answer::Enough)).map_err(refuse),
    };
    writers::run(&api, task, counter.as_ref(), told)
}
