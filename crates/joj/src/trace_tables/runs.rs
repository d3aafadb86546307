//! The columns of a run of a request, and the row that one gives.

use joj_analysis::trace::attribution::request::{BlockRun, Evidence, Request};
use joj_analysis::trace::event::RequestFlags;
use joj_analysis::trace::texts::Texts;

use super::cell::{TableCell, TableColumn, number, perhaps, words};
use super::error::TableError;
use super::facts::{FACT_COLUMNS, Facts};
use super::writer::TableWriter;

/// Behind [`FACT_COLUMNS`]: those of `--export runs=`, and the filesystem.
const OWN_COLUMNS: [TableColumn; 29] = [
    words("filesystem"),
    number("queued_ns"),
    perhaps("issued_ns"),
    perhaps("completed_ns"),
    words("disk"),
    number("first_sector"),
    number("byte_length"),
    words("operation"),
    number("waits"),
    number("wanted_preflush"),
    number("wanted_fua"),
    number("issued_fua"),
    number("error_code"),
    words("class"),
    words("part"),
    words("evidence"),
    number("file_inode"),
    number("file_generation"),
    words("file_path"),
    words("file_type"),
    number("file_deleted"),
    perhaps("file_offset"),
    perhaps("changed_bytes"),
    perhaps("sync_call"),
    perhaps("sqlite_work"),
    number("journal_of_journal"),
    number("process_id"),
    words("queued_by"),
    words("issued_by"),
];

/// All columns.
pub fn columns() -> Vec<TableColumn> {
    FACT_COLUMNS.into_iter().chain(OWN_COLUMNS).collect()
}

/// Writes the runs of a request, a row each; a flush of which nobody knows for whom it is has one too.
/// # Errors
/// Those of the writer.
pub fn write(
    writer: &mut TableWriter,
    request: &Request,
    facts: &Facts,
    texts: &Texts,
) -> Result<(), TableError> {
    if request.runs.is_empty() {
        let run = BlockRun {
            queued_ns: request.issued_ns,
            sector: request.sector,
            bytes: request.bytes,
            ..BlockRun::default()
        };
        return row(writer, request, &run, facts, texts);
    }
    request.runs.iter().try_for_each(|run| row(writer, request, run, facts, texts))
}

fn row(
    writer: &mut TableWriter,
    request: &Request,
    run: &BlockRun,
    facts: &Facts,
    texts: &Texts,
) -> Result<(), TableError> {
    let wanted = |flag: RequestFlags| TableCell::Of(u64::from(run.intended.has(flag)));
    let disk = request.disk.to_string();
    let has_file = run.file.is_some();
    let own: [TableCell<'_>; OWN_COLUMNS.len()] = [
        TableCell::Text(facts.filesystem(run.file.device)),
        TableCell::Of(run.queued_ns),
        TableCell::known((!request.unissued).then_some(request.issued_ns)),
        TableCell::known(request.completed_ns),
        TableCell::Text(&disk),
        TableCell::Of(run.sector),
        TableCell::Of(run.bytes),
        TableCell::Text(request.operation.text()),
        wanted(RequestFlags::SYNC),
        wanted(RequestFlags::PREFLUSH),
        wanted(RequestFlags::FUA),
        TableCell::Of(u64::from(request.issued.has(RequestFlags::FUA))),
        TableCell::Signed(request.error),
        TableCell::Text(run.class.text()),
        TableCell::Text(run.part.text()),
        TableCell::Text(match run.evidence {
            Evidence::Seen => "seen",
            Evidence::Extent => "extent",
            Evidence::None => "none",
        }),
        TableCell::Of(run.file.inode),
        TableCell::Of(u64::from(run.file.generation)),
        TableCell::Text(texts.get(run.name)),
        TableCell::Text(if has_file { run.file_type.text() } else { "" }),
        TableCell::Of(u64::from(run.deleted)),
        TableCell::known(has_file.then_some(run.offset)),
        TableCell::known(run.changed_bytes.map(u64::from)),
        TableCell::known(run.cause.map(|sync| sync.0)),
        TableCell::known(run.transaction.map(|transaction| transaction.0)),
        TableCell::Of(u64::from(run.journal_of_journal)),
        TableCell::Of(u64::from(run.process)),
        TableCell::Text(texts.get(run.command)),
        TableCell::Text(texts.get(request.command)),
    ];
    writer.push(facts.cells("").into_iter().chain(own))
}
