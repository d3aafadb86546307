//! `joj trace-generate --fleet`: the tables of many made traces, and what a report of them must say.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use joj_analysis::trace::fleet::{FILES, FleetPlan, FleetSums, FleetTrace};
use joj_analysis::trace::header::{Header, MountedFilesystem};
use serde::Serialize;

use crate::command_line::{TraceGenerateOptions, wrong_usage};
use crate::machine::files::output_file;
use crate::trace::error::{ExportError, TraceError};
use crate::trace_tables::TableError;
use crate::trace_tables::facts::Facts;
use crate::trace_tables::tables::Tables;

/// What a report of the fleet must say; `answers.json`.
#[derive(Debug, Serialize)]
struct Answers {
    seed: u64,
    commits_each: u64,
    /// The planted factor.
    regression: f64,
    /// Of the traces whose files are whole.
    whole: FleetSums,
    /// The same by `device version`.
    groups: BTreeMap<String, FleetSums>,
    devices: u64,
    /// `device_id` of those that are slower than the others of their model.
    outliers: Vec<String>,
    /// Files that were damaged.
    damaged: Vec<PathBuf>,
}

/// Writes the tables of so many traces below the directory, and `answers.json` beside them.
/// # Errors
/// Where a file cannot be written.
pub fn run(traces: u64, directory: &Path, options: &TraceGenerateOptions) -> Result<ExitCode, TraceError> {
    if !(0.1..=10.0).contains(&options.regression) || options.damaged > traces {
        return Ok(wrong_usage(
            "`--regression` takes 0.1 to 10, and `--damaged` at most as many as `--fleet`",
        ));
    }
    let plan = FleetPlan { seed: options.seed, commits: options.commits, regression: options.regression };
    let mut answers = Answers {
        seed: options.seed,
        commits_each: options.commits,
        regression: options.regression,
        whole: FleetSums::default(),
        groups: BTreeMap::new(),
        devices: traces.div_ceil(2),
        outliers: Vec::new(),
        damaged: Vec::new(),
    };
    for number in 0..traces {
        let trace = FleetTrace::numbered(number);
        let sums = write(&trace, &plan, directory).map_err(ExportError::Tables)?;
        if trace.is_outlier && number.is_multiple_of(2) {
            answers.outliers.push(trace.device_id.clone());
        }
        // Spread over the fleet.
        if number * options.damaged / traces != (number + 1) * options.damaged / traces {
            answers.damaged.push(damage(&trace.id(&plan), directory, answers.damaged.len())?);
            continue;
        }
        answers.groups.entry(format!("{} {}", trace.device, trace.version)).or_default().add(&sums);
        answers.whole.add(&sums);
    }
    let text = format!("{}\n", serde_json::to_string_pretty(&answers)?);
    output_file::write(&directory.join("answers.json"), &text)?;
    println!("wrote {traces} traces with {} commits each below {}", options.commits, directory.display());
    Ok(ExitCode::SUCCESS)
}

fn write(trace: &FleetTrace, plan: &FleetPlan, directory: &Path) -> Result<FleetSums, TableError> {
    let labels = [("device", trace.device), ("device_id", &trace.device_id), ("app_version", trace.version)];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let header = Header {
        kernel: "6.1.0-fleet".to_owned(),
        filesystems: vec![MountedFilesystem {
            device: FILES,
            kind: "ext4".to_owned(),
            ..MountedFilesystem::default()
        }],
        ..Header::default()
    };
    let mut facts = Facts::of(&header, &labels);
    facts.trace_id = trace.id(plan);
    let mut tables = Tables::create(directory, facts)?;
    tables.covers(0, DAY_NS);
    let (sums, texts) = trace.play(plan, &mut |outcome, texts| tables.outcome(outcome, true, texts))?;
    tables.finish(Some(0), &texts)?;
    Ok(sums)
}

/// A trace is of one day.
const DAY_NS: u64 = 86_400_000_000_000;

/// Cuts the runs, or changes a byte of the commits, of a trace. Returns which file.
fn damage(trace_id: &str, directory: &Path, number: usize) -> Result<PathBuf, ExportError> {
    let table = if number.is_multiple_of(2) { "runs" } else { "commits" };
    let path = directory.join(table).join(format!("{trace_id}.parquet"));
    let damaged = || {
        let file = OpenOptions::new().read(true).write(true).open(&path)?;
        let bytes = file.metadata()?.len();
        if table == "runs" {
            return file.set_len(bytes / 2);
        }
        let mut byte = [0];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut byte, 64)?;
        std::os::unix::fs::FileExt::write_all_at(&file, &[byte[0] ^ 1], 64)
    };
    let done: io::Result<()> = damaged();
    done.map(|()| path.clone()).map_err(|error| ExportError::Write { path, error })
}
