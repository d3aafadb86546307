//! What is told of a run of a request: the columns of `--export runs=` and of a fleet's table of runs.

use std::borrow::Cow;

use crate::trace::attribution::request::{BlockRun, Evidence, Request};
use crate::trace::event::RequestFlags;
use crate::trace::texts::Texts;

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunFieldKind {
    /// A number that every run has.
    Number,
    /// A number that may not be known.
    OptionalNumber,
    /// A text; empty where it is not known.
    Text,
}

/// The value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunValue<'a> {
    Number(u64),
    /// A number that may be negative.
    Signed(i64),
    Unknown,
    Text(Cow<'a, str>),
}

use RunFieldKind::{Number, OptionalNumber, Text};

/// Names and kinds, in the order of [`run_values`].
pub const RUN_FIELDS: [(&str, RunFieldKind); 28] = [
    ("queued_ns", Number),
    ("issued_ns", OptionalNumber),
    ("completed_ns", OptionalNumber),
    ("disk", Text),
    ("first_sector", Number),
    ("byte_length", Number),
    ("operation", Text),
    ("waits", Number),
    ("wanted_preflush", Number),
    ("wanted_fua", Number),
    ("issued_fua", Number),
    ("error_code", Number),
    ("class", Text),
    ("part", Text),
    ("evidence", Text),
    ("file_inode", Number),
    ("file_generation", Number),
    ("file_path", Text),
    ("file_type", Text),
    ("file_deleted", Number),
    ("file_offset", OptionalNumber),
    ("changed_bytes", OptionalNumber),
    ("sync_call", OptionalNumber),
    ("sqlite_work", OptionalNumber),
    ("journal_of_journal", Number),
    ("process_id", Number),
    ("queued_by", Text),
    ("issued_by", Text),
];

/// The values of a run.
pub fn run_values<'a>(
    request: &Request,
    run: &BlockRun,
    texts: &'a Texts,
) -> [RunValue<'a>; RUN_FIELDS.len()] {
    let text = |text: &'a str| RunValue::Text(Cow::Borrowed(text));
    let known = |value: Option<u64>| value.map_or(RunValue::Unknown, RunValue::Number);
    let wanted = |flag: RequestFlags| RunValue::Number(u64::from(run.intended.has(flag)));
    let has_file = run.file.is_some();
    [
        RunValue::Number(run.queued_ns),
        known((!request.unissued).then_some(request.issued_ns)),
        known(request.completed_ns),
        RunValue::Text(Cow::Owned(request.disk.to_string())),
        RunValue::Number(run.sector),
        RunValue::Number(run.bytes),
        text(request.operation.text()),
        wanted(RequestFlags::SYNC),
        wanted(RequestFlags::PREFLUSH),
        wanted(RequestFlags::FUA),
        RunValue::Number(u64::from(request.issued.has(RequestFlags::FUA))),
        RunValue::Signed(request.error),
        text(run.class.text()),
        text(run.part.text()),
        text(match run.evidence {
            Evidence::Seen => "seen",
            Evidence::Extent => "extent",
            Evidence::None => "none",
        }),
        RunValue::Number(run.file.inode),
        RunValue::Number(u64::from(run.file.generation)),
        text(texts.get(run.name)),
        text(if has_file { run.file_type.text() } else { "" }),
        RunValue::Number(u64::from(run.deleted)),
        known(has_file.then_some(run.offset)),
        known(run.changed_bytes.map(u64::from)),
        known(run.cause.map(|sync| sync.0)),
        known(run.transaction.map(|transaction| transaction.0)),
        RunValue::Number(u64::from(run.journal_of_journal)),
        RunValue::Number(u64::from(run.process)),
        text(texts.get(run.command)),
        text(texts.get(request.command)),
    ]
}

/// Hands on the runs of a request. A flush of which nobody knows for whom it is has one too.
/// # Errors
/// Those of `take`.
pub fn each_run<E>(request: &Request, mut take: impl FnMut(&BlockRun) -> Result<(), E>) -> Result<(), E> {
    if !request.runs.is_empty() {
        return request.runs.iter().try_for_each(take);
    }
    take(&BlockRun {
        queued_ns: request.issued_ns,
        sector: request.sector,
        bytes: request.bytes,
        ..BlockRun::default()
    })
}
