//! Short sequences of what an application does to a database in WAL mode, and how one is run and recorded.

use std::collections::VecDeque;
use std::fmt;

use blockio::simulated::fault::Fault;
use blockio::simulated::image::Image;
use blockio::simulated::log::Record;
use blockio::simulated::replay::Replay;

use super::history::{BASE_ROWS, Failed, History, create_sql, put_sql, read_rows, rows_of};
use super::machine::Machine;
use super::sqlite::{Connection, SqlError, with_seed};

/// One thing that an application does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// A transaction that changes one page.
    Commit1,
    /// A transaction that changes three pages.
    Commit3,
    /// A transaction larger than the cache that changes its pages twice and grows the database.
    Spill,
    /// A transaction that spills and is rolled back.
    Rollback,
    /// Checkpoints.
    Passive,
    /// One with synchronous=OFF: nobody syncs what it copies. Not among `STEPS`: the generator has it.
    CopyUnsynced,
    /// FULL.
    Full,
    /// RESTART.
    Restart,
    /// TRUNCATE.
    Truncate,
    /// RESTART, then the first commit of the new generation, of three pages.
    Reset,
    /// Every connection is closed and one opened.
    Reopen,
    /// The connections of this process are closed and one opened, while the one that does not know waldio stays: the
    /// log is not recovered. Not among `STEPS`: without faults it shows nothing that `Second` does not.
    Rejoin,
    /// To journal_mode=DELETE, a commit there, and back to WAL.
    Switch,
    /// A transaction of one page by a second connection, which stays open.
    Second,
    /// The same by a connection that does not know waldio.
    Foreign,
    /// A connection that does not know waldio is refused, and stays open. Not among `STEPS`: only beside the `embedded`
    /// layout.
    Refused,
    /// A transaction of one page with synchronous=NORMAL, which nobody syncs.
    Loose,
    /// The same by the second connection.
    LooseSecond,
    /// The same by the connection that does not know waldio.
    LooseForeign,
    /// What `waldio_convert('main', 'embedded')` does. Not among `STEPS`: once is enough.
    Convert,
    /// `PRAGMA waldio_flush`. Not among `STEPS`: stock does not know it.
    FlushNow,
}

/// All of them but `Rejoin`.
pub const STEPS: [Step; 16] = [
    Step::LooseSecond,
    Step::Loose,
    Step::LooseForeign,
    Step::Foreign,
    Step::Commit1,
    Step::Commit3,
    Step::Spill,
    Step::Rollback,
    Step::Passive,
    Step::Full,
    Step::Restart,
    Step::Truncate,
    Step::Reset,
    Step::Reopen,
    Step::Switch,
    Step::Second,
];

/// PRAGMA synchronous.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Synchronous {
    /// Commits since the last checkpoint may go.
    Normal,
    /// A commit that returned is there.
    Full,
}

impl Synchronous {
    /// The statement that sets it.
    pub fn pragma(self) -> &'static str {
        match self {
            Synchronous::Normal => "PRAGMA synchronous=NORMAL",
            Synchronous::Full => "PRAGMA synchronous=FULL",
        }
    }
}

/// Added to the number of a transaction for values that it overwrites itself: nobody may ever see them.
pub const PASSING_TXN: i64 = 500_000;

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    /// In this order.
    pub steps: Vec<Step>,
    /// PRAGMA page_size.
    pub page_bytes: u32,
    /// PRAGMA synchronous.
    pub synchronous: Synchronous,
}

impl fmt::Display for Workload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?} page_size={} synchronous={:?}", self.steps, self.page_bytes, self.synchronous)
    }
}

/// What a run left behind.
pub struct Recording {
    /// Every operation, with acks.
    pub records: Vec<Record>,
    /// Stands before the first of them.
    pub start: Replay,
    /// What was published.
    pub history: History,
    /// For each state but the first, how many records there were when it was published; empty where nobody noted it.
    pub published: Vec<usize>,
    /// For each step what it returned.
    pub outcomes: Vec<Result<(), SqlError>>,
    /// Transactions whose COMMIT returned an error.
    pub failed: Vec<Failed>,
    /// What a connection saw that it may not see.
    pub wrong: Vec<String>,
    /// Every file as an application would read it at the end.
    pub end: Image,
}

/// An empty database in WAL mode, closed, all of it durable.
pub fn base_image(machine: &Machine, page_bytes: u32) -> Image {
    let _random = with_seed(1);
    machine.boot(&Image::default());
    let connection = machine.open().expect("an empty disk");
    if machine.side.is_embedded() {
        connection.reserve_bytes(waldio::log::embedded::RESERVED_BYTES);
    }
    connection.exec(&create_sql(page_bytes)).expect("an empty disk");
    connection.close();
    machine.disk.image()
}

struct Run<'machine> {
    machine: &'machine Machine,
    workload: &'machine Workload,
    first: Option<Connection>,
    second: Option<Connection>,
    foreign: Option<Connection>,
    history: History,
    txn: i64,
    failed: Vec<Failed>,
    wrong: Vec<String>,
    faulty: bool,
    /// Newest states that a cut may take, with how much of the log each wrote at least (`waldio_group`).
    outstanding: VecDeque<(u64, u64)>,
}

/// Runs `workload` on `base`, with `fault` from the first step on, and closes every connection.
pub fn record(machine: &Machine, base: &Image, workload: &Workload, fault: Option<Fault>) -> Recording {
    record_from(machine, base, workload, fault, History::new(), 7)
}

/// As [`record`], on a disk whose newest state `history` tells. `seed` must differ from that of the run which made
/// `base`: with the same salts a torn frame of that run would fit into the new log.
pub fn record_from(
    machine: &Machine,
    base: &Image,
    workload: &Workload,
    fault: Option<Fault>,
    history: History,
    seed: i32,
) -> Recording {
    let _random = with_seed(seed);
    machine.boot(base);
    machine.disk.set_fault(fault);
    let start = machine.disk.replay();
    // Numbers that no other run uses: equal rows of two runs would make two states one.
    let txn = i64::from(seed) * 1000;
    let mut run = Run {
        machine,
        workload,
        first: None,
        second: None,
        foreign: None,
        history,
        txn,
        failed: Vec::new(),
        wrong: Vec::new(),
        faulty: fault.is_some(),
        outstanding: VecDeque::new(),
    };
    let mut outcomes = Vec::new();
    for step in &workload.steps {
        machine.disk.mark(&format!("{step:?}"));
        outcomes.push(run.step(*step));
        run.look(*step);
    }
    machine.disk.mark("close");
    run.second = None;
    run.foreign = None;
    run.first = None;
    let end = machine.disk.image();
    let records = machine.disk.records();
    let Run { history, failed, wrong, .. } = run;
    Recording { records, start, history, published: Vec::new(), outcomes, failed, wrong, end }
}

impl Run<'_> {
    fn prepare(&self, connection: Result<Connection, SqlError>) -> Result<Connection, SqlError> {
        let connection = connection?;
        // A crash during a switch of modes may have left the database in DELETE mode, which promises less.
        connection.exec("PRAGMA wal_autocheckpoint=0; PRAGMA journal_mode=WAL;")?;
        connection.exec(self.workload.synchronous.pragma())?;
        // A connection that has read nothing checkpoints nothing.
        connection.exec("SELECT count(*) FROM t;")?;
        Ok(connection)
    }

    fn first(&mut self) -> Result<&Connection, SqlError> {
        if self.first.is_none() {
            self.first = Some(self.prepare(self.machine.open())?);
        }
        Ok(self.first.as_ref().expect("just opened"))
    }

    fn step(&mut self, step: Step) -> Result<(), SqlError> {
        self.first()?;
        match step {
            Step::Commit1 => self.commit(1),
            Step::Commit3 => self.commit(3),
            Step::Spill => self.spill(false),
            Step::Rollback => self.spill(true),
            Step::Passive => self.checkpoint("PASSIVE"),
            Step::CopyUnsynced => {
                let pragma = self.workload.synchronous.pragma();
                self.first()?.exec("PRAGMA synchronous=OFF")?;
                let copied = self.first()?.exec("PRAGMA wal_checkpoint(PASSIVE)");
                copied.and(self.first()?.exec(pragma))
            }
            Step::Full => self.checkpoint("FULL"),
            Step::Restart => self.checkpoint("RESTART"),
            Step::Truncate => self.checkpoint("TRUNCATE"),
            Step::Reset => {
                self.checkpoint("RESTART")?;
                self.commit(3)
            }
            Step::Reopen => self.reopen(),
            Step::Rejoin => {
                self.second = None;
                self.first = None;
                let ours = self.outstanding.back().filter(|_| !self.faulty);
                if let Some((state, _)) = ours {
                    // The process is done with the log, and nobody of it would flush later. What a process without waldio
                    // committed since is its own affair.
                    self.machine.disk.ack(*state);
                    self.outstanding.clear();
                }
                self.first().map(|_| ())
            }
            Step::Switch => self.switch(),
            Step::Second => self.second(false, self.workload.synchronous),
            Step::Foreign => self.second(true, self.workload.synchronous),
            Step::LooseSecond => self.second(false, Synchronous::Normal),
            Step::LooseForeign => self.second(true, Synchronous::Normal),
            Step::Convert => self.convert(),
            Step::Refused => self.refused(),
            Step::FlushNow => {
                self.first()?.exec("PRAGMA waldio_flush")?;
                self.promise_all();
                Ok(())
            }
            Step::Loose => {
                let ids = self.next_rows(1);
                let sql = self.transaction_sql(&ids, "COMMIT");
                self.first()?.exec(Synchronous::Normal.pragma())?;
                let outcome = self.first()?.exec(&sql);
                let pragma = self.workload.synchronous.pragma();
                let back = self.first()?.exec(pragma);
                let promises = self.promises(Synchronous::Normal, true);
                self.settle(ids, outcome, promises).and(back)
            }
        }
    }

    /// After a fault, finds out whether a transaction whose COMMIT failed is there all the same: then it is part of
    /// history, though nobody was promised it. The close takes it back.
    fn look(&mut self, step: Step) {
        let Some(connection) = self.first.as_ref().filter(|_| self.faulty) else { return };
        // Reading may fail as well.
        let Ok(rows) = read_rows(connection, self.workload.page_bytes) else { return };
        if rows == *self.history.rows() {
            return;
        }
        let newest = self.history.newest();
        let there =
            |failed: &Failed| failed.after == newest && self.history.find_with(&rows, failed).is_some();
        match self.failed.iter().position(there) {
            Some(index) => {
                let failed = self.failed.remove(index);
                self.history.publish(failed.txn, &failed.ids);
                self.history.fail(self.history.newest());
            }
            None if matches!(step, Step::Reopen | Step::Rejoin) && self.history.take_back(&rows) => {}
            None => self.wrong.push(format!("{rows:?} instead of {:?}", self.history.rows())),
        }
    }

    /// Whether a commit of a connection with waldio, or of another one, promises anything for a power cut.
    fn promises(&self, synchronous: Synchronous, with_waldio: bool) -> bool {
        synchronous == Synchronous::Full || with_waldio && self.machine.side.window().is_some()
    }

    /// The rows that the next transaction changes.
    fn next_rows(&mut self, count: i64) -> Vec<i64> {
        self.txn += 1;
        rows_of(self.txn, count)
    }

    fn commit(&mut self, count: i64) -> Result<(), SqlError> {
        let ids = self.next_rows(count);
        let sql = self.transaction_sql(&ids, "COMMIT");
        let outcome = self.first()?.exec(&sql);
        self.settle(ids, outcome, self.promises(self.workload.synchronous, true))
    }

    fn transaction_sql(&self, ids: &[i64], end: &str) -> String {
        let puts: String = ids.iter().map(|id| put_sql(*id, self.txn, self.workload.page_bytes)).collect();
        format!("BEGIN IMMEDIATE; {puts} {end};")
    }

    /// Publishes what was committed and acknowledges it where the mode promises that it is durable.
    fn settle(
        &mut self,
        ids: Vec<i64>,
        outcome: Result<(), SqlError>,
        durable: bool,
    ) -> Result<(), SqlError> {
        match outcome {
            Ok(()) => {
                self.history.publish(self.txn, &ids);
                match self.machine.side.window() {
                    Some(window) if durable => self.promise(window.bytes, ids.len() as u64),
                    _ if durable => self.machine.disk.ack(self.history.newest()),
                    _ => {}
                }
                Ok(())
            }
            Err(error) => {
                for connection in [&self.first, &self.second, &self.foreign].into_iter().flatten() {
                    // There is often no transaction left to roll back.
                    let _ = connection.exec("ROLLBACK");
                }
                let after = self.history.newest();
                self.failed.push(Failed { txn: self.txn, ids, after, error: error.clone() });
                Err(error)
            }
        }
    }

    /// A commit returned that wrote `pages` pages: what is outstanding is less than the window.
    fn promise(&mut self, window_bytes: u64, pages: u64) {
        // In the `embedded` layout the head of a frame stands in its page.
        let head_bytes = if self.machine.side.is_embedded() { 0 } else { 24 };
        let bytes = pages * (head_bytes + u64::from(self.workload.page_bytes));
        self.outstanding.push_back((self.history.newest(), bytes));
        while self.outstanding.iter().map(|(_, bytes)| bytes).sum::<u64>() >= window_bytes {
            let (state, _) = self.outstanding.pop_front().expect("it is not empty");
            self.machine.disk.ack(state);
        }
    }

    /// Everything that was committed is durable.
    fn promise_all(&mut self) {
        self.outstanding.clear();
        self.machine.disk.ack(self.history.newest());
    }

    fn spill(&mut self, rolled_back: bool) -> Result<(), SqlError> {
        self.txn += 1;
        let ids: Vec<i64> = (1..=BASE_ROWS + 4).collect();
        // Other values first: SQLite leaves a page alone that would not change.
        let passing: String =
            ids.iter().map(|id| put_sql(*id, self.txn + PASSING_TXN, self.workload.page_bytes)).collect();
        let last = self.transaction_sql(&ids, if rolled_back { "ROLLBACK" } else { "COMMIT" });
        let sql = last.replacen("BEGIN IMMEDIATE;", &format!("BEGIN IMMEDIATE; {passing}"), 1);
        let connection = self.first()?;
        connection.exec("PRAGMA cache_size=4")?;
        let outcome = connection.exec(&sql);
        connection.exec("PRAGMA cache_size=-2000")?;
        if rolled_back {
            return outcome;
        }
        self.settle(ids, outcome, self.promises(self.workload.synchronous, true))
    }

    fn checkpoint(&mut self, mode: &str) -> Result<(), SqlError> {
        let rows = self.first()?.query(&format!("PRAGMA wal_checkpoint({mode})"))?;
        let [busy, log, done] = [0, 1, 2].map(|column| rows[0][column].int());
        if busy == 0 && log == done {
            // Every frame is in the database, and that was synced; TRUNCATE reports 0 of 0 frames.
            self.promise_all();
        }
        Ok(())
    }

    fn reopen(&mut self) -> Result<(), SqlError> {
        self.second = None;
        self.foreign = None;
        self.first = None;
        if !self.faulty {
            // The last close has checkpointed everything; it tells nobody when it could not.
            self.promise_all();
        }
        self.first()?;
        Ok(())
    }

    /// No row changes.
    fn refused(&mut self) -> Result<(), SqlError> {
        let outsider = self.machine.open_foreign()?;
        let refused = outsider.exec("SELECT count(*) FROM t");
        assert_eq!(refused.map_err(|error| error.code & 0xff), Err(14), "it was not refused");
        self.foreign = Some(outsider);
        Ok(())
    }

    /// Makes room for the `embedded` layout; no row changes.
    fn convert(&mut self) -> Result<(), SqlError> {
        self.second = None;
        let own = self.machine.open()?;
        own.exec("SELECT count(*) FROM sqlite_master")?;
        own.reserve_bytes(waldio::log::embedded::RESERVED_BYTES);
        own.exec("VACUUM")
    }

    fn switch(&mut self) -> Result<(), SqlError> {
        self.second = None;
        self.foreign = None;
        // SQLite (3.40.1 and the bundled one) keeps the pages that it had cached before another connection's last
        // commits when it leaves WAL mode without having read since, and then builds on them: a lost update.
        self.first()?.exec("SELECT count(*) FROM t;")?;
        // NORMAL may corrupt a database in DELETE mode (a journal's checksum covers every 200th byte only).
        self.first()?.exec(Synchronous::Full.pragma())?;
        let to = self.first()?.query("PRAGMA journal_mode=DELETE")?;
        if to[0][0].text() != "delete" {
            return Err(SqlError { code: 5, message: format!("journal_mode stays {}", to[0][0].text()) });
        }
        let ids = self.next_rows(2);
        let sql = self.transaction_sql(&ids, "COMMIT");
        let outcome = self.first()?.exec(&sql);
        // Never acknowledged: without synchronous=EXTRA the removal of the journal is not synced, and may be undone.
        self.settle(ids, outcome, false)?;
        self.first()?.exec("PRAGMA journal_mode=WAL; SELECT count(*) FROM t;")?;
        let pragma = self.workload.synchronous.pragma();
        self.first()?.exec(pragma)
    }

    fn second(&mut self, foreign: bool, synchronous: Synchronous) -> Result<(), SqlError> {
        let place = if foreign { &self.foreign } else { &self.second };
        if place.is_none() {
            let opened =
                self.prepare(if foreign { self.machine.open_foreign() } else { self.machine.open() })?;
            *(if foreign { &mut self.foreign } else { &mut self.second }) = Some(opened);
        }
        let ids = self.next_rows(1);
        let sql = self.transaction_sql(&ids, "COMMIT");
        let connection = if foreign { &self.foreign } else { &self.second };
        let connection = connection.as_ref().expect("just opened");
        connection.exec(synchronous.pragma())?;
        let outcome = connection.exec(&sql);
        self.settle(ids, outcome, self.promises(synchronous, !foreign))
    }
}
