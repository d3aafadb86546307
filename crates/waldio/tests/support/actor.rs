//! One connection on a thread of its own, which runs only while it has a turn: it stops at a moment inside a statement,
//! and what it publishes goes into the common ledger at the instant at which others can see it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use blockio::simulated::disk::SimDisk;
use libsqlite3_sys as ffi;

use super::history::{Failed, History};
use super::sqlite::SqlError;
use super::turns::{Act, Moment, letter};
use super::watch_vfs::{Event, Watcher};

/// What a connection is told.
#[derive(Debug, Clone, Copy)]
pub enum Command {
    /// Do this, and stop there.
    Do(Act, Option<Moment>),
    /// Go on, and stop there.
    Go(Option<Moment>),
    /// Close the connection.
    Close,
}

/// What it answers.
#[derive(Debug)]
pub enum Report {
    /// It stopped.
    Stopped(Moment),
    /// It did what it was told.
    Done(Result<(), SqlError>),
}

/// One transaction that came to its commit frame.
#[derive(Debug, Clone)]
pub struct Commit {
    /// Whose it is.
    pub who: usize,
    /// Its number.
    pub txn: i64,
    /// Whether the connection had `synchronous=FULL`.
    pub full: bool,
    /// How many records the disk had before its first frame, when its commit was published, and when COMMIT returned.
    pub frame_at: usize,
    /// See `frame_at`; none where it never was.
    pub published_at: Option<usize>,
    /// See `frame_at`.
    pub returned_at: usize,
    /// What COMMIT returned.
    pub outcome: Result<(), SqlError>,
}

/// What all connections share.
#[derive(Debug, Default)]
pub struct Ledger {
    /// In the order of publication.
    pub history: History,
    /// For each state but the first, how many records the disk had when it was published.
    pub published: Vec<usize>,
    /// The newest transaction's number.
    pub txn: i64,
    /// Transactions whose COMMIT returned an error, unpublished.
    pub failed: Vec<Failed>,
    /// Commits in the order in which COMMIT returned.
    pub commits: Vec<Commit>,
    /// What a connection saw that it may not see.
    pub wrong: Vec<String>,
    /// Connections that are open.
    pub open: usize,
    /// How many records the disk had each time that none was open any more.
    pub last_closes: Vec<usize>,
}

/// The ledger as threads share it.
pub type SharedLedger = Arc<Mutex<Ledger>>;

/// Waits for the ledger.
pub fn lock(ledger: &SharedLedger) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The transaction under way.
#[derive(Debug, Clone, Default)]
struct Writing {
    txn: i64,
    ids: Vec<i64>,
    frame_at: Option<usize>,
    commit_frame: bool,
    barrier: bool,
    /// Newest state when the write lock was taken.
    after: u64,
    state: Option<u64>,
    published_at: Option<usize>,
}

/// The thread's side of an actor.
pub struct Actor {
    who: usize,
    disk: SimDisk,
    ledger: SharedLedger,
    commands: Receiver<Command>,
    reports: Sender<Report>,
    until: Cell<Option<Moment>>,
    writing: RefCell<Writing>,
    checkpointing: Cell<bool>,
}

impl Actor {
    /// Connection number `who`.
    pub fn new(
        who: usize,
        disk: SimDisk,
        ledger: SharedLedger,
        commands: Receiver<Command>,
        reports: Sender<Report>,
    ) -> Rc<Actor> {
        Rc::new(Actor {
            who,
            disk,
            ledger,
            commands,
            reports,
            until: Cell::default(),
            writing: RefCell::default(),
            checkpointing: Cell::default(),
        })
    }

    /// The next thing to do; none at the end.
    pub fn next(&self) -> Option<Command> {
        let command = self.commands.recv().ok()?;
        if let Command::Do(_, until) | Command::Go(until) = command {
            self.until.set(until);
        }
        Some(command)
    }

    /// Says how it went.
    pub fn done(&self, outcome: Result<(), SqlError>) {
        // Nobody listens any more once a test failed.
        let _ = self.reports.send(Report::Done(outcome));
    }

    /// The point where the actor may have to stop.
    pub fn come_to(&self, moment: Moment) {
        if self.until.get() != Some(moment) {
            return;
        }
        self.until.set(None);
        let _ = self.reports.send(Report::Stopped(moment));
        if let Ok(Command::Go(until)) = self.commands.recv() {
            self.until.set(until);
        }
    }

    /// The disk of the computer.
    pub fn disk(&self) -> &SimDisk {
        &self.disk
    }

    /// The transaction under way was rolled back.
    pub fn forget(&self) {
        self.writing.take();
    }

    /// The common ledger.
    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        lock(&self.ledger)
    }

    /// A transaction begins; returns its number.
    pub fn begin(&self, ids_of: impl FnOnce(i64) -> Vec<i64>) -> (i64, Vec<i64>) {
        let mut ledger = self.ledger();
        ledger.txn += 1;
        let (txn, ids) = (ledger.txn, ids_of(ledger.txn));
        let after = ledger.history.newest();
        *self.writing.borrow_mut() = Writing { txn, ids: ids.clone(), after, ..Writing::default() };
        (txn, ids)
    }

    /// COMMIT returned: notes it, and acknowledges it where `full` promises that it is durable.
    pub fn settle(&self, outcome: Result<(), SqlError>, full: bool) -> Result<(), SqlError> {
        let Writing { txn, ids, frame_at, after, state, published_at, .. } = self.writing.take();
        let returned_at = self.disk.record_count();
        let mut ledger = self.ledger();
        if let (Ok(()), Some(number)) = (&outcome, state)
            && !ledger.history.keep(number)
        {
            ledger.wrong.push(format!("COMMIT of {txn} says OK, and it was taken back"));
        }
        match (&outcome, state) {
            (Ok(()), Some(number)) if full => self.disk.ack(number),
            (Ok(()), None) => ledger.wrong.push(format!("COMMIT of {txn} says OK and published nothing")),
            (Err(error), None) => {
                let error = error.clone();
                ledger.failed.push(Failed { txn, ids, after, error });
            }
            (Err(_), Some(number)) => ledger.history.fail(number),
            _ => {}
        }
        if let Some(frame_at) = frame_at {
            let (who, outcome) = (self.who, outcome.clone());
            ledger.commits.push(Commit { who, txn, full, frame_at, published_at, returned_at, outcome });
        }
        outcome
    }

    /// The transaction under way is there for everyone.
    pub fn publish(&self) {
        let mut writing = self.writing.borrow_mut();
        let mut ledger = self.ledger();
        ledger.history.publish(writing.txn, &writing.ids);
        ledger.history.is_pending();
        let at = self.disk.record_count();
        ledger.published.push(at);
        writing.published_at = Some(at);
        writing.state = Some(ledger.history.newest());
        self.disk.mark(&format!("{} publishes state {}", letter(self.who), ledger.history.newest()));
    }

    fn hear_of_lock(&self, event: Event) {
        match event {
            Event::WriteLocked => self.writing.borrow_mut().after = self.ledger().history.newest(),
            Event::WriteUnlock => {
                let is_published = {
                    let writing = self.writing.borrow();
                    writing.commit_frame && writing.barrier && writing.state.is_none()
                };
                if is_published {
                    self.publish();
                    self.come_to(Moment::Published);
                }
            }
            _ => {}
        }
    }

    fn hear_of_control(&self, event: Event) {
        let is_committed = || self.writing.borrow().state.is_some();
        match event {
            Event::Control(ffi::SQLITE_FCNTL_COMMIT_PHASETWO) if is_committed() => {
                self.come_to(Moment::PhaseTwo);
            }
            Event::Controlled(ffi::SQLITE_FCNTL_COMMIT_PHASETWO) if is_committed() => {
                self.come_to(Moment::Acked);
            }
            Event::Control(ffi::SQLITE_FCNTL_CKPT_START) => self.come_to(Moment::CheckpointStart),
            Event::Controlled(ffi::SQLITE_FCNTL_CKPT_START) => self.checkpointing.set(true),
            Event::Control(ffi::SQLITE_FCNTL_CKPT_DONE) => self.come_to(Moment::CheckpointCopied),
            _ => {}
        }
    }
}

impl Watcher for Actor {
    fn hear(&self, event: Event) {
        match event {
            Event::LogWrite { commit } => {
                let mut writing = self.writing.borrow_mut();
                writing.frame_at.get_or_insert_with(|| self.disk.record_count());
                writing.commit_frame |= commit;
            }
            Event::LogSynced if self.writing.borrow().commit_frame => self.come_to(Moment::Synced),
            Event::LogFlushed => self.come_to(Moment::Flushed),
            Event::Barrier => {
                let mut writing = self.writing.borrow_mut();
                writing.barrier |= writing.commit_frame;
            }
            Event::DatabaseWrite if self.checkpointing.take() => self.come_to(Moment::CheckpointCopy),
            Event::WriteLocked | Event::WriteUnlock | Event::WriteUnlocked => self.hear_of_lock(event),
            Event::Control(_) | Event::Controlled(_) => self.hear_of_control(event),
            Event::LogSynced | Event::DatabaseWrite | Event::DatabaseSynced => {}
            Event::Open(_) | Event::Unfetch | Event::WriteLock => {}
        }
    }
}
