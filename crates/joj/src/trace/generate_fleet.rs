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

/// Of fewer devices of a model nobody knows what is usual: docs/fleet.md.
const OUTLIER_DEVICES_MIN: usize = 8;

/// What a report of the fleet must say; `answers.json`. All but `damaged` is of the traces whose files are whole.
#[derive(Debug, Serialize)]
struct Answers {
    seed: u64,
    commits_each: u64,
    /// The planted factor.
    regression: f64,
    whole: FleetSums,
    /// The same by `device version`.
    groups: BTreeMap<String, FleetSums>,
    /// The same by device model.
    models: BTreeMap<String, FleetSums>,
    devices: usize,
    /// Devices with both versions.
    pairs: usize,
    /// `device_id` of those that are slower than the others of their model.
    outliers: Vec<String>,
    /// Files that were damaged.
    damaged: Vec<PathBuf>,
}

/// A device: its model, and its `device_id`, or the number of its trace where it has none.
type FleetUnit = (&'static str, String);

/// The whole traces of a fleet, as they are written.
#[derive(Debug, Default)]
struct Whole {
    all: FleetSums,
    groups: BTreeMap<String, FleetSums>,
    models: BTreeMap<String, FleetSums>,
    /// Versions of each device, and whether it is slow.
    units: BTreeMap<FleetUnit, (Vec<&'static str>, bool)>,
}

impl Whole {
    fn add(&mut self, trace: &FleetTrace, sums: &FleetSums) {
        let model = trace.model().name;
        self.all.add(sums);
        self.groups.entry(format!("{model} {}", trace.version)).or_default().add(sums);
        self.models.entry(model.to_owned()).or_default().add(sums);
        let id = if trace.device_id.is_empty() { trace.number.to_string() } else { trace.device_id.clone() };
        let (versions, is_slow) = self.units.entry((model, id)).or_default();
        versions.push(trace.version);
        *is_slow = trace.is_outlier && !trace.device_id.is_empty();
    }

    /// Those that a report can find: it needs some others of their model to compare with.
    fn outliers(&self) -> Vec<String> {
        let labelled = |model: &str| {
            let of_model = self.units.iter().filter(|((name, _), (versions, _))| {
                *name == model && versions.iter().all(|version| !version.is_empty())
            });
            of_model.count()
        };
        let slow = self.units.iter().filter(|(_, (_, is_slow))| *is_slow);
        let slow = slow.filter(|((model, _), _)| labelled(model) >= OUTLIER_DEVICES_MIN);
        slow.map(|((_, id), _)| id.clone()).collect()
    }
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
    let mut whole = Whole::default();
    let mut damaged = Vec::new();
    for number in 0..traces {
        let trace = FleetTrace::numbered(number, &plan);
        let sums = write(&trace, &plan, directory).map_err(ExportError::Tables)?;
        // Spread over the fleet.
        if number * options.damaged / traces != (number + 1) * options.damaged / traces {
            damaged.push(damage(&trace.id(&plan), directory, damaged.len())?);
        } else {
            whole.add(&trace, &sums);
        }
    }
    let answers = Answers {
        seed: options.seed,
        commits_each: options.commits,
        regression: options.regression,
        devices: whole.units.len(),
        pairs: whole.units.values().filter(|(versions, _)| versions.len() == 2).count(),
        outliers: whole.outliers(),
        whole: whole.all,
        groups: whole.groups,
        models: whole.models,
        damaged,
    };
    let text = format!("{}\n", serde_json::to_string_pretty(&answers)?);
    output_file::write(&directory.join("answers.json"), &text)?;
    println!("wrote {traces} traces with {} commits each below {}", options.commits, directory.display());
    Ok(ExitCode::SUCCESS)
}

fn write(trace: &FleetTrace, plan: &FleetPlan, directory: &Path) -> Result<FleetSums, TableError> {
    let labels =
        [("device", trace.model().name), ("device_id", &trace.device_id), ("app_version", trace.version)];
    let labels = labels.into_iter().filter(|(_, value)| !value.is_empty());
    let labels: Vec<_> = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
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
    let mut tables = Tables::create(directory, facts)?.unsynced();
    tables.covers(0, trace.model().span_ns);
    let (sums, texts) = trace.play(plan, &mut |outcome, texts| tables.outcome(outcome, true, texts))?;
    tables.finish(Some(0), &texts)?;
    Ok(sums)
}

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
