//! Everything that is made of events on their way: attribution, then what looks at its outcomes.

use std::path::{Path, PathBuf};

use joj_analysis::trace::attribution::attribute::{Attributor, Outcome};
use joj_analysis::trace::event::{DeviceNumber, Event, EventKind};
use joj_analysis::trace::file_type::FileTypes;
use joj_analysis::trace::header::{Ending, Header};
use joj_analysis::trace::points::{PointCollector, Points};
use joj_analysis::trace::steps::{StepsOfTransactions, TransactionSteps};
use joj_analysis::trace::summary::{Summariser, Summary};
use joj_analysis::trace::texts::Texts;
use joj_analysis::trace::wanted::Wanted;

use crate::command_line::trace::{ExportFormat, TraceOptions};
use crate::trace::error::TraceError;
use crate::trace::exports::Exports;
use crate::trace_file::{TraceWriteError, TraceWriter};

/// So many transactions are kept for the page where nobody asked for a number.
const TRANSACTIONS_SHOWN: usize = 3;

/// What is wanted of an analysis besides its summary.
#[derive(Debug, Clone, Copy)]
pub struct AnalysisOptions<'a> {
    /// Transactions before those that are told step by step.
    pub skip: usize,
    /// Transactions that are told step by step.
    pub steps: usize,
    /// Files in other formats.
    pub exports: &'a [(ExportFormat, PathBuf)],
    /// What tables for a fleet say of this trace.
    pub labels: &'a [(String, String)],
    /// Where the trace is kept.
    pub save: Option<&'a Path>,
    /// Everybody's calls and commits count, not the command's and its children's alone.
    pub everybody: bool,
}

impl<'a> AnalysisOptions<'a> {
    /// What the options ask for.
    pub fn by(options: &'a TraceOptions) -> AnalysisOptions<'a> {
        AnalysisOptions {
            skip: options.skip,
            steps: options.steps.unwrap_or(TRANSACTIONS_SHOWN),
            exports: &options.export,
            labels: &options.label,
            save: options.save.as_deref(),
            everybody: options.everybody,
        }
    }
}

/// What is looked at. Memory does not grow with the number of events.
pub struct Analysis {
    attributor: Attributor,
    looks: Looks,
    writer: Option<TraceWriter>,
    problem: Option<TraceWriteError>,
    events: u64,
    has_traffic: bool,
    everybody: bool,
}

struct Looks {
    wanted: Wanted,
    /// The process as which the command was started.
    command: Option<u32>,
    summariser: Summariser,
    transactions: StepsOfTransactions,
    points: PointCollector,
    exports: Exports,
}

/// What came of it.
#[derive(Debug)]
pub struct Findings {
    /// The trace in numbers.
    pub summary: Summary,
    /// Transactions, step by step.
    pub transactions: Vec<TransactionSteps>,
    /// Where and when requests were.
    pub points: Points,
}

impl Looks {
    fn forked(&mut self, event: &Event) {
        let Ok(child) = u32::try_from(event.detail) else { return };
        // joj itself made it, which is none of its processes.
        if self.command == Some(child) {
            return;
        }
        self.wanted.forked(event.process, child);
        self.summariser.wanted().forked(event.process, child);
        self.transactions.forked(event.process, child);
    }

    fn outcome(&mut self, outcome: &Outcome<'_>, texts: &Texts) {
        self.summariser.outcome(outcome, texts);
        self.transactions.outcome(outcome);
        let counts = match outcome {
            Outcome::Sync(sync) => self.wanted.includes(sync.process),
            Outcome::Transaction(transaction) => self.wanted.includes(transaction.process),
            _ => true,
        };
        if counts {
            self.points.outcome(outcome);
        }
        self.exports.outcome(outcome, counts, texts);
    }
}

impl Analysis {
    /// For a trace with this head.
    /// # Errors
    /// A file that was asked for cannot be made.
    pub fn new(header: &Header, types: FileTypes, wanted: &AnalysisOptions<'_>) -> Result<Self, TraceError> {
        let looks = Looks {
            wanted: Wanted::of(header),
            command: None,
            summariser: Summariser::of(header),
            transactions: StepsOfTransactions::new(wanted.skip, wanted.steps)
                .of(Wanted::of(header))
                .of_command_first(header.command_process.filter(|_| header.command_processes.is_empty())),
            points: PointCollector::default(),
            exports: Exports::create(wanted.exports, wanted.labels, header)?,
        };
        let writer = wanted.save.map(TraceWriter::create).transpose()?;
        Ok(Self {
            attributor: Attributor::new(header, types),
            looks,
            writer,
            problem: None,
            events: 0,
            has_traffic: false,
            everybody: wanted.everybody,
        })
    }

    /// From then on, by the trace's clock, nothing is known of the filesystem whose files have this device, and of its disk.
    pub fn ends(&mut self, device: DeviceNumber, until_ns: u64) {
        self.attributor.ends(device, until_ns);
    }

    /// The next event.
    pub fn event(&mut self, event: &Event, texts: &Texts) {
        if event.kind == EventKind::Forked {
            return self.looks.forked(event);
        }
        self.events += 1;
        self.has_traffic |= matches!(
            event.kind,
            EventKind::Queue | EventKind::Issue | EventKind::SyncBegin | EventKind::DurableWrite
        );
        if self.problem.is_none()
            && let Some(writer) = &mut self.writer
        {
            self.problem = writer.push(event, texts).err();
        }
        self.looks.summariser.event(event);
        let looks = &mut self.looks;
        self.attributor.event(event, texts, &mut |outcome, texts| looks.outcome(&outcome, texts));
        if let Some(known) = self.attributor.known(event) {
            looks.exports.event(&known, texts);
        }
    }

    /// The command that is traced runs as this process. Before its first event.
    pub fn command_runs(&mut self, process: u32) {
        let transactions = std::mem::take(&mut self.looks.transactions);
        if self.everybody {
            self.looks.transactions = transactions.of_command_first(Some(process));
            return;
        }
        let wanted = Wanted::Processes([process].into());
        self.looks.transactions = transactions.of(wanted.clone());
        *self.looks.summariser.wanted() = wanted.clone();
        (self.looks.wanted, self.looks.command) = (wanted, Some(process));
    }

    /// The processes of the command, where they alone count.
    pub fn command_processes(&self) -> Vec<u32> {
        self.looks.wanted.numbers()
    }

    /// How many events there were.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// True once a request or a sync call was seen.
    pub fn has_traffic(&self) -> bool {
        self.has_traffic
    }

    /// True when a file could not be written: nothing of what follows would be kept.
    pub fn has_failed(&self) -> bool {
        self.problem.is_some()
    }

    /// The trace is over; `header` holds its ending.
    /// # Errors
    /// A file that was asked for could not be written.
    pub fn finish(mut self, header: &Header, texts: &Texts) -> Result<Findings, TraceError> {
        if let Some(problem) = self.problem {
            return Err(problem.into());
        }
        let looks = &mut self.looks;
        self.attributor.finish(texts, &mut |outcome, texts| looks.outcome(&outcome, texts));
        if let Some(writer) = self.writer {
            let without_ending =
                || Ending { cut_short: Some("its source has no ending".into()), ..Ending::default() };
            let ending = Some(header.ending.clone().unwrap_or_else(without_ending));
            writer.finish(&Header { ending, ..header.clone() })?;
        }
        self.looks.exports.finish(header, texts)?;
        Ok(Findings {
            summary: self.looks.summariser.finish(header, texts),
            transactions: self.looks.transactions.finish(),
            points: self.looks.points.finish(),
        })
    }
}
