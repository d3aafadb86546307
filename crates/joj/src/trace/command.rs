//! `joj trace` from its options to its exit code.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use joj_analysis::trace::file_type::FileTypes;
use joj_analysis::trace::texts::Texts;

use crate::command_line::trace::{ExportFormat, TraceOptions};
use crate::command_line::wrong_usage;
use crate::machine::files::output_file;
use crate::machine::proc::signal;
use crate::show::trace::page as trace_page;
use crate::show::trace::steps as trace_steps;
use crate::show::trace::text as trace_text;
use crate::trace::analysis::{AnalysisOptions, Findings};
use crate::trace::document::{TraceDocument, TransactionRow};
use crate::trace::error::TraceError;
use crate::trace::live;
use crate::trace::saved;
use crate::trace_tables;

/// Runs `joj trace`.
/// # Errors
/// What could not be done, where, and how to mend it.
pub fn run(options: &TraceOptions) -> Result<ExitCode, TraceError> {
    if options.read.is_none()
        && options.command.is_empty()
        && options.pid.is_none()
        && options.for_ns.is_none()
    {
        return Ok(wrong_usage(
            "nothing to trace: name a COMMAND behind `--`, a `--pid`, a time with `--for`, or a trace with `--read`",
        ));
    }
    if let Some(what) = output_file::both_printed(&options.json, &options.markdown) {
        return Ok(wrong_usage(what));
    }
    if let Some(what) = wrong_labels(options) {
        return Ok(wrong_usage(&what));
    }
    let files = options
        .json
        .iter()
        .chain(&options.markdown)
        .chain(&options.html)
        .chain(&options.picture)
        .chain(&options.save);
    let is_file = |format: &ExportFormat| matches!(format, ExportFormat::File(_));
    let exported = options.export.iter().filter(|(format, _)| is_file(format)).map(|(_, path)| path);
    // What is read must not be written over.
    output_file::check_apart(&options.read, files.chain(exported))?;
    let types = file_types(options.file_types.as_deref())?;
    signal::install().map_err(TraceError::Signals)?;
    let (findings, texts, exit_code) = match &options.read {
        Some(path) => {
            let (findings, texts) = match saved::read(path, types, &AnalysisOptions::by(options)) {
                Err(stop) if stop.is_stop() => {
                    eprintln!("joj: {stop}");
                    return Ok(ExitCode::from(signal::STOPPED_EXIT_CODE));
                }
                read => read?,
            };
            (findings, texts, 0)
        }
        None => {
            let captured = match live::run(options, types) {
                Ok(captured) => captured,
                Err(error) => {
                    eprintln!("joj: {error}");
                    return Ok(ExitCode::from(error.exit_code()));
                }
            };
            // Without an end of its own a capture is to be stopped.
            let has_end = options.for_ns.is_some() || options.pid.is_some();
            let stopped = options.command.is_empty() && has_end && captured.is_cut_short;
            (
                captured.findings,
                captured.texts,
                if stopped { signal::STOPPED_EXIT_CODE } else { captured.exit_code },
            )
        }
    };
    report(options, &findings, &texts)?;
    Ok(ExitCode::from(exit_code))
}

/// What is wrong with the labels, if anything: they are a part of tables, and of nothing else.
fn wrong_labels(options: &TraceOptions) -> Option<String> {
    let has_tables = options.export.iter().any(|(format, _)| matches!(format, ExportFormat::Tables));
    if !options.label.is_empty() && !has_tables {
        return Some("--label is for tables, and there are none; add `--export parquet=DIR`".to_owned());
    }
    let mut keys: Vec<&str> = options.label.iter().map(|(key, _)| key.as_str()).collect();
    if let Some(key) = keys.iter().find(|key| trace_tables::hides_column(key)) {
        return Some(format!(
            "--label {key}= would hide a column of the tables that is called so; take another key"
        ));
    }
    keys.sort_unstable_by_key(|key| key.to_ascii_lowercase());
    let pair = keys.windows(2).find(|pair| pair[0].eq_ignore_ascii_case(pair[1]))?;
    let (one, other) = (pair[0], pair[1]);
    Some(if one == other {
        format!("--label names {one} twice; give each key one value")
    } else {
        format!("--label names {one} and {other}, which are one name to an engine; give each key one value")
    })
}

fn report(options: &TraceOptions, findings: &Findings, texts: &Texts) -> Result<(), TraceError> {
    let page = output_file::write_where(options.html.as_deref(), || {
        trace_page::page(&findings.summary, &findings.points, &findings.transactions, texts)
    });
    let drawn = options.picture.as_deref().map_or(Ok(()), |path| picture(path, findings));
    let document = options.json.as_ref().map(|_| document(findings, texts, options.steps.is_some()));
    let steps = || {
        let is_told = options.steps.is_some();
        is_told.then(|| trace_steps::transactions(&findings.transactions, texts, &findings.summary.header))
    };
    let reported = output_file::report_with_markdown(
        options.json.as_deref(),
        options.markdown.as_deref(),
        &document,
        || {
            let summary = trace_text::summary(&findings.summary);
            steps().map_or(summary.clone(), |steps| format!("{summary}\n{steps}"))
        },
        || {
            let summary = trace_text::markdown(&findings.summary);
            steps().map_or(summary.clone(), |steps| format!("{summary}\n```text\n{steps}```\n"))
        },
    );
    page?;
    drawn?;
    Ok(reported?)
}

fn picture(path: &Path, findings: &Findings) -> Result<(), TraceError> {
    let picture = trace_page::picture(&findings.points, &findings.summary.header);
    let picture = picture.ok_or_else(|| TraceError::NoPicture(path.to_owned()))?;
    Ok(output_file::write(path, &picture)?)
}

/// The summary, with what each transaction cost where steps are wanted.
fn document<'a>(findings: &'a Findings, texts: &Texts, steps: bool) -> TraceDocument<'a> {
    let row = |transaction| TransactionRow::of(transaction, texts);
    TraceDocument {
        summary: &findings.summary,
        transactions: steps.then(|| findings.transactions.iter().map(row).collect()),
    }
}

fn file_types(path: Option<&Path>) -> Result<FileTypes, TraceError> {
    let Some(path) = path else { return Ok(FileTypes::default()) };
    let text = fs::read_to_string(path)
        .map_err(|error| TraceError::FileTypesUnreadable { path: path.to_owned(), error })?;
    FileTypes::with(&text).map_err(|error| TraceError::FileTypes { path: path.to_owned(), error })
}
