//! One run of one way to initialise a log, in the worker.
//!
//!   settle | clock: create | clock: extend | clock: first pass | clock: second pass | read back
//!
//! Each step has a clock and counters of its own; nothing waits between them but the reading of counters.

use std::io;
use std::path::Path;

use joj_analysis::bench::run::Run;
use joj_analysis::bench::study::initialisation::{Approach, InitialisationKey};
use serde::{Deserialize, Serialize};

use crate::bench::worker::stopwatch::Stopwatch;
use crate::bench::worker::task::{Refusal, Reply, Task};
use crate::machine::files::counters::Sources;
use crate::machine::proc::clock::now_ns;
use crate::machine::sqlite::prepared_log::{BLOCK_BYTES, PreparedLog, settle};

/// First size of the log, in bytes: the working size of waldio's log, and its header's block.
pub const CREATE_BYTES: u64 = (4 << 20) + BLOCK_BYTES as u64;

/// How much longer the log is made, in bytes.
pub const EXTEND_BYTES: u64 = 4 << 20;

/// Most blocks of a pass: fewer than the log has.
pub const OVERWRITES_MAX: u64 = 256;

const _: () = assert!(OVERWRITES_MAX * (BLOCK_BYTES as u64) < CREATE_BYTES);

/// Make a log ready and overwrite it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct InitialisationTask {
    /// An empty directory.
    pub directory: String,
    /// What to run.
    pub key: InitialisationKey,
    /// Blocks of each pass.
    pub overwrites: u64,
    /// Counters to read meanwhile.
    pub sources: Sources,
}

/// Steps of an initialisation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct InitialisationRuns {
    /// Making the file.
    pub create: Run,
    /// Making it longer.
    pub extend: Run,
    /// The first overwrite of each block.
    pub first_pass: Run,
    /// The second.
    pub second_pass: Run,
    /// What was wrong with the file afterwards.
    pub failure: Option<String>,
}

impl Task for InitialisationTask {
    const NAME: &'static str = "initialise";
    /// Measured, or the reason why the place does not take it.
    type Answer = Result<InitialisationRuns, String>;
    fn run(&self) -> Reply<Self> {
        let directory = Path::new(&self.directory);
        run(directory, self).map_err(|error| Refusal::of_write(directory, &error))
    }
}

fn run(directory: &Path, task: &InitialisationTask) -> io::Result<Result<InitialisationRuns, String>> {
    settle(directory)?;
    let (created, began_ns) = (Stopwatch::now(&task.sources), now_ns());
    let mut log = PreparedLog::create(directory, task.key.approach)?;
    match measure(&mut log, task, created, began_ns) {
        Ok(runs) => Ok(Ok(runs)),
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            let reason = log.refusal(&error, task.sources.disk.as_deref());
            Ok(Err(reason))
        }
        Err(error) => Err(error),
    }
}

/// The clock of the first step runs already: making the file belongs to it.
fn measure(
    log: &mut PreparedLog,
    task: &InitialisationTask,
    created: Stopwatch,
    began_ns: u64,
) -> io::Result<InitialisationRuns> {
    log.extend(CREATE_BYTES)?;
    let create = created.finish(&task.sources, vec![now_ns() - began_ns]).run;
    let extended = Stopwatch::now(&task.sources);
    let began_ns = now_ns();
    log.extend(CREATE_BYTES + EXTEND_BYTES)?;
    let extend = extended.finish(&task.sources, vec![now_ns() - began_ns]).run;
    let first_pass = pass(log, task, 0)?;
    let second_pass = pass(log, task, 1)?;
    Ok(InitialisationRuns { create, extend, first_pass, second_pass, failure: verify(log, task)? })
}

/// What pass `number` writes into block `index`.
fn serial(task: &InitialisationTask, number: u64, index: u64) -> u64 {
    number * task.overwrites + index + 1
}

fn pass(log: &mut PreparedLog, task: &InitialisationTask, number: u64) -> io::Result<Run> {
    let mut latencies_ns = Vec::new();
    let start = Stopwatch::now(&task.sources);
    for index in 0..task.overwrites {
        let began_ns = now_ns();
        log.write_block(index, serial(task, number, index), task.key.durability)?;
        latencies_ns.push(now_ns() - began_ns);
    }
    Ok(start.finish(&task.sources, latencies_ns).run)
}

/// What is wrong with the file, if anything.
fn verify(log: &PreparedLog, task: &InitialisationTask) -> io::Result<Option<String>> {
    let expected_bytes = match task.key.approach {
        Approach::Appended => task.overwrites * BLOCK_BYTES as u64,
        _ => CREATE_BYTES + EXTEND_BYTES,
    };
    let found_bytes = log.size_bytes()?;
    if found_bytes != expected_bytes {
        return Ok(Some(format!("the log has {found_bytes} bytes and should have {expected_bytes}")));
    }
    for index in 0..task.overwrites {
        let (found, expected) = (log.serial(index)?, serial(task, 1, index));
        if found != Some(expected) {
            return Ok(Some(format!("block {index} holds {found:?}, and {expected} was written")));
        }
    }
    Ok(None)
}
