//! The SQL of the transactions. Arithmetic only: nothing here runs it.
//!
//! Source: Mobibench 1.0.8 (ESOS-Lab/Mobibench, shell/mobibench.c, `thread_main_db`). What differs, on purpose: an update never writes
//! what is there, because SQLite then writes nothing at all, and finds a row each time.

use std::fmt::Write;

use joj_analysis::mobibench::setup::{DatabaseOperation, DatabaseWork};

use crate::bench::worker::order::Generator;

/// Length of every value, in bytes.
const VALUE_BYTES: usize = 100;

/// Rows that a table has at least before updates and deletes.
const ROWS_MIN: u64 = 296;

/// The name of a table.
pub fn table(number: u32) -> String {
    format!("tblMyList{number}")
}

/// Makes the tables that are missing, in one transaction.
pub fn create_tables(tables: u32) -> String {
    let columns = "(id INTEGER PRIMARY KEY, Value TEXT not null, creation_date long)";
    let one = |number| format!("CREATE TABLE IF NOT EXISTS {} {columns};", table(number));
    format!("BEGIN;{}COMMIT;", (0..tables).map(one).collect::<String>())
}

/// Ten letters, each ten times, from the letter with this place in the alphabet on: a to j, then from a again.
fn letters(first: u8) -> String {
    let letter = |place: u8| char::from(b'a' + (first + place) % 10);
    (0..10).flat_map(|place| std::iter::repeat_n(letter(place), 10)).collect()
}

/// The value of a row that is new.
pub fn inserted_value() -> String {
    letters(0)
}

/// What an update writes: a number that no other run had, the transaction's number, and Mobibench's letters.
pub fn updated_value(stamp: u64, transaction: u64) -> String {
    let unique = format!("{}{transaction:010}", stamped(stamp));
    format!("{unique}{}", &letters(5)[unique.len().min(VALUE_BYTES)..])
}

/// How the values of a run begin.
pub fn stamped(stamp: u64) -> String {
    format!("{stamp:020}")
}

/// How many rows each table of a database has before the clock starts; `found` are those of the table that has most.
pub fn rows_before(work: &DatabaseWork, found: u64) -> u64 {
    match work.operation {
        DatabaseOperation::Insert => 0,
        DatabaseOperation::Update | DatabaseOperation::Delete => found.max(work.transactions).max(ROWS_MIN),
    }
}

/// The transactions of a thread.
#[derive(Debug)]
pub struct Statements<'a> {
    work: &'a DatabaseWork,
    stamp: u64,
    /// Rows of each table, by database.
    rows: Vec<u64>,
    /// The id of each transaction, by database; empty for updates, which draw one for each table.
    ids: Vec<Vec<u64>>,
    draws: Generator,
    /// Ids that were updated, by database and table.
    updated: Vec<Vec<u64>>,
}

impl<'a> Statements<'a> {
    /// Of the thread with this number. `rows` are those of each table before, by database; `stamp` is one that no other run has.
    pub fn new(work: &'a DatabaseWork, thread: u32, rows: Vec<u64>, stamp: u64) -> Statements<'a> {
        let count = work.transactions;
        let ids = |(rows, database): (&u64, u32)| match work.operation {
            DatabaseOperation::Insert if work.random_ids => {
                Generator::new(thread, database).sample(count, count)
            }
            DatabaseOperation::Insert => (0..count).collect(),
            DatabaseOperation::Update => Vec::new(),
            DatabaseOperation::Delete => Generator::new(thread, database).sample(count, *rows),
        };
        Statements {
            ids: rows.iter().zip(0..).map(ids).collect(),
            draws: Generator::new(thread, u32::MAX),
            updated: vec![Vec::new(); work.tables as usize * rows.len()],
            work,
            stamp,
            rows,
        }
    }

    /// The text of a transaction; each is asked for once, in order.
    pub fn transaction(&mut self, number: u64) -> String {
        let mut text = "BEGIN;".to_owned();
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        for database in 0..self.rows.len() {
            let schema = if database == 0 { String::new() } else { format!("db{database}.") };
            for table_number in 0..self.work.tables {
                let name = format!("{schema}{}", table(table_number));
                let id = self.ids[database].get(at).copied();
                let _ = match (self.work.operation, id) {
                    (DatabaseOperation::Insert, Some(id)) => {
                        write!(text, "INSERT INTO {name}(id,Value) VALUES({id},'{}');", inserted_value())
                    }
                    (DatabaseOperation::Delete, Some(id)) => {
                        write!(text, "DELETE FROM {name} WHERE id={id};")
                    }
                    (DatabaseOperation::Update, _) => {
                        let id = self.draws.draw(self.rows[database]);
                        self.updated[database * self.work.tables as usize + table_number as usize].push(id);
                        let value = updated_value(self.stamp, number);
                        write!(text, "UPDATE {name} SET Value = '{value}' WHERE id = {id};")
                    }
                    (DatabaseOperation::Insert | DatabaseOperation::Delete, None) => {
                        panic!("transaction {number} of {}", self.work.transactions)
                    }
                };
            }
        }
        text + "COMMIT;"
    }

    /// A question about a table, and the number that it has to give now that all transactions are done.
    pub fn expected(&self, database: usize, table_number: u32) -> (String, u64) {
        let table = table(table_number);
        let count = format!("SELECT count(*) FROM {table}");
        match self.work.operation {
            DatabaseOperation::Insert => (count, self.work.transactions),
            // Rows behind those may be another program's.
            DatabaseOperation::Delete => {
                let rows = self.rows[database];
                (format!("{count} WHERE id >= 0 AND id < {rows}"), rows - self.work.transactions)
            }
            DatabaseOperation::Update => {
                let mut ids =
                    self.updated[database * self.work.tables as usize + table_number as usize].clone();
                ids.sort_unstable();
                ids.dedup();
                (format!("{count} WHERE Value LIKE '{}%'", stamped(self.stamp)), ids.len() as u64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use joj_analysis::bench::key::JournalMode;

    use super::*;

    fn work(operation: DatabaseOperation) -> DatabaseWork {
        DatabaseWork {
            operation,
            transactions: 3,
            journal_mode: JournalMode::Wal,
            synchronous: 2,
            pause_ms: 0,
            tables: 2,
            databases: 2,
            random_ids: false,
        }
    }

    #[test]
    fn an_insert_is_the_text_of_mobibench() {
        let work = work(DatabaseOperation::Insert);
        let mut statements = Statements::new(&work, 0, vec![0, 0], 7);
        let value = "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggggggggghhhhhhhhhhiiiiiiiiiijjjjjjjjjj";
        let expected = format!(
            "BEGIN;INSERT INTO tblMyList0(id,Value) VALUES(0,'{value}');INSERT INTO tblMyList1(id,Value) VALUES(0,'{value}');\
             INSERT INTO db1.tblMyList0(id,Value) VALUES(0,'{value}');INSERT INTO db1.tblMyList1(id,Value) VALUES(0,'{value}');COMMIT;"
        );
        assert_eq!(statements.transaction(0), expected);
        assert_eq!(statements.expected(1, 1), ("SELECT count(*) FROM tblMyList1".to_owned(), 3));
    }

    #[test]
    fn random_ids_are_all_ids() {
        let work = DatabaseWork { transactions: 50, random_ids: true, ..work(DatabaseOperation::Insert) };
        let in_order: Vec<u64> = (0..50).collect();
        let mut statements = Statements::new(&work, 0, vec![0, 0], 7);
        assert!(statements.ids[0] != in_order && statements.ids[0] != statements.ids[1]);
        statements.ids.iter_mut().for_each(|ids| ids.sort_unstable());
        assert_eq!(statements.ids, [in_order.clone(), in_order]);
    }

    #[test]
    fn updates_never_write_a_value_twice() {
        let values = [(1, 1), (1, 2), (2, 1), (u64::MAX, 9_999_999)]
            .map(|(stamp, number)| updated_value(stamp, number));
        assert!(
            values.iter().all(|value| value.len() == VALUE_BYTES && *value != inserted_value()),
            "{values:?}"
        );
        assert!((1..4).all(|at| !values[..at].contains(&values[at])), "{values:?}");
        assert!(values[0].ends_with("aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee"));
    }

    #[test]
    fn deletes_have_all_their_rows() {
        let work = work(DatabaseOperation::Delete);
        assert_eq!([rows_before(&work, 0), rows_before(&work, 1_000)], [296, 1_000]);
        let mut statements = Statements::new(&work, 0, vec![3, 3], 7);
        let all: String = (0..3).map(|number| statements.transaction(number)).collect();
        for id in 0..3 {
            assert_eq!(all.matches(&format!(" WHERE id={id};")).count(), 4, "{all}");
        }
        assert_eq!(statements.expected(0, 0).1, 0);
    }
}
