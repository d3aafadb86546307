//! The logical states of the test database, in the order in which they were published.
//!
//! One table, one row per page. Each transaction has a number; it writes it into the rows that it changes, with a
//! payload that depends on row and number, so any mixture of two states is neither of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::sqlite::{Connection, SqlError};

/// Row id to the number of the transaction that wrote it last.
pub type Rows = BTreeMap<i64, i64>;

/// Rows of the base image.
pub const BASE_ROWS: i64 = 8;

/// Size of a payload that leaves room for one row on a page, in bytes.
pub fn payload_bytes(page_bytes: u32) -> u32 {
    page_bytes / 4 * 3
}

/// The statements that make the base database.
pub fn create_sql(page_bytes: u32) -> String {
    let mut sql = format!(
        "PRAGMA page_size={page_bytes}; PRAGMA journal_mode=WAL;
         CREATE TABLE t(id INTEGER PRIMARY KEY, txn INTEGER, payload TEXT);"
    );
    for id in 1..=BASE_ROWS {
        sql.push_str(&put_sql(id, 0, page_bytes));
    }
    sql
}

/// The statement that makes row `id` what transaction `txn` wants.
pub fn put_sql(id: i64, txn: i64, page_bytes: u32) -> String {
    let mut sql = String::new();
    let fill = payload_bytes(page_bytes);
    let letter = letter_of(id, txn);
    write!(
        sql,
        "INSERT INTO t VALUES({id},{txn},printf('%.{fill}c%d','{letter}',{id}*1000000+{txn}))
         ON CONFLICT(id) DO UPDATE SET txn=excluded.txn, payload=excluded.payload;"
    )
    .expect("a String takes everything");
    sql
}

fn letter_of(id: i64, txn: i64) -> char {
    let index = (id * 7 + txn).rem_euclid(26);
    char::from(b'a' + u8::try_from(index).expect("below 26"))
}

/// Reads the rows and checks each payload against its row and transaction.
pub fn read_rows(connection: &Connection, page_bytes: u32) -> Result<Rows, String> {
    let text = |error: SqlError| format!("reading the rows: {error}");
    let mut rows = Rows::new();
    for row in connection.query("SELECT id, txn, payload FROM t ORDER BY id").map_err(text)? {
        let (id, txn) = (row[0].int(), row[1].int());
        check_payload(id, txn, &row[2].text(), page_bytes)?;
        rows.insert(id, txn);
    }
    Ok(rows)
}

/// Row ids that transaction `txn` changes: always row 1, so that an old frame that comes back is seen, and others in
/// turn, so that states differ in several pages.
pub fn rows_of(txn: i64, count: i64) -> Vec<i64> {
    let turn = |index: i64| 2 + (txn + index * 3).rem_euclid(BASE_ROWS - 1);
    std::iter::once(1).chain((1..count).map(turn)).collect()
}

/// Checks one payload.
pub fn check_payload(id: i64, txn: i64, payload: &str, page_bytes: u32) -> Result<(), String> {
    let letter = letter_of(id, txn);
    let expected =
        format!("{}{}", letter.to_string().repeat(payload_bytes(page_bytes) as usize), id * 1_000_000 + txn);
    // Compared whole: this runs for every row of every crash state.
    if payload != expected {
        let filled = payload.bytes().position(|byte| char::from(byte) != letter).unwrap_or(payload.len());
        let rest = payload.get(filled..).unwrap_or_default();
        return Err(format!("row {id} of transaction {txn} has {filled} x {letter:?} and then {rest:?}"));
    }
    Ok(())
}

/// A transaction whose COMMIT returned an error: it may be there or not, but nothing was built on it.
#[derive(Debug, Clone)]
pub struct Failed {
    /// Its number.
    pub txn: i64,
    /// Its rows.
    pub ids: Vec<i64>,
    /// The newest state when it was tried.
    pub after: u64,
    /// What COMMIT said.
    pub error: SqlError,
}

/// All states published so far; state 0 is the base.
#[derive(Debug, Clone)]
pub struct History {
    states: Vec<Rows>,
    /// States of transactions that are there although their COMMIT returned an error.
    failed: BTreeSet<u64>,
    /// States of transactions whose COMMIT has not returned.
    pending: BTreeSet<u64>,
    /// Those of them that were taken back: their COMMIT must return an error.
    taken_back: BTreeSet<u64>,
}

impl Default for History {
    fn default() -> Self {
        History::new()
    }
}

impl History {
    /// The history that begins with the base image.
    pub fn new() -> History {
        History {
            states: vec![(1..=BASE_ROWS).map(|id| (id, 0)).collect()],
            failed: BTreeSet::new(),
            pending: BTreeSet::new(),
            taken_back: BTreeSet::new(),
        }
    }

    /// The number of the newest state.
    pub fn newest(&self) -> u64 {
        self.states.len() as u64 - 1
    }

    /// The rows of the newest state.
    pub fn rows(&self) -> &Rows {
        self.states.last().expect("never empty")
    }

    /// Whether no row is older than in this state.
    pub fn has_all_of(&self, number: u64, rows: &Rows) -> bool {
        let state = usize::try_from(number).ok().and_then(|number| self.states.get(number));
        state
            .is_some_and(|state| state.iter().all(|(id, txn)| rows.get(id).is_some_and(|found| found >= txn)))
    }

    /// Publishes a state in which transaction `txn` wrote `ids`.
    pub fn publish(&mut self, txn: i64, ids: &[i64]) {
        let mut rows = self.rows().clone();
        rows.extend(ids.iter().map(|id| (*id, txn)));
        self.publish_rows(rows);
    }

    /// COMMIT of the transaction that made the newest state has not returned.
    pub fn is_pending(&mut self) {
        self.pending.insert(self.newest());
    }

    /// COMMIT of the transaction that made this state returned OK: false where it was taken back.
    pub fn keep(&mut self, number: u64) -> bool {
        self.pending.remove(&number);
        !self.taken_back.contains(&number)
    }

    /// COMMIT of the transaction that made this state returned an error. It may be taken back.
    pub fn fail(&mut self, number: u64) {
        self.pending.remove(&number);
        self.failed.insert(number);
    }

    /// Publishes these rows, where they are what is left when transactions whose COMMIT returned an error, or has not returned, are
    /// taken back.
    pub fn take_back(&mut self, rows: &Rows) -> bool {
        let Some(left) = self.find(rows) else { return false };
        let gone = left + 1..=self.newest();
        if !gone.clone().all(|number| self.failed.contains(&number) || self.pending.contains(&number)) {
            return false;
        }
        self.taken_back.extend(gone);
        self.publish_rows(rows.clone());
        true
    }

    /// Publishes these rows.
    pub fn publish_rows(&mut self, rows: Rows) {
        self.states.push(rows);
    }

    /// The number of the newest state that has these rows.
    pub fn find(&self, rows: &Rows) -> Option<u64> {
        self.states.iter().rposition(|state| state == rows).map(|index| index as u64)
    }

    /// The number of the state that has these rows once transaction `failed`, whose COMMIT returned an error when
    /// that state was the newest, is added to it.
    pub fn find_with(&self, rows: &Rows, failed: &Failed) -> Option<u64> {
        let mut with = self.until(failed.after);
        with.publish(failed.txn, &failed.ids);
        (with.rows() == rows).then_some(failed.after)
    }

    /// Tells apart what recovery may find: the states from `oldest` on, of which `newest` is the last.
    pub fn fingerprint(&self, oldest: u64, newest: u64) -> u64 {
        let at = |number: u64| usize::try_from(number).expect("few states").min(self.states.len());
        let mut hasher = DefaultHasher::new();
        self.states[at(oldest)..at(newest + 1)].hash(&mut hasher);
        hasher.finish()
    }

    /// The history that ends with state `number`.
    pub fn until(&self, number: u64) -> History {
        let keep = usize::try_from(number).expect("few states") + 1;
        History { states: self.states[..keep].to_vec(), ..self.clone() }
    }
}
