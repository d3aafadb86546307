//! One cell: device, filesystem, transactions, and the same again with a trace.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use joj_analysis::bench::contended::{ContendedKey, WriterKind};
use joj_analysis::bench::key::RowKey;
use joj_analysis::bench::run::{Run, quantiles};
use joj_analysis::lab::cell::{Cell, SyncCall, Task as CellTask};
use joj_analysis::lab::result::CellMeasurement;

use crate::bench::ask::Asker;
use crate::bench::worker::task::{
    Answer, Contended, ContendedTask, FilePattern, FileTask, Libraries, Measured, Reply, RowTask, RunLength,
    Task,
};
use crate::lab::guest::emulated::Emulated;
use crate::lab::guest::volume::Volume;
use crate::lab::job::{CellReport, Job, guest_path, trace_file};
use crate::machine::files::counters::Sources;
use crate::machine::files::place::Place;
use crate::machine::proc::clock::{pause_until, shared_ns};
use crate::machine::proc::worker_process::{SUBCOMMAND, Workers};

/// Capacity of the device of an external journal. mkfs.ext4 makes the journal as large as the device and writes all of it.
const JOURNAL_BYTES: u64 = 64 << 20;

/// Measures cells.
#[derive(Debug)]
pub struct Measurer<'job> {
    job: &'job Job,
    workers: Workers,
}

/// Device and filesystem of a cell. Fields are dropped in this order.
#[derive(Debug)]
struct Stand {
    _volume: Volume,
    _devices: Vec<Emulated>,
}

impl Stand {
    fn set_up(cell: &Cell, job: &Job) -> Result<Stand, String> {
        align();
        let start =
            |number, name: &String, bytes: u64| Emulated::start(number, &job.setting.device(name)?, bytes);
        let data = start(0, &cell.device, job.setting.device_bytes)?;
        let journal = cell.journal_device.as_ref().map(|name| start(1, name, JOURNAL_BYTES)).transpose()?;
        let volume = Volume::make(cell, data.node(), journal.as_ref().map(Emulated::node))?;
        Ok(Stand { _volume: volume, _devices: [Some(data), journal].into_iter().flatten().collect() })
    }
}

impl<'job> Measurer<'job> {
    /// For the cells of `job`.
    /// # Errors
    /// Where joj does not find its own file.
    pub fn new(job: &'job Job) -> Result<Measurer<'job>, String> {
        Ok(Measurer { job, workers: Workers::new(Vec::new())? })
    }

    /// Measures the plan's cell number `index`.
    /// # Errors
    /// Why there is no measurement. That there is no trace is not an error but part of the report.
    pub fn measure(&self, index: usize) -> CellReport {
        let cell = &self.job.cells[index];
        let measured = {
            let _stand = Stand::set_up(cell, self.job)?;
            let task = self.task(cell);
            align();
            self.answer(&task)?
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
        };
        if let Some(failure) = &measurement.run.failure {
            return Err(failure.clone());
        }
        if self.job.trace {
            match self.trace(index, cell) {
                Ok(traced) => {
                    measurement.trace = Some(trace_file(index));
                    measurement.traced_run = Some(traced);
                }
                Err(reason) => measurement.trace_failure = Some(reason),
            }
        }
        Ok(measurement)
    }

    fn task(&self, cell: &Cell) -> Task {
        let place = Place::of(Path::new(guest_path::VOLUME));
        let sources = Sources::of(&place);
        let directory = guest_path::VOLUME.to_owned();
        let Some(workload) = cell.task.workload() else {
            return Task::Files(FileTask {
                directory,
                pattern: pattern_of(cell.task),
                full_sync: cell.sync_call == SyncCall::Fsync,
                writes: cell.transactions,
                threads: cell.threads,
                sources,
            });
        };
        let sqlite = (cell.sync_call == SyncCall::Fdatasync).then(|| self.job.setting.sqlite.clone());
        let extension = (cell.mode == joj_analysis::bench::key::JournalMode::Waldio)
            .then(|| guest_path::WALDIO.to_owned());
        let libraries = Libraries {
            sqlite,
            extension,
            batch_atomic: cell.batch_atomic,
            no_directory_sync: !cell.directory_sync,
        };
        let library = if cell.sync_call == SyncCall::Fsync { "bundled" } else { "system" }.to_owned();
        if cell.threads > 1 {
            return Task::Contend(ContendedTask {
                libraries,
                directory,
                key: ContendedKey {
                    kind: WriterKind::Threads,
                    writers: cell.threads,
                    schema: cell.schema,
                    mode: cell.mode,
                    flush_delay_ns: 0,
                    library,
                },
                length: RunLength::Commits(cell.transactions),
                sources,
                count_syncs: false,
                waldio_options: cell.waldio_settings(),
            });
        }
        Task::Row(RowTask {
            libraries,
            directory,
            key: RowKey {
                workload,
                schema: cell.schema,
                synchronous: cell.synchronous,
                mode: cell.mode,
                log: cell.log,
                library,
            },
            transactions: cell.transactions,
            sources,
            count_syncs: false,
            waldio_options: cell.waldio_settings(),
            checkpoint_apart: false,
        })
    }

    fn answer(&self, task: &Task) -> Result<Measured, String> {
        measured_of(Asker::new(&self.workers).ask(task)?)
    }

    /// Runs the cell once more, with a trace around it. It goes to memory first: writes to the shared directory take the
    /// other machine's time.
    fn trace(&self, index: usize, cell: &Cell) -> Result<Run, String> {
        let _stand = Stand::set_up(cell, self.job)?;
        let transactions = cell.transactions.min(self.job.traced_transactions);
        let task = self.task(&Cell { transactions, ..cell.clone() });
        let task = serde_json::to_string(&task).map_err(|error| error.to_string())?;
        align();
        let file = "/tmp/trace.parquet";
        let mut child = Command::new(guest_path::JOJ)
            .args([
                "trace",
                "--backend",
                &self.job.trace_backend,
                "--device",
                guest_path::VOLUME,
                "--save",
                file,
                "--",
                guest_path::JOJ,
                SUBCOMMAND,
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("joj trace did not start: {error}"))?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(task.as_bytes()).map_err(|error| error.to_string())?;
        }
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("joj trace: {}", said.trim().replace('\n', " | ")));
        }
        // The worker answers in one line, and joj trace tells what it saw behind it.
        let answer = BufReader::new(&output.stdout[..]).lines().next();
        let text = answer.and_then(Result::ok).unwrap_or_default();
        let reply: Reply =
            serde_json::from_str(&text).map_err(|error| format!("no answer beside the trace: {error}"))?;
        let traced = measured_of(reply.map_err(|refusal| refusal.message)?)?;
        fs::copy(file, Path::new(guest_path::SHARE).join(trace_file(index)))
            .map_err(|error| error.to_string())?;
        fs::remove_file(file).map_err(|error| error.to_string())?;
        Ok(traced.run)
    }
}

/// Waits for the next full second. The shared directory takes this machine's time, so a cell begins at another moment of the
/// kernel's tick in each session: an inode's time that changes, or not, between two writes is a block more or less to sync.
pub fn align() {
    const SECOND_NS: u64 = 1_000_000_000;
    pause_until((shared_ns() / SECOND_NS + 1) * SECOND_NS);
}

fn measured_of(answer: Answer) -> Result<Measured, String> {
    match answer {
        Answer::Measured(measured) => Ok(*measured),
        Answer::Contended(contended) => measured_together(*contended),
        other => Err(format!("a worker that should measure answered {other:?}")),
    }
}

/// The figures of all writers together. A writer that was turned away for the whole of its busy timeout is none of them.
fn measured_together(contended: Contended) -> Result<Measured, String> {
    let Contended { run, latencies_ns, waldio_status } = contended;
    if let Some((name, count)) = run.errors.first_key_value() {
        return Err(format!("{count} INSERTs ended in {name}"));
    }
    let (apart, syncs, syncs_refused) = (None, run.syncs, None);
    Ok(Measured { run: run.run, latencies_ns, apart, syncs, syncs_refused, waldio_status })
}

fn pattern_of(task: CellTask) -> FilePattern {
    match task {
        CellTask::WriteSequential => FilePattern::Sequential,
        CellTask::WriteRandom => FilePattern::Random,
        _ => FilePattern::Append,
    }
}
