//! Takes what is complete, and has the rows of both tables written.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::path::Path;

use joj_analysis::trace::attribution::attribute::Outcome;
use joj_analysis::trace::attribution::request::{Transaction, TransactionId};
use joj_analysis::trace::event::Event;
use joj_analysis::trace::texts::Texts;

use super::cell::TableColumn;
use super::commits::{self, TransactionNotes};
use super::error::TableError;
use super::existing::check_labels;
use super::facts::{Facts, TableHeader, hashed};
use super::runs;
use super::writer::TableWriter;

/// So many transactions wait for sync calls that are told after them: what a kernel thread writes for a call may be complete
/// when its thread has begun the next transaction.
const WAITING_MAX: usize = 256;

/// A trace on its way into `DIRECTORY/commits/ID.parquet` and `DIRECTORY/runs/ID.parquet`.
pub struct Tables {
    facts: Facts,
    commits: TableWriter,
    runs: TableWriter,
    notes: HashMap<TransactionId, TransactionNotes>,
    waiting: VecDeque<Transaction>,
    /// Whether the files are on the medium before they have their names.
    is_synced: bool,
    /// The first event's time and the last one's.
    span: Option<(u64, u64)>,
}

impl Tables {
    /// Begins both files.
    /// # Errors
    /// Where the directories or a file cannot be made, or one is there with other labels.
    pub fn create(directory: &Path, facts: Facts) -> Result<Self, TableError> {
        let path = |table: &str| directory.join(table).join(format!("{}.parquet", facts.trace_id));
        for (table, other) in [("commits", "runs"), ("runs", "commits")] {
            check_labels(&path(table), other, &facts.labels)?;
        }
        let begin = |table: &str, columns: Vec<TableColumn>| {
            let folder = directory.join(table);
            fs::create_dir_all(&folder)
                .map_err(|error| TableError::Directory { path: folder.clone(), error })?;
            TableWriter::create(&path(table), &columns)
        };
        let commits = begin("commits", commits::columns())?;
        let runs = begin("runs", runs::columns())?;
        Ok(Self {
            facts,
            commits,
            runs,
            notes: HashMap::new(),
            waiting: VecDeque::new(),
            is_synced: true,
            span: None,
        })
    }

    /// Leaves the time of writing to the system: for tables that can be made again.
    pub fn unsynced(self) -> Self {
        Self { is_synced: false, ..self }
    }

    /// An event went by.
    pub fn event(&mut self, event: &Event) {
        let (first_ns, _) = self.span.unwrap_or((event.time_ns, event.time_ns));
        self.covers(first_ns, event.time_ns);
    }

    /// The trace is of the time between these moments of its clock.
    pub fn covers(&mut self, first_ns: u64, last_ns: u64) {
        self.span = Some((first_ns, last_ns));
    }

    /// Something is complete; `counts`: whether its process is one of those whose commits count.
    /// # Errors
    /// Where rows cannot be written.
    pub fn outcome(&mut self, outcome: &Outcome<'_>, counts: bool, texts: &Texts) -> Result<(), TableError> {
        match outcome {
            Outcome::Request(request) if !request.under_way => {
                runs::write(&mut self.runs, request, &self.facts, texts)
            }
            Outcome::Sync(sync) => {
                if let Some(transaction) = sync.transaction {
                    self.notes.entry(transaction).or_default().sync(sync, texts);
                }
                Ok(())
            }
            Outcome::Note(event, Some(transaction)) => {
                self.notes.entry(*transaction).or_default().note(event, texts);
                Ok(())
            }
            Outcome::Transaction(transaction) if counts => {
                self.waiting.push_back((*transaction).clone());
                if self.waiting.len() > WAITING_MAX { self.write_oldest(texts) } else { Ok(()) }
            }
            Outcome::Transaction(transaction) => {
                self.notes.remove(&transaction.id);
                Ok(())
            }
            Outcome::Request(_) | Outcome::Note(_, None) => Ok(()),
        }
    }

    /// The trace is over: both files get their names.
    /// # Errors
    /// Where one cannot be completed. Then it is not there; the other one may be.
    pub fn finish(mut self, lost: Option<u64>, texts: &Texts) -> Result<(), TableError> {
        while !self.waiting.is_empty() {
            self.write_oldest(texts)?;
        }
        let span_ns = self.span.map_or(0, |(first_ns, last_ns)| last_ns.saturating_sub(first_ns));
        // First the runs: who finds commits finds their runs.
        let mut tables = [("runs", self.runs), ("commits", self.commits)];
        let mut contents = String::new();
        for (table, writer) in &mut tables {
            let groups = serde_json::to_string(writer.end_rows()?)?;
            let header = self.facts.header(table, writer.rows(), span_ns, lost);
            contents += &format!("{} {groups}\n", serde_json::to_string(&header)?);
        }
        let export_id = hashed(&contents);
        for (table, writer) in tables {
            let header = self.facts.header(table, writer.rows(), span_ns, lost);
            let header = TableHeader { export_id: &export_id, ..header };
            writer.finish(&serde_json::to_string(&header)?, self.is_synced)?;
        }
        Ok(())
    }

    fn write_oldest(&mut self, texts: &Texts) -> Result<(), TableError> {
        let Some(transaction) = self.waiting.pop_front() else { return Ok(()) };
        let notes = self.notes.remove(&transaction.id).unwrap_or_default();
        self.commits.push(commits::row(&transaction, &notes, &self.facts, texts))
    }
}
