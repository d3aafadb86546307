//! `joj schema`: JSON Schemas of what `--json` writes, made from the types that write it (docs/json_schemas.md).
//!
//! ```text
//! a type -> schemars -> closed: no field but these -> $id with the version
//! ```

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use joj_analysis::bench::document as bench;
use joj_analysis::bench::io::probe;
use joj_analysis::lab::crash as lab_crash;
use joj_analysis::lab::exec_result::{EXEC_FORMAT, EXEC_VERSION, ExecResult};
use joj_analysis::lab::program_crash as crash;
use joj_analysis::lab::report::outcome as report;
use joj_analysis::lab::result as lab;
use joj_analysis::lab::shards::plan as lab_shards;
use joj_analysis::lab::shards::program_crash as crash_shards;
use joj_analysis::mobibench::document as mobibench;
use joj_analysis::monitor::document as monitor;
use joj_analysis::recording::lab_result as lab_replay;
use joj_analysis::recording::outcome::{REPLAY_VERSION, ReplayOutcome};
use joj_analysis::recording::page_transactions::outcome::{TRANSACTIONS_VERSION, TransactionsOutcome};
use joj_analysis::recording::whatif::lab_result as lab_whatif;
use joj_analysis::recording::whatif::outcome as whatif;
use joj_analysis::trace::summary;
use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use schemars::{JsonSchema, Schema};
use serde_json::Value;
use thiserror::Error;

use crate::command_line::SchemaOptions;
use crate::machine::files::output_file::{self, OutputError};
use crate::trace::document::TraceDocument;

/// Why a schema is not there.
#[derive(Debug, Error)]
pub enum SchemaError {
    /// No output has this name.
    #[error("there is no schema \"{0}\"; `joj schema` lists their names")]
    Unknown(String),
    /// The directory of `--all` cannot be made.
    #[error("cannot make {}: {error}; name a directory where files can be made", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// A schema cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// One output, and the type that is written.
struct WrittenFormat {
    /// Name of its schema.
    name: &'static str,
    /// The commands that write it, with the options without which they write something else.
    commands: &'static [&'static str],
    /// The value of its field `format`; none where it has no such field.
    format: Option<&'static str>,
    /// The value of its field `version`.
    version: u32,
    /// The type's schema.
    schema: fn() -> Schema,
}

/// What is written from values of type `T`.
const fn written<T: JsonSchema>(
    name: &'static str,
    commands: &'static [&'static str],
    format: Option<&'static str>,
    version: u32,
) -> WrittenFormat {
    WrittenFormat { name, commands, format, version, schema: of::<T> }
}

/// All outputs, in the order of the commands in `joj --help`.
const WRITTEN_FORMATS: &[WrittenFormat] = &[
    written::<bench::Document>("bench", &["joj bench"], Some(bench::FORMAT), bench::VERSION),
    written::<mobibench::MobibenchDocument>(
        "mobibench",
        &["joj mobibench"],
        Some(mobibench::FORMAT),
        mobibench::VERSION,
    ),
    written::<TraceDocument<'_>>("trace", &["joj trace"], None, summary::SUMMARY_VERSION),
    written::<ReplayOutcome>("replay", &["joj replay"], None, REPLAY_VERSION),
    written::<TransactionsOutcome>("replay-as", &["joj replay --as MODE"], None, TRANSACTIONS_VERSION),
    written::<lab_replay::ReplayLabResult>(
        "replay-lab",
        &["joj replay --lab"],
        Some(lab_replay::REPLAY_LAB_FORMAT),
        lab_replay::REPLAY_LAB_VERSION,
    ),
    written::<whatif::WhatifResult>(
        "whatif",
        &["joj whatif"],
        Some(whatif::WHATIF_FORMAT),
        whatif::WHATIF_VERSION,
    ),
    written::<lab_whatif::WhatifLabResult>(
        "whatif-lab",
        &["joj whatif --device LIST"],
        Some(lab_whatif::WHATIF_LAB_FORMAT),
        lab_whatif::WHATIF_LAB_VERSION,
    ),
    written::<monitor::MonitorDocument>("monitor", &["joj monitor"], Some(monitor::FORMAT), monitor::VERSION),
    written::<lab::LabResult>(
        "lab",
        &["joj lab run", "joj lab merge"],
        Some(lab::RESULT_FORMAT),
        lab::RESULT_VERSION,
    ),
    written::<lab_shards::LabPart>(
        "lab-part",
        &["joj lab run --shard I/N"],
        Some(lab_shards::LAB_PART_FORMAT),
        lab_shards::LAB_PART_VERSION,
    ),
    written::<ExecResult>("lab-exec", &["joj lab exec"], Some(EXEC_FORMAT), EXEC_VERSION),
    written::<report::Report>(
        "lab-report",
        &["joj lab report"],
        Some(report::REPORT_FORMAT),
        report::REPORT_VERSION,
    ),
    written::<crash::ProgramCrashResult>(
        "crash",
        &["joj crash", "joj lab merge"],
        Some(crash::PROGRAM_CRASH_FORMAT),
        crash::PROGRAM_CRASH_VERSION,
    ),
    written::<crash_shards::ProgramCrashPart>(
        "crash-part",
        &["joj crash --shard I/N"],
        Some(crash_shards::PROGRAM_CRASH_PART_FORMAT),
        crash_shards::PROGRAM_CRASH_PART_VERSION,
    ),
    written::<lab_crash::CrashResult>(
        "crash-sqlite",
        &["joj crash sqlite", "joj lab crash"],
        Some(lab_crash::CRASH_FORMAT),
        lab_crash::CRASH_VERSION,
    ),
    written::<probe::ProbeDocument>(
        "device-probe",
        &["joj device probe"],
        Some(probe::FORMAT),
        probe::VERSION,
    ),
];

/// Runs `joj schema`.
/// # Errors
/// A name that no output has, or what cannot be written.
pub fn run(options: &SchemaOptions) -> Result<ExitCode, SchemaError> {
    match (&options.name, &options.all) {
        (Some(name), _) => {
            let found = WRITTEN_FORMATS.iter().find(|format| format.name == name);
            let format = found.ok_or_else(|| SchemaError::Unknown(name.clone()))?;
            output_file::print(&format.text())?;
        }
        (None, Some(directory)) => write_all(directory)?,
        (None, None) => output_file::print(&list())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A line for each schema: its name, and what writes such output.
fn list() -> String {
    WRITTEN_FORMATS
        .iter()
        .map(|format| format!("{:<14} {}\n", format.name, format.commands.join(", ")))
        .collect()
}

fn write_all(directory: &Path) -> Result<(), SchemaError> {
    fs::create_dir_all(directory)
        .map_err(|error| SchemaError::Directory { path: directory.to_owned(), error })?;
    for format in WRITTEN_FORMATS {
        output_file::write(&directory.join(format!("{}.schema.json", format.name)), &format.text())?;
    }
    Ok(())
}

impl WrittenFormat {
    fn text(&self) -> String {
        let mut schema = (self.schema)();
        schema.insert("$id".to_owned(), format!("urn:joj:{}:{}", self.name, self.version).into());
        schema.insert("title".to_owned(), format!("What `{} --json FILE` writes", self.commands[0]).into());
        for (field, value) in
            [("format", self.format.map(Value::from)), ("version", Some(Value::from(self.version)))]
        {
            let property = schema.pointer_mut(&format!("/properties/{field}")).and_then(Value::as_object_mut);
            if let (Some(property), Some(value)) = (property, value) {
                property.insert("const".to_owned(), value);
            }
        }
        format!("{:#}\n", schema.as_value())
    }
}

/// The schema of a type as it is written, which may ask for more fields than reading an older file does.
fn of<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize().with_transform(close);
    settings.into_generator().into_root_schema_for::<T>()
}

/// No object has another field than those that are listed: a field without a schema is noticed.
fn close(schema: &mut Schema) {
    let required = schema.get("required").cloned().unwrap_or_default();
    let is_required =
        |name: &str| required.as_array().is_some_and(|names| names.iter().any(|one| one == name));
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        let left_out = properties.iter_mut().filter(|(name, _)| !is_required(name));
        left_out.for_each(|(_, property)| without_null(property));
        if schema.get("additionalProperties").is_none() {
            schema.insert("additionalProperties".to_owned(), false.into());
        }
    }
    transform_subschemas(&mut close, schema);
}

/// What may be left out is left out where it has no value, and never `null`.
fn without_null(property: &mut Value) {
    if let Some(types) = property.get_mut("type").and_then(Value::as_array_mut) {
        types.retain(|one| one != "null");
    }
    if let Some(choices) = property.get_mut("anyOf").and_then(Value::as_array_mut) {
        choices.retain(|one| one["type"] != "null");
    }
}
