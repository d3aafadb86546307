//! `joj device probe`: a directory's disk over address ranges that double, as FAST'12 measured its SD cards.
//!
//!   round: range: record: written in order, read in order, written at random, read at random
//!
//! The file grows with the ranges. Rounds all run in this order: each random write finds what a sequential one left.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use joj_analysis::bench::environment::iso_8601;
use joj_analysis::bench::io::job::{IoKey, size};
use joj_analysis::bench::io::probe::{FORMAT, JOBS, ProbeDocument, ProbePlan, VERSION, ranges};
use joj_analysis::bench::io::row::IoRow;
use joj_analysis::bench::io::way::SyncWay;
use joj_analysis::bench::run::{Run, distribution};
use rustix::fs::statvfs;
use thiserror::Error;

use crate::bench::ask::{Asker, Stop};
use crate::bench::conditions::environment;
use crate::bench::forecast::rough;
use crate::bench::progress::Progress;
use crate::bench::worker::io_run::IoTask;
use crate::command_line::device::{ProbeOptions, RangeMax};
use crate::command_line::wrong_usage;
use crate::machine::files::counters::Sources;
use crate::machine::files::output_file::{self, OutputError, check_writable};
use crate::machine::files::place::{self, Place};
use crate::machine::files::work_dir::{WorkDir, WorkDirError};
use crate::machine::proc::clock::{calendar_seconds, now_ns};
use crate::machine::proc::signal;
use crate::machine::proc::worker_process::{NoOwnFile, Workers};
use crate::show::bench::table::place_line;
use crate::show::probe as tables;

/// The largest range without `--range-max`.
const RANGE_MAX_BYTES: u64 = 1 << 30;

/// Why a disk was not measured.
#[derive(Debug, Error)]
pub enum ProbeError {
    /// Ctrl-C would end joj without a result, and leave its file.
    #[error("cannot catch Ctrl-C: {0}")]
    Signals(#[source] io::Error),
    /// There is no worker.
    #[error(transparent)]
    Workers(#[from] NoOwnFile),
    /// There is no directory to measure in.
    #[error(transparent)]
    WorkDir(#[from] WorkDirError),
    /// Its free space cannot be told.
    #[error("cannot tell how much is free in {}: {error}; give another directory", .directory.display())]
    Unknown {
        /// The directory that was given.
        directory: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The largest range does not fit.
    #[error(
        "a range of {} does not fit: {} are free in {}; make room, or take a smaller --range-max (and --range-min)",
        size(*.range_bytes), size(*.free_bytes & !0xf_ffff), .directory.display()
    )]
    NoRoom {
        /// The range.
        range_bytes: u64,
        /// What is free.
        free_bytes: u64,
        /// The directory that was given.
        directory: PathBuf,
    },
    /// The measurement cannot go on.
    #[error(transparent)]
    Stopped(#[from] Stop),
    /// The result cannot be printed or written.
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Runs `joj device probe`.
/// # Errors
/// What could not be done, where, and how to mend it. No file is left in the directory.
pub fn run(options: &ProbeOptions) -> Result<ExitCode, ProbeError> {
    if let Some(record_bytes) = options.record.iter().find(|bytes| **bytes > options.range_min) {
        let (record, range) = (size(*record_bytes), size(options.range_min));
        return Ok(wrong_usage(&format!(
            "a range of {range} (--range-min) has no record of {record} (--record); take smaller records"
        )));
    }
    if matches!(options.range_max, Some(RangeMax::Bytes(bytes)) if bytes < options.range_min) {
        return Ok(wrong_usage("--range-max is less than --range-min; give a larger one"));
    }
    check_writable(options.json.iter())?;
    signal::install().map_err(ProbeError::Signals)?;
    match measure(options) {
        Ok(document) => {
            output_file::report(options.json.as_deref(), &document, || tables::render(&document))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(ProbeError::Stopped(Stop::Signal)) => {
            eprintln!("joj: stopped; the files it made are removed");
            Ok(ExitCode::from(signal::STOPPED_EXIT_CODE))
        }
        Err(error) => Err(error),
    }
}

/// The largest range that is asked for, if there is room.
fn range_max(options: &ProbeOptions, free_bytes: u64) -> Result<u64, ProbeError> {
    let doubled = |most_bytes: u64| {
        let fitting = ranges(options.range_min, RANGE_MAX_BYTES).into_iter().rev();
        fitting.chain([options.range_min]).find(|bytes| *bytes <= most_bytes)
    };
    let (wanted, is_fitting) = match options.range_max {
        Some(RangeMax::All) => {
            let most_bytes = (free_bytes / 20 * 19) >> 20 << 20;
            (most_bytes, most_bytes >= options.range_min)
        }
        Some(RangeMax::Bytes(bytes)) => (bytes, bytes < free_bytes),
        None => doubled(free_bytes / 2).map_or((options.range_min, false), |bytes| (bytes, true)),
    };
    let range_bytes = wanted.max(options.range_min);
    let directory = options.directory.clone();
    if is_fitting { Ok(range_bytes) } else { Err(ProbeError::NoRoom { range_bytes, free_bytes, directory }) }
}

fn free_bytes(directory: &Path) -> Result<u64, ProbeError> {
    let facts = statvfs(directory)
        .map_err(|error| ProbeError::Unknown { directory: directory.to_owned(), error: error.into() })?;
    Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
}

fn measure(options: &ProbeOptions) -> Result<ProbeDocument, ProbeError> {
    let (began_ns, started_at) = (now_ns(), iso_8601(calendar_seconds()));
    let workers = Workers::new(Vec::new())?;
    let work_dir = WorkDir::named(&options.directory, "joj-probe")?;
    let range_bytes = ranges(options.range_min, range_max(options, free_bytes(work_dir.path())?)?);
    let place = Place::of(work_dir.path());
    let environment = environment(&options.directory, &place, started_at);
    let mut record_bytes = options.record.clone();
    record_bytes.sort_unstable();
    record_bytes.dedup();
    let mut probe = Probe {
        asker: Asker::new(&workers),
        directory: work_dir.path().to_string_lossy().into_owned(),
        sources: Sources::of(&place),
        options,
        notes: Vec::new(),
        cells: cells(&range_bytes, &record_bytes),
    };
    let runs = probe.cells.len() as f64 * f64::from(options.runs);
    eprintln!("measuring {}", place_line(&environment));
    place::warn(work_dir.path());
    eprintln!(
        "{} ranges up to {}, {} sizes of records, {} runs: expect about {} at most, and the file to be filled",
        range_bytes.len(),
        size(range_bytes.last().copied().unwrap_or(0)),
        record_bytes.len(),
        options.runs,
        rough(runs * options.seconds)
    );
    probe.rounds()?;
    let Probe { notes, cells, .. } = probe;
    let finished = cells.into_iter().map(|(mut row, latencies_ns)| {
        (row.latency_quantiles_ns, row.latency) = distribution(latencies_ns);
        row.summarise();
        row
    });
    let plan = ProbePlan {
        range_bytes,
        record_bytes,
        requests_max: options.requests,
        seconds: options.seconds,
        runs: options.runs,
        elapsed_s: (now_ns() - began_ns) as f64 / 1e9,
    };
    Ok(ProbeDocument {
        format: FORMAT.to_owned(),
        version: VERSION,
        environment,
        plan,
        notes,
        cells: finished.collect(),
    })
}

/// A cell, with all latencies.
type Cell = (IoRow, Vec<u64>);

fn cells(range_bytes: &[u64], record_bytes: &[u64]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for file_bytes in range_bytes {
        for record_bytes in record_bytes {
            let key = |job| IoKey {
                job,
                way: SyncWay::Direct,
                record_bytes: *record_bytes,
                file_bytes: *file_bytes,
            };
            cells.extend(JOBS.map(|job| (IoRow::new(key(job)), Vec::new())));
        }
    }
    cells
}

/// A measurement under way.
struct Probe<'a> {
    asker: Asker<'a>,
    directory: String,
    sources: Sources,
    options: &'a ProbeOptions,
    notes: Vec<String>,
    cells: Vec<Cell>,
}

impl Probe<'_> {
    fn rounds(&mut self) -> Result<(), Stop> {
        let (runs, cells) = (self.options.runs, self.cells.len());
        let all = cells * usize::try_from(runs).unwrap_or(usize::MAX);
        let mut progress = Progress::new(all, all as f64 * self.options.seconds);
        let mut end = Ok(());
        'rounds: for round in 0..runs {
            progress.round(&format!("round {} of {runs}", round + 1));
            for cell in 0..cells {
                progress.step(&self.cells[cell].0.key.group_title());
                end = self.measure(cell, round);
                if end.is_err() {
                    break 'rounds;
                }
            }
        }
        progress.clear();
        end
    }

    fn measure(&mut self, cell: usize, round: u32) -> Result<(), Stop> {
        let key = self.cells[cell].0.key;
        let time_max = Duration::from_secs_f64(self.options.seconds);
        let answer = self.asker.ask(&IoTask {
            directory: self.directory.clone(),
            key,
            records_max: if key.job.is_random() { self.options.requests } else { u64::MAX },
            time_max_ns: u64::try_from(time_max.as_nanos()).unwrap_or(u64::MAX),
            sources: self.sources.clone(),
        })?;
        match answer {
            Ok(measured) => {
                let (row, latencies_ns) = &mut self.cells[cell];
                row.records.runs.push(Run { round, ..measured.run });
                measured.syncs.iter().for_each(|syncs| row.syncs.add(syncs));
                latencies_ns.extend(measured.latencies_ns);
                Ok(())
            }
            Err(reason) if key.way == SyncWay::Direct && cell == 0 && round == 0 => {
                self.leave_direct(&reason);
                self.measure(cell, round)
            }
            Err(reason) => {
                self.cells[cell].0.refused = Some(reason);
                Ok(())
            }
        }
    }

    /// Nothing goes past the page cache here: what there is instead, and a word about it.
    fn leave_direct(&mut self, reason: &str) {
        self.cells.iter_mut().for_each(|(row, _)| row.key.way = SyncWay::None);
        let note = format!(
            "O_DIRECT: {reason}. The figures are those of the page cache, which is empty before each run; a run of writes ends \
             with fsync"
        );
        eprintln!("note: {note}");
        self.notes.push(note);
    }
}
