//! One cell: device, filesystem, transactions, and the same again with a trace.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use joj_analysis::bench::key::{RowKey, Synchronous, Word, Workload};
use joj_analysis::bench::many_writers::{ContendedKey, WriterKind};
use joj_analysis::bench::run::{Run, quantiles};
use joj_analysis::lab::cell::{Cell, PROBE_FILLED_MIB, Recorder, Store, SyncCall, Task};
use joj_analysis::lab::result::CellMeasurement;

use crate::bench::ask::{Asker, Stop, exchange};
use crate::bench::worker::database_run::RowTask;
use crate::bench::worker::file_run::{FilePattern, FileTask};
use crate::bench::worker::io_run::{FILE, IoTask};
use crate::bench::worker::libraries::Libraries;
use crate::bench::worker::lsmvbt::run::LsmvbtTask;
use crate::bench::worker::many_writers::run::{Contended, ContendedTask, RunLength};
use crate::bench::worker::pattern_run::FramesTask;
use crate::bench::worker::task::Measured;
use crate::lab::guest::error::{GuestError, cannot};
use crate::lab::guest::replay;
use crate::lab::guest::stand::{Stand, align};
use crate::lab::job::{Job, LabVolume, guest_path, trace_file};
use crate::machine::files::counters::Sources;
use crate::machine::files::measured::record_file::fill;
use crate::machine::files::place::Place;
use crate::machine::proc::worker_process::{SUBCOMMAND, Workers};

/// Measures cells.
#[derive(Debug)]
pub struct Measurer<'job> {
    job: &'job Job,
    workers: Workers,
}

impl<'job> Measurer<'job> {
    /// For the cells of `job`.
    /// # Errors
    /// Where joj does not find its own file.
    pub fn new(job: &'job Job) -> Result<Measurer<'job>, GuestError> {
        let workers = Workers::new(Vec::new())?;
        Ok(Measurer { job, workers })
    }

    /// Measures the plan's cell number `index`.
    /// # Errors
    /// Why there is no measurement. That there is no trace is not an error but part of the report.
    pub fn measure(&self, index: usize) -> Result<CellMeasurement, GuestError> {
        let cell = &self.job.cells[index];
        if let Some(recording) = &cell.recording {
            let mut measurement = replay::measure(cell, recording, &self.job.setting)?;
            measurement.trace_failure = self.job.trace.then(|| "a replay is not traced".to_owned());
            return Ok(measurement);
        }
        let measured = {
            let _stand = Stand::set_up(&LabVolume::of(cell), &self.job.setting)?;
            self.measured(cell, |line| {
                align();
                match cell.recorder {
                    Recorder::None => Asker::new(&self.workers).send(line),
                    recorder => recorded(line, recorder),
                }
            })?
        };
        let mut sorted = measured.latencies_ns.clone();
        sorted.sort_unstable();
        let mut measurement = CellMeasurement {
            run: measured.run,
            quantiles_ns: quantiles(&sorted),
            waldio_status: measured.waldio_status,
            costs: None,
            traced_run: None,
            trace: None,
            trace_failure: None,
            replay: None,
        };
        if let Some(failure) = &measurement.run.failure {
            return Err(GuestError::Run(failure.clone()));
        }
        if self.job.trace && cell.writes_directly() {
            measurement.trace_failure = Some(
                "a trace counts what sync calls write, and direct writes are made before them".to_owned(),
            );
        } else if self.job.trace {
            match self.trace(index, cell) {
                Ok(traced) => {
                    measurement.trace = Some(trace_file(index));
                    measurement.traced_run = Some(traced);
                }
                Err(reason) => measurement.trace_failure = Some(reason.to_string()),
            }
        }
        Ok(measurement)
    }

    /// What a worker measures in `cell`; `send` brings it the line that asks for it, and returns with its reply.
    fn measured(
        &self,
        cell: &Cell,
        send: impl FnOnce(&str) -> Result<String, Stop>,
    ) -> Result<Measured, GuestError> {
        let place = Place::of(Path::new(guest_path::VOLUME));
        let sources = Sources::of(&place);
        let directory = guest_path::VOLUME.to_owned();
        if let Some(key) = cell.probe() {
            if cell.range_mib.is_some() {
                let path = Path::new(&directory).join(FILE);
                fill(&path, PROBE_FILLED_MIB << 20)
                    .map_err(cannot(format!("write {PROBE_FILLED_MIB} MiB to {}", path.display())))?;
            }
            let (records_max, time_max_ns) = (cell.transactions, u64::MAX);
            let task = IoTask { directory, key, records_max, time_max_ns, sources };
            return exchange(&task, send)?.map_err(GuestError::Run);
        }
        if let Some(pattern) = cell.task.frames() {
            let (is_prepared, commits) = (cell.writes_directly(), cell.transactions);
            let task = FramesTask { directory, pattern, is_prepared, commits, sources };
            return Ok(exchange(&task, send)?);
        }
        let Some(workload) = cell.task.workload() else {
            return Ok(exchange(&file_task(cell, sources), send)?);
        };
        if cell.store == Store::Lsmvbt {
            return Ok(exchange(&tree_task(cell, workload, sources), send)?);
        }
        let library = if cell.sync_call == SyncCall::Fsync { "bundled" } else { "system" }.to_owned();
        if cell.threads > 1 {
            let key = ContendedKey {
                kind: WriterKind::Threads,
                writers: cell.threads,
                schema: cell.schema,
                mode: cell.mode,
                synchronous: Synchronous::Full,
                flush_delay_ns: 0,
                library,
            };
            let task = ContendedTask {
                libraries: self.libraries(cell),
                directory,
                key,
                length: RunLength::Commits(cell.transactions),
                sources,
                count_syncs: false,
                waldio_options: cell.waldio_settings(),
            };
            return measured_together(exchange(&task, send)?);
        }
        let key = RowKey {
            workload,
            schema: cell.schema,
            synchronous: cell.synchronous,
            mode: cell.mode,
            log: cell.log,
            library,
        };
        let task = RowTask {
            libraries: self.libraries(cell),
            directory,
            key,
            transactions: cell.transactions,
            sources,
            count_syncs: false,
            waldio_options: cell.waldio_settings(),
            checkpoint_apart: false,
        };
        Ok(exchange(&task, send)?)
    }

    fn libraries(&self, cell: &Cell) -> Libraries {
        Libraries {
            sqlite: (cell.sync_call == SyncCall::Fdatasync).then(|| self.job.setting.sqlite.clone()),
            extension: cell.mode.uses_waldio().then(|| guest_path::WALDIO.to_owned()),
            batch_atomic: cell.batch_atomic,
            no_directory_sync: !cell.directory_sync,
            without: None,
        }
    }

    /// Runs the cell once more, with a trace around it. It goes to memory first: writes to the shared directory take the
    /// other machine's time.
    fn trace(&self, index: usize, cell: &Cell) -> Result<Run, GuestError> {
        let _stand = Stand::set_up(&LabVolume::of(cell), &self.job.setting)?;
        let transactions = cell.transactions.min(self.job.traced_transactions);
        let cell = Cell { transactions, ..cell.clone() };
        let file = "/tmp/trace.parquet";
        let traced = self.measured(&cell, |line| {
            align();
            self.under_trace(line, file).map_err(|error| Stop::Failed(error.to_string()))
        })?;
        let shared = Path::new(guest_path::SHARE).join(trace_file(index));
        fs::copy(file, &shared).map_err(cannot(format!("copy {file} to {}", shared.display())))?;
        fs::remove_file(file).map_err(cannot(format!("remove {file}")))?;
        Ok(traced.run)
    }

    /// What a worker replies to `line` while joj trace watches it and saves what it saw in `file`.
    fn under_trace(&self, line: &str, file: &str) -> Result<String, GuestError> {
        let backend = &self.job.trace_backend;
        watched(line, &["trace", "--backend", backend, "--device", guest_path::VOLUME, "--save", file])
    }
}

/// What a worker replies to `line` while joj record records it. The recording is in memory, and goes.
fn recorded(line: &str, recorder: Recorder) -> Result<String, Stop> {
    let file = "/tmp/recorded.joj";
    let reply = watched(line, &["record", "--method", recorder.word(), "-o", file]);
    let reply = reply.map_err(|error| Stop::Failed(error.to_string()))?;
    fs::remove_file(file).map_err(|error| Stop::Failed(format!("there is no recording: {error}")))?;
    Ok(reply)
}

/// What a worker replies to `line` while joj with these words watches it.
fn watched(line: &str, words: &[&str]) -> Result<String, GuestError> {
    let who = format!("joj {}", words[0]);
    let mut child = Command::new(guest_path::JOJ)
        .args(words)
        .args(["--", guest_path::JOJ, SUBCOMMAND])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(cannot(format!("start {who}")))?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(line.as_bytes()).map_err(cannot(format!("write to {who}")))?;
    }
    let output = child.wait_with_output().map_err(cannot(format!("wait for {who}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(GuestError::Watcher { who, said: said.trim().replace('\n', " | ") });
    }
    // The worker answers in one line, and joj trace tells what it saw behind it.
    let answer = BufReader::new(&output.stdout[..]).lines().next();
    answer.unwrap_or_else(|| Ok(String::new())).map_err(cannot(format!("read what {who} says")))
}

/// The figures of all writers together. A writer that was turned away for the whole of its busy timeout is none of them.
fn measured_together(contended: Contended) -> Result<Measured, GuestError> {
    let Contended { run, latencies_ns, waldio_status } = contended;
    if let Some((name, count)) = run.errors.first_key_value() {
        return Err(GuestError::Inserts { count: *count, name: name.clone() });
    }
    let (apart, syncs, syncs_refused) = (None, run.syncs, None);
    Ok(Measured { run: run.run, latencies_ns, apart, syncs, syncs_refused, waldio_status })
}

/// Of a cell without SQLite that writes blocks of a file.
fn file_task(cell: &Cell, sources: Sources) -> FileTask {
    FileTask {
        directory: guest_path::VOLUME.to_owned(),
        pattern: pattern_of(cell.task),
        full_sync: cell.sync_call == SyncCall::Fsync,
        writes: cell.transactions,
        threads: cell.threads,
        file_bytes: u64::from(cell.file_mib) << 20,
        sources,
    }
}

/// Of a cell without SQLite whose rows are in a multi-version B-tree.
fn tree_task(cell: &Cell, workload: Workload, sources: Sources) -> LsmvbtTask {
    let full_sync = cell.sync_call == SyncCall::Fsync;
    let directory = guest_path::VOLUME.to_owned();
    LsmvbtTask { directory, workload, transactions: cell.transactions, full_sync, sources }
}

fn pattern_of(task: Task) -> FilePattern {
    match task {
        Task::WriteSequential => FilePattern::Sequential,
        Task::WriteRandom => FilePattern::Random,
        _ => FilePattern::Append,
    }
}
