//! One transaction at a time, step by step: which call made which requests.

use std::collections::HashMap;

use crate::trace::attribution::attribute::Outcome;
use crate::trace::attribution::request::{Request, Sync, SyncId, Transaction, TransactionId};
use crate::trace::event::{Event, EventKind};
use crate::trace::wanted::Wanted;

/// What belongs together: a commit or checkpoint, or a sync call outside of any.
#[derive(Debug, Clone, PartialEq)]
pub enum StepsOwner {
    /// A commit or checkpoint of SQLite.
    Transaction(Transaction),
    /// A call of a program that is not seen to be SQLite.
    Sync(Sync),
}

/// Something that happened in it.
#[derive(Debug, Clone, PartialEq)]
pub enum TransactionStep {
    /// A sync call, at its begin.
    Sync(Sync),
    /// A request, when it was handed over.
    Request(Request),
    /// A file lost its name, or was cut.
    Note(Event),
}

impl TransactionStep {
    /// Nanoseconds of the trace's clock.
    pub fn time_ns(&self) -> u64 {
        match self {
            Self::Sync(sync) => sync.begun_ns,
            Self::Request(request) => request.runs.first().map_or(request.issued_ns, |run| run.queued_ns),
            Self::Note(event) => event.time_ns,
        }
    }

    /// Calls before their requests, where times are equal.
    fn rank(&self) -> u8 {
        match self {
            Self::Sync(_) => 0,
            Self::Note(_) => 1,
            Self::Request(_) => 2,
        }
    }
}

/// A transaction with everything that happened in it.
#[derive(Debug, Clone, PartialEq)]
pub struct TransactionSteps {
    /// The commit, checkpoint or call to which the steps belong.
    pub owner: StepsOwner,
    /// What happened, in order of time.
    pub steps: Vec<TransactionStep>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum StepsKey {
    Transaction(TransactionId),
    Sync(SyncId),
}

/// Collects transactions: those after the first `skip`, `count` of them.
#[derive(Debug, Default)]
pub struct StepsOfTransactions {
    open: HashMap<StepsKey, Vec<TransactionStep>>,
    everybodys: KeptTransactions,
    /// The process of the command that was traced, and its transactions: they are shown where it has any.
    of_command: Option<(u32, KeptTransactions)>,
    wanted: Wanted,
}

/// Transactions that are kept, and how many more are wanted.
#[derive(Debug, Default, Clone)]
struct KeptTransactions {
    kept: Vec<TransactionSteps>,
    skip: usize,
    count: usize,
    /// There was one, skipped or not.
    any: bool,
}

impl KeptTransactions {
    fn is_full(&self) -> bool {
        self.kept.len() >= self.count
    }

    fn push(&mut self, transaction: &TransactionSteps) {
        self.any = true;
        if self.skip > 0 {
            self.skip -= 1;
        } else if !self.is_full() {
            self.kept.push(transaction.clone());
        }
    }
}

impl StepsOfTransactions {
    /// A collector of `count` transactions behind the first `skip`.
    pub fn new(skip: usize, count: usize) -> Self {
        Self {
            everybodys: KeptTransactions { skip, count, ..KeptTransactions::default() },
            ..Self::default()
        }
    }

    /// Only those of these processes.
    #[must_use]
    pub fn of(self, wanted: Wanted) -> Self {
        Self { wanted, ..self }
    }

    /// A process made another.
    pub fn forked(&mut self, parent: u32, child: u32) {
        self.wanted.forked(parent, child);
    }

    /// Those of this process, if it has any; else everybody's. Said before the first outcome.
    #[must_use]
    pub fn of_command_first(self, process: Option<u32>) -> Self {
        Self { of_command: process.map(|process| (process, self.everybodys.clone())), ..self }
    }

    /// True when no more are wanted.
    pub fn is_full(&self) -> bool {
        self.of_command.as_ref().map_or(&self.everybodys, |(_, of_command)| of_command).is_full()
    }

    /// Something is complete.
    pub fn outcome(&mut self, outcome: &Outcome<'_>) {
        if self.is_full() {
            return;
        }
        match outcome {
            Outcome::Request(request) => {
                let owner = request.runs.iter().find_map(|run| {
                    run.transaction.map(StepsKey::Transaction).or(run.cause.map(StepsKey::Sync))
                });
                if let Some(key) = owner {
                    self.open.entry(key).or_default().push(TransactionStep::Request((*request).clone()));
                }
            }
            Outcome::Sync(sync) => match sync.transaction {
                Some(transaction) => self
                    .open
                    .entry(StepsKey::Transaction(transaction))
                    .or_default()
                    .push(TransactionStep::Sync((*sync).clone())),
                None => self.close(StepsKey::Sync(sync.id), StepsOwner::Sync((*sync).clone())),
            },
            Outcome::Transaction(transaction) => self.close(
                StepsKey::Transaction(transaction.id),
                StepsOwner::Transaction((*transaction).clone()),
            ),
            Outcome::Note(event, Some(transaction))
                if matches!(event.kind, EventKind::Unlinked | EventKind::Truncated) =>
            {
                let steps = self.open.entry(StepsKey::Transaction(*transaction)).or_default();
                // A file that has lost its last name gives up its blocks: with tracefs that looks like a truncate.
                let is_gone = steps.iter().any(|step| {
                    matches!(step, TransactionStep::Note(before) if before.file == event.file
                        && before.kind == EventKind::Unlinked && before.detail == 0)
                });
                if event.kind == EventKind::Unlinked || !is_gone {
                    steps.push(TransactionStep::Note(**event));
                }
            }
            Outcome::Note(..) => {}
        }
    }

    fn close(&mut self, key: StepsKey, owner: StepsOwner) {
        let mut steps = self.open.remove(&key).unwrap_or_default();
        let process = match &owner {
            StepsOwner::Transaction(transaction) => transaction.process,
            StepsOwner::Sync(sync) => sync.process,
        };
        // What was rolled back leaves a deleted journal alone, and that only where the capture sees it.
        let is_bare = steps.iter().all(|step| matches!(step, TransactionStep::Note(_)));
        if is_bare || !self.wanted.includes(process) {
            return;
        }
        steps.sort_by_key(|step| (step.time_ns(), step.rank()));
        let transaction = TransactionSteps { owner, steps };
        self.everybodys.push(&transaction);
        if let Some((_, of_command)) = self.of_command.as_mut().filter(|(command, _)| *command == process) {
            of_command.push(&transaction);
        }
    }

    /// The transactions, in the order in which they ended.
    pub fn finish(self) -> Vec<TransactionSteps> {
        match self.of_command {
            Some((_, of_command)) if of_command.any => of_command.kept,
            _ => self.everybodys.kept,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::filesystem::class::Class;
    use crate::trace::attribution::request::{BlockRun, TransactionKind};
    use crate::trace::event::FileKey;
    use crate::trace::texts::Text;

    use super::*;

    fn commit(id: TransactionId) -> Transaction {
        Transaction {
            id,
            kind: TransactionKind::Commit,
            file: FileKey::NONE,
            name: Text::NONE,
            thread: 1,
            process: 1,
            command: Text::NONE,
            begun_ns: 0,
            ended_ns: Some(9),
            until_close: false,
            syncs: 0,
            bytes: [0; Class::ALL.len()],
            journal_of_journal_bytes: 0,
            writes: 0,
            flushes: 0,
        }
    }

    /// One that was rolled back only deletes its journal.
    #[test]
    fn a_transaction_without_a_call_or_request_is_not_shown_and_not_counted() {
        let unlinked = Event { kind: EventKind::Unlinked, ..Event::default() };
        let mut steps = StepsOfTransactions::new(1, 9);
        for number in 0..6 {
            let id = TransactionId(number);
            steps.outcome(&Outcome::Note(&unlinked, Some(id)));
            if number % 2 == 1 {
                let run = BlockRun { transaction: Some(id), ..BlockRun::default() };
                steps.outcome(&Outcome::Request(&Request { runs: vec![run], ..Request::default() }));
            }
            steps.outcome(&Outcome::Transaction(&commit(id)));
        }
        let told: Vec<_> = steps.finish().into_iter().map(|one| (one.owner, one.steps.len())).collect();
        let after_the_first = [3, 5].map(|id| (StepsOwner::Transaction(commit(TransactionId(id))), 2));
        assert_eq!(told, after_the_first);
    }

    #[test]
    fn what_a_file_without_a_name_gives_up_is_no_truncate() {
        let note = |kind, inode, detail| Event {
            kind,
            file: FileKey { inode, ..FileKey::NONE },
            detail,
            ..Event::default()
        };
        let unlinked = |inode, left| note(EventKind::Unlinked, inode, left);
        let mut steps = StepsOfTransactions::new(0, 1);
        let transaction = TransactionId(3);
        for event in [
            note(EventKind::Truncated, 7, 0),
            unlinked(7, 0),
            note(EventKind::Truncated, 7, 0),
            unlinked(8, 1),
            note(EventKind::Truncated, 8, 0),
        ] {
            steps.outcome(&Outcome::Note(&event, Some(transaction)));
        }
        let steps = &steps.open[&StepsKey::Transaction(transaction)];
        let notes = steps.iter().filter_map(|step| match step {
            TransactionStep::Note(event) => Some((event.kind, event.file.inode)),
            _ => None,
        });
        use EventKind::{Truncated, Unlinked};
        assert_eq!(notes.collect::<Vec<_>>(), [(Truncated, 7), (Unlinked, 7), (Unlinked, 8), (Truncated, 8)]);
    }
}
