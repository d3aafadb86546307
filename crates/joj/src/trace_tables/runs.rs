//! The columns of a run of a request, and the row that one gives.

use joj_analysis::trace::attribution::request::{BlockRun, Request};
use joj_analysis::trace::export::run_fields::{RUN_FIELDS, RunFieldKind, RunValue, each_run, run_values};
use joj_analysis::trace::texts::Texts;

use super::cell::{TableCell, TableColumn, number, optional, text};
use super::error::TableError;
use super::facts::{FACT_COLUMNS, Facts};
use super::writer::TableWriter;

/// All columns: those of every table, the filesystem, and those of `--export runs=`.
pub fn columns() -> Vec<TableColumn> {
    let of_run = RUN_FIELDS.iter().map(|(name, kind)| match kind {
        RunFieldKind::Number => number(name),
        RunFieldKind::OptionalNumber => optional(name),
        RunFieldKind::Text => text(name),
    });
    FACT_COLUMNS.into_iter().chain([text("filesystem")]).chain(of_run).collect()
}

/// Writes the runs of a request, a row each.
/// # Errors
/// Those of the writer.
pub fn write(
    writer: &mut TableWriter,
    request: &Request,
    facts: &Facts,
    texts: &Texts,
) -> Result<(), TableError> {
    each_run(request, |run| row(writer, request, run, facts, texts))
}

fn row(
    writer: &mut TableWriter,
    request: &Request,
    run: &BlockRun,
    facts: &Facts,
    texts: &Texts,
) -> Result<(), TableError> {
    let values = run_values(request, run, texts);
    let cells = values.iter().map(|value| match value {
        RunValue::Number(value) => TableCell::Of(*value),
        RunValue::Signed(value) => TableCell::Signed(*value),
        RunValue::Unknown => TableCell::Null,
        RunValue::Text(text) => TableCell::Text(text),
    });
    let filesystem = TableCell::Text(facts.filesystem(run.file.device));
    writer.push(facts.cells("").into_iter().chain([filesystem]).chain(cells))
}
