//! Takes what is complete, and has the rows of both tables written.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::path::Path;

use joj_analysis::trace::attribution::attribute::Outcome;
use joj_analysis::trace::attribution::request::{Transaction, TransactionId};
use joj_analysis::trace::event::Event;
use joj_analysis::trace::texts::Texts;

use super::cell::TableColumn;
use super::commits::{self, Happened};
use super::error::TableError;
use super::facts::Facts;
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
    happened: HashMap<TransactionId, Happened>,
    waiting: VecDeque<Transaction>,
    /// The first event's time and the last one's.
    span: Option<(u64, u64)>,
}

impl Tables {
    /// Begins both files.
    /// # Errors
    /// Where the directories or a file cannot be made.
    pub fn create(directory: &Path, facts: Facts) -> Result<Self, TableError> {
        let begin = |table: &str, columns: Vec<TableColumn>| {
            let folder = directory.join(table);
            fs::create_dir_all(&folder)
                .map_err(|error| TableError::Directory { path: folder.clone(), error })?;
            TableWriter::create(&folder.join(format!("{}.parquet", facts.trace_id)), &columns)
        };
        let commits = begin("commits", commits::columns())?;
        let runs = begin("runs", runs::columns())?;
        Ok(Self { facts, commits, runs, happened: HashMap::new(), waiting: VecDeque::new(), span: None })
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
                    self.happened.entry(transaction).or_default().sync(sync, texts);
                }
                Ok(())
            }
            Outcome::Note(event, Some(transaction)) => {
                self.happened.entry(*transaction).or_default().note(event, texts);
                Ok(())
            }
            Outcome::Transaction(transaction) if counts => {
                self.waiting.push_back((*transaction).clone());
                if self.waiting.len() > WAITING_MAX { self.write_oldest(texts) } else { Ok(()) }
            }
            Outcome::Transaction(transaction) => {
                self.happened.remove(&transaction.id);
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
        for (table, writer) in [("runs", self.runs), ("commits", self.commits)] {
            let header = self.facts.header(table, writer.rows(), span_ns, lost);
            writer.finish(&serde_json::to_string(&header)?)?;
        }
        Ok(())
    }

    fn write_oldest(&mut self, texts: &Texts) -> Result<(), TableError> {
        let Some(transaction) = self.waiting.pop_front() else { return Ok(()) };
        let happened = self.happened.remove(&transaction.id).unwrap_or_default();
        self.commits.push(commits::row(&transaction, &happened, &self.facts, texts))
    }
}
