//! A worker: one task, one answer, end of process.

use std::io;
use std::path::Path;
use std::time::Duration;

use joj_analysis::bench::document::LimitKind;
use joj_analysis::statistics::percentile;

use crate::bench::worker::contended_run;
use crate::bench::worker::crash_checker;
use crate::bench::worker::crash_writer;
use crate::bench::worker::database_run;
use crate::bench::worker::file_run;
use crate::bench::worker::initialisation_run;
use crate::bench::worker::pattern_run;
use crate::bench::worker::stopwatch::Stopwatch;
use crate::bench::worker::task::{Answer, Calibration, Libraries, Refusal, Reply, Task, Window, WriteTask};
use crate::bench::worker::writers;
use crate::machine::files::counters::Sources;
use crate::machine::files::limit_file::LimitFile;
use crate::machine::files::work_dir::cannot_write;
use crate::machine::proc::clock::pause;
use crate::machine::proc::worker_process::end_with_parent;
use crate::machine::sqlite::connection::{self, Connection};
use crate::machine::sqlite::sqlite_api::Api;

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
        Task::SetOptions { libraries, directory, options } => {
            load(libraries).and_then(|api| set_options(&api, directory, options))
        }
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
        Task::CrashWrite(write) => {
            load(&write.database.libraries).and_then(|api| crash_writer::run(&api, write))
        }
        Task::CrashCheck(check) => crash_checker::run(check, load),
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

fn load(libraries: &Libraries) -> Result<Api, Refusal> {
    let refuse = |message| Refusal { message, disk_full: false };
    let api = match &libraries.sqlite {
        None => Api::bundled(),
        Some(file) => Api::from_file(file).map_err(|reason| {
            refuse(format!(
                "cannot use {file} as a SQLite library: {reason}; give another with `--sqlite FILE.so`"
            ))
        })?,
    };
    if !libraries.batch_atomic {
        api.refuse_ioctls();
    } else if !connection::is_compiled_with(&api, "ENABLE_BATCH_ATOMIC_WRITE")? {
        return Err(refuse(
            "this SQLite is built without SQLITE_ENABLE_BATCH_ATOMIC_WRITE; build joj where its .cargo/config.toml is, with \
             no LIBSQLITE3_FLAGS in the environment"
                .to_owned(),
        ));
    }
    if libraries.no_directory_sync && !api.refuse_directories() {
        return Err(refuse(
            "this SQLite cannot be kept from syncing directories: leave directory_sync = [false] out, or take another".to_owned(),
        ));
    }
    if let Some(extension) = &libraries.extension {
        let throw_away = Connection::open(&api, ":memory:")?;
        throw_away.load_extension(extension).map_err(|error| {
            refuse(format!(
                "SQLite {} does not load {extension}: {}; build it with `cargo build --release -p waldio`, or \
                 measure without it: `--sides delete,truncate,persist,memory,off,wal`",
                connection::version(&api).0,
                error.message
            ))
        })?;
        throw_away.close()?;
    }
    Ok(api)
}

fn describe(libraries: &Libraries) -> Reply {
    let (version, source_id) = connection::version(&load(libraries)?);
    Ok(Answer::Described { version, source_id })
}

/// Whether the extension takes `options`: it says itself which it has and what they may be.
fn set_options(api: &Api, directory: &str, options: &[(String, String)]) -> Reply {
    let connection = Connection::open(api, &format!("{directory}/options.db"))?;
    for (name, value) in options {
        let literal = value.replace('\'', "''");
        let refuse = |reason: &str| Refusal {
            message: format!(
                "`--waldio-option {name}={value}` cannot be measured: {reason}; mend the option or leave it out"
            ),
            disk_full: false,
        };
        let taken = connection.value(&format!("PRAGMA waldio_{name}='{literal}'"));
        if taken.map_err(|error| refuse(&error.message))?.is_empty() {
            return Err(refuse("this waldio does not know it"));
        }
    }
    connection.close()?;
    Ok(Answer::OptionsSet)
}

/// Batches of operations that tell how fast the disk is, roughly.
const CALIBRATION_BATCHES: usize = 4;

/// Operations of each kind in a batch.
const CALIBRATION_OPERATIONS: u64 = 12;

/// Between two batches.
const CALIBRATION_PAUSE: Duration = Duration::from_millis(60);

fn write_refusal(directory: &str, error: &io::Error) -> Refusal {
    let disk_full = matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT));
    Refusal { message: cannot_write(Path::new(directory), error), disk_full }
}

fn calibrate(directory: &str) -> Reply {
    let refuse = |error: io::Error| write_refusal(directory, &error);
    let mut file = LimitFile::create(Path::new(directory)).map_err(refuse)?;
    let median = |mut latencies_ns: Vec<u64>| {
        latencies_ns.sort_unstable();
        percentile(&latencies_ns, 50_000).unwrap_or(u64::MAX)
    };
    let mut calibration = Calibration { overwrite_ns: u64::MAX, append_ns: u64::MAX };
    // The best of some batches: a neighbour's burst is over in a moment and shall not make a minute look like ten.
    for _ in 0..CALIBRATION_BATCHES {
        let overwrites = file.measure(LimitKind::WriteFdatasync, CALIBRATION_OPERATIONS).map_err(refuse)?;
        let appends = file.measure_appends(CALIBRATION_OPERATIONS).map_err(refuse)?;
        calibration.overwrite_ns = calibration.overwrite_ns.min(median(overwrites));
        calibration.append_ns = calibration.append_ns.min(median(appends));
        pause(CALIBRATION_PAUSE);
    }
    Ok(Answer::Calibrated(calibration))
}

fn limits(directory: &str, kinds: &[LimitKind], operations: u64, sources: &Sources) -> Reply {
    let refuse = |error: io::Error| write_refusal(directory, &error);
    let mut file = LimitFile::create(Path::new(directory)).map_err(refuse)?;
    let mut answers = Vec::new();
    for kind in kinds {
        // The first operations find the file's metadata cold. They also tell whether the file system takes them.
        if let Err(error) = file.measure(*kind, operations.min(5)) {
            let refused =
                matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP | libc::ENOSYS));
            if !refused {
                return Err(refuse(error));
            }
            answers.push((*kind, Err(format!("the file system refuses it: {error}"))));
            continue;
        }
        let start = Stopwatch::now(sources);
        let latencies_ns = file.measure(*kind, operations).map_err(refuse)?;
        answers.push((*kind, Ok(start.finish(sources, latencies_ns))));
    }
    Ok(Answer::Limits(answers))
}
