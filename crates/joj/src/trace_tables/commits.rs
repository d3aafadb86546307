//! The columns of a commit, and the row that one gives: what it wrote, how long it took, and by which journal mode and syncs.

use joj_analysis::filesystem::class::Class;
use joj_analysis::trace::attribution::request::{Sync, Transaction, TransactionKind};
use joj_analysis::trace::event::{Event, EventKind, FileKey};
use joj_analysis::trace::file_type::FileType;
use joj_analysis::trace::texts::Texts;

use super::cell::{TableCell, TableColumn, number, optional, text};
use super::facts::{FACT_COLUMNS, Facts};

/// Behind [`FACT_COLUMNS`].
const OWN_COLUMNS: [TableColumn; 23] = [
    text("filesystem"),
    text("kind"),
    number("sqlite_work"),
    text("file_path"),
    number("process_id"),
    text("journal_mode"),
    text("sync_mode"),
    optional("begun_unix_ns"),
    number("begun_ns"),
    optional("duration_ns"),
    number("until_close"),
    number("written_bytes"),
    number("data_bytes"),
    number("journal_bytes"),
    number("other_bytes"),
    number("journal_of_journal_bytes"),
    number("writes"),
    number("flushes"),
    number("syncs"),
    number("fsyncs"),
    number("fdatasyncs"),
    number("sync_ns"),
    number("flush_ns"),
];

/// All columns.
pub fn columns() -> Vec<TableColumn> {
    FACT_COLUMNS.into_iter().chain(OWN_COLUMNS).collect()
}

/// What notes in a transaction, beside what it says itself.
#[derive(Debug, Clone, Default)]
pub struct TransactionNotes {
    fsyncs: u64,
    fdatasyncs: u64,
    sync_ns: u64,
    flush_ns: u64,
    log_syncs: u64,
    journal_syncs: u64,
    journals: Vec<FileKey>,
    journal_deleted: bool,
    journal_cut: bool,
}

impl TransactionNotes {
    /// A sync call of it returned.
    pub fn sync(&mut self, sync: &Sync, texts: &Texts) {
        match texts.get(sync.call) {
            "fsync" => self.fsyncs += 1,
            "fdatasync" => self.fdatasyncs += 1,
            _ => {}
        }
        self.sync_ns += sync.ended_ns.map_or(0, |ended_ns| ended_ns.saturating_sub(sync.begun_ns));
        self.flush_ns += sync.flush_ns;
        self.log_syncs += u64::from(sync.file_type == FileType::WriteAheadLog);
        if sync.file_type == FileType::RollbackJournal {
            self.journal_syncs += 1;
            if !self.journals.contains(&sync.file) {
                self.journals.push(sync.file);
            }
        }
    }

    /// A file lost its name in it, or was cut.
    pub fn note(&mut self, event: &Event, texts: &Texts) {
        let is_journal = texts.get(event.name).ends_with("-journal") || self.journals.contains(&event.file);
        self.journal_deleted |= event.kind == EventKind::Unlinked && is_journal;
        self.journal_cut |= event.kind == EventKind::Truncated && event.bytes == 0 && is_journal;
    }

    fn journal_mode(&self, is_log: bool) -> &'static str {
        match self {
            _ if is_log => "wal",
            Self { journal_deleted: true, .. } => "delete",
            Self { journal_cut: true, .. } => "truncate",
            Self { journal_syncs: 1.., .. } => "persist",
            _ => "rollback",
        }
    }

    fn sync_mode(&self, is_log: bool) -> &'static str {
        match self {
            Self { log_syncs: 1.., .. } if is_log => "full",
            Self { journal_syncs: 2.., .. } if !is_log => "full",
            Self { journal_syncs: 1, .. } if !is_log => "normal",
            _ => "none",
        }
    }
}

/// The row of a transaction.
pub fn row<'a>(
    transaction: &Transaction,
    notes: &TransactionNotes,
    facts: &'a Facts,
    texts: &'a Texts,
) -> impl Iterator<Item = TableCell<'a>> {
    let file_path = texts.get(transaction.name);
    let is_log = file_path.ends_with("-shm");
    let of = |class: Class| transaction.bytes[usize::from(class.code())];
    let written: u64 = transaction.bytes.iter().sum();
    let (data, journal) = (of(Class::Data), of(Class::Journal));
    let is_commit = transaction.kind == TransactionKind::Commit;
    let duration_ns = transaction.ended_ns.map(|ended_ns| ended_ns.saturating_sub(transaction.begun_ns));
    let own: [TableCell<'a>; OWN_COLUMNS.len()] = [
        TableCell::Text(facts.filesystem(transaction.file.device)),
        TableCell::Text(match transaction.kind {
            TransactionKind::Commit => "commit",
            TransactionKind::Checkpoint => "checkpoint",
            TransactionKind::Recovery => "recovery",
        }),
        TableCell::Of(transaction.id.0),
        TableCell::Text(file_path),
        TableCell::Of(u64::from(transaction.process)),
        TableCell::Text(if is_commit { notes.journal_mode(is_log) } else { "wal" }),
        TableCell::Text(if is_commit { notes.sync_mode(is_log) } else { "" }),
        facts.calendar(transaction.begun_ns),
        TableCell::Of(transaction.begun_ns),
        TableCell::known(duration_ns),
        TableCell::Of(u64::from(transaction.until_close)),
        TableCell::Of(written),
        TableCell::Of(data),
        TableCell::Of(journal),
        TableCell::Of(written - data - journal),
        TableCell::Of(transaction.journal_of_journal_bytes),
        TableCell::Of(transaction.writes),
        TableCell::Of(transaction.flushes),
        TableCell::Of(transaction.syncs),
        TableCell::Of(notes.fsyncs),
        TableCell::Of(notes.fdatasyncs),
        TableCell::Of(notes.sync_ns),
        TableCell::Of(notes.flush_ns),
    ];
    facts.cells(texts.get(transaction.command)).into_iter().chain(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(kind: EventKind, inode: u64) -> Event {
        Event { kind, file: FileKey { inode, ..FileKey::NONE }, ..Event::default() }
    }

    #[test]
    fn what_became_of_the_journal_says_the_journal_mode() {
        let texts = Texts::default();
        let journal = FileKey { inode: 7, ..FileKey::NONE };
        let synced =
            TransactionNotes { journal_syncs: 1, journals: vec![journal], ..TransactionNotes::default() };
        let after = |kind, inode| {
            let mut notes = synced.clone();
            notes.note(&note(kind, inode), &texts);
            notes.journal_mode(false)
        };
        assert_eq!(after(EventKind::Unlinked, 7), "delete");
        assert_eq!(after(EventKind::Truncated, 7), "truncate");
        assert_eq!(after(EventKind::Truncated, 8), "persist", "another file was cut");
        assert_eq!(TransactionNotes::default().journal_mode(false), "rollback");
        assert_eq!(TransactionNotes::default().journal_mode(true), "wal");
    }

    #[test]
    fn so_many_syncs_of_the_journal_say_how_durable_it_is() {
        let with = |log_syncs, journal_syncs| TransactionNotes {
            log_syncs,
            journal_syncs,
            ..TransactionNotes::default()
        };
        let rollback = [0, 1, 2, 3].map(|journal_syncs| with(0, journal_syncs).sync_mode(false));
        assert_eq!(rollback, ["none", "normal", "full", "full"]);
        assert_eq!([0, 1].map(|log_syncs| with(log_syncs, 0).sync_mode(true)), ["none", "full"]);
    }
}
