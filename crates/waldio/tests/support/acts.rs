//! What one connection of several does in SQL.

use std::rc::Rc;

use blockio::simulated::fault::Fault;

use super::actor::Actor;
use super::history::{BASE_ROWS, Rows, put_sql, read_rows, rows_of};
use super::machine::Machine;
use super::sqlite::{Connection, SqlError};
use super::turns::{Act, Moment};
use super::workload::{PASSING_TXN, Synchronous};

/// How a program is run.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// Fails an operation of the disk, from the first turn on.
    pub fault: Option<Fault>,
    /// PRAGMA page_size of the base image.
    pub page_bytes: u32,
    /// What a reader saw must be there after a cut.
    pub durable_reads: bool,
}

impl Default for Terms {
    fn default() -> Self {
        Terms { fault: None, page_bytes: 4096, durable_reads: false }
    }
}

/// One connection, opened by its first act, and its thread's actor.
pub struct Performer<'machine> {
    machine: &'machine Machine,
    actor: Rc<Actor>,
    terms: Terms,
    connection: Option<Connection>,
}

impl<'machine> Performer<'machine> {
    /// A connection that is not open yet.
    pub fn new(machine: &'machine Machine, actor: Rc<Actor>, terms: Terms) -> Self {
        Performer { machine, actor, terms, connection: None }
    }

    /// Does it. BUSY means that it was not done.
    pub fn perform(&mut self, act: Act) -> Result<(), SqlError> {
        let outcome = match act {
            Act::Commit1 => self.commit(1, Synchronous::Full),
            Act::Commit3 => self.commit(3, Synchronous::Full),
            Act::Loose => self.loose(),
            Act::Spill => self.spill(true),
            Act::Rollback => self.spill(false),
            Act::Try => self.open().and_then(|connection| connection.exec("BEGIN IMMEDIATE; ROLLBACK;")),
            Act::Read => self.read(),
            Act::Passive => self.checkpoint("PASSIVE"),
            Act::Full => self.checkpoint("FULL"),
            Act::Restart => self.checkpoint("RESTART"),
            Act::Truncate => self.checkpoint("TRUNCATE"),
            Act::Reset => self.checkpoint("RESTART").and_then(|()| self.commit(3, Synchronous::Full)),
            Act::Reopen => {
                self.close();
                self.open().map(|_| ())
            }
            Act::Close => {
                self.close();
                Ok(())
            }
            Act::Switch => self.switch(),
            Act::Go => Ok(()),
        };
        self.look();
        outcome
    }

    fn open(&mut self) -> Result<&Connection, SqlError> {
        if self.connection.is_none() {
            let connection = self.machine.open()?;
            connection.exec("PRAGMA wal_autocheckpoint=0; PRAGMA journal_mode=WAL;")?;
            connection.exec(Synchronous::Full.pragma())?;
            // A connection that has read nothing checkpoints nothing.
            connection.exec("SELECT count(*) FROM t;")?;
            self.connection = Some(connection);
            self.actor.ledger().open += 1;
            // What a failed COMMIT has left in the log may come back with recovery.
            self.look();
        }
        Ok(self.connection.as_ref().expect("just opened"))
    }

    /// Closes the connection, if it is open.
    pub fn close(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        drop(connection);
        let newest = {
            let mut ledger = self.actor.ledger();
            ledger.open -= 1;
            let at = self.actor.disk().record_count();
            let is_last = ledger.open == 0;
            ledger.last_closes.extend(is_last.then_some(at));
            is_last.then(|| ledger.history.newest())
        };
        if let (Some(newest), None) = (newest, self.terms.fault) {
            // The last close has checkpointed everything; it tells nobody when it could not.
            self.actor.disk().ack(newest);
        }
    }

    fn commit(&mut self, count: i64, synchronous: Synchronous) -> Result<(), SqlError> {
        self.transaction(|txn| rows_of(txn, count), false, synchronous)
    }

    fn loose(&mut self) -> Result<(), SqlError> {
        self.open()?.exec(Synchronous::Normal.pragma())?;
        let outcome = self.commit(1, Synchronous::Normal);
        self.open()?.exec(Synchronous::Full.pragma())?;
        outcome
    }

    fn spill(&mut self, commits: bool) -> Result<(), SqlError> {
        let ids = |_| (1..=BASE_ROWS + 4).collect();
        self.open()?.exec("PRAGMA cache_size=4")?;
        let outcome =
            if commits { self.transaction(ids, true, Synchronous::Full) } else { self.roll_back(ids) };
        self.open()?.exec("PRAGMA cache_size=-2000")?;
        outcome
    }

    fn puts(&self, txn: i64, ids: &[i64], twice: bool) -> String {
        let puts = |txn: i64| ids.iter().map(move |id| put_sql(*id, txn, self.terms.page_bytes));
        // Other values first: SQLite leaves a page alone that would not change.
        let passing: String = if twice { puts(txn + PASSING_TXN).collect() } else { String::new() };
        passing + &puts(txn).collect::<String>()
    }

    fn transaction(
        &mut self,
        ids_of: impl FnOnce(i64) -> Vec<i64>,
        twice: bool,
        synchronous: Synchronous,
    ) -> Result<(), SqlError> {
        self.open()?.exec("BEGIN IMMEDIATE")?;
        let (txn, ids) = self.actor.begin(ids_of);
        let puts = self.puts(txn, &ids, twice);
        let connection = self.open()?;
        let mut outcome = connection.exec(&puts);
        if outcome.is_ok() {
            self.actor.come_to(Moment::Held);
            outcome = self.open()?.exec("COMMIT");
        }
        if outcome.is_err() {
            // There is often no transaction left to roll back.
            let _ = self.open()?.exec("ROLLBACK");
        }
        self.actor.settle(outcome, synchronous == Synchronous::Full)
    }

    fn roll_back(&mut self, ids_of: impl FnOnce(i64) -> Vec<i64>) -> Result<(), SqlError> {
        self.open()?.exec("BEGIN IMMEDIATE")?;
        let (txn, ids) = self.actor.begin(ids_of);
        let puts = self.puts(txn, &ids, true);
        let outcome = self.open()?.exec(&puts);
        self.actor.come_to(Moment::Held);
        // SQLite may have rolled back already.
        let _ = self.open()?.exec("ROLLBACK");
        self.actor.forget();
        outcome
    }

    fn checkpoint(&mut self, mode: &str) -> Result<(), SqlError> {
        // Others may publish while it runs: these are not in it.
        let newest = self.actor.ledger().history.newest();
        let rows = self.open()?.query(&format!("PRAGMA wal_checkpoint({mode})"))?;
        let [busy, log, done] = [0, 1, 2].map(|column| rows[0][column].int());
        if busy == 0 && log == done {
            // Every frame is in the database, and that was synced; TRUNCATE reports 0 of 0 frames.
            self.actor.disk().ack(newest);
        }
        Ok(())
    }

    fn read(&mut self) -> Result<(), SqlError> {
        let before = self.actor.ledger().history.newest();
        self.open()?.exec("BEGIN")?;
        let page_bytes = self.terms.page_bytes;
        let rows = read_rows(self.open()?, page_bytes);
        if let Ok(rows) = &rows {
            self.judge(rows, before);
        }
        self.actor.come_to(Moment::Held);
        self.open()?.exec("COMMIT")?;
        rows.map(|_| ()).map_err(|message| SqlError { code: 10, message })
    }

    /// Where something may have failed, what a connection sees after each act.
    fn look(&self) {
        if self.terms.fault.is_none() {
            return;
        }
        let before = self.actor.ledger().history.newest();
        let Some(connection) = &self.connection else { return };
        // A fault may hit a read, too.
        if let Ok(rows) = read_rows(connection, self.terms.page_bytes) {
            self.judge(&rows, before);
        }
    }

    /// A reader sees the newest state, or what a failed COMMIT has left in the log once that was recovered.
    fn judge(&self, rows: &Rows, before: u64) {
        let mut ledger = self.actor.ledger();
        let newest = ledger.history.newest();
        if let Some(number) = ledger.history.find(rows).filter(|number| *number >= before) {
            if self.terms.durable_reads {
                self.actor.disk().ack(number);
            }
            return;
        }
        let there = ledger
            .failed
            .iter()
            .position(|failed| failed.after == newest && ledger.history.find_with(rows, failed).is_some());
        match there {
            Some(index) => {
                let failed = ledger.failed.remove(index);
                ledger.history.publish(failed.txn, &failed.ids);
                let number = ledger.history.newest();
                ledger.history.fail(number);
                let at = self.actor.disk().record_count();
                ledger.published.push(at);
            }
            // It was taken back.
            None if ledger.history.take_back(rows) => {
                let at = self.actor.disk().record_count();
                ledger.published.push(at);
            }
            None => {
                let expected = ledger.history.rows().clone();
                ledger.wrong.push(format!("a reader saw {rows:?} instead of {expected:?}"));
            }
        }
    }

    fn switch(&mut self) -> Result<(), SqlError> {
        let connection = self.open()?;
        // As in the workloads of one connection.
        connection.exec("SELECT count(*) FROM t;")?;
        let to = connection.query("PRAGMA journal_mode=DELETE")?;
        if to[0][0].text() != "delete" {
            return Err(SqlError { code: 5, message: format!("journal_mode stays {}", to[0][0].text()) });
        }
        connection.exec("BEGIN IMMEDIATE")?;
        let (txn, ids) = self.actor.begin(|txn| rows_of(txn, 2));
        let puts = self.puts(txn, &ids, false);
        let outcome = self.open()?.exec(&format!("{puts} COMMIT;"));
        if outcome.is_ok() {
            self.actor.publish();
        }
        // Never acknowledged: without synchronous=EXTRA the removal of the journal is not synced, and may be undone.
        self.actor.settle(outcome, false)?;
        self.open()?.exec("PRAGMA journal_mode=WAL; SELECT count(*) FROM t;")
    }
}
