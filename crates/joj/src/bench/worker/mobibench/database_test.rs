//! A thread's databases and its transactions: tables made, rows filled in where they have to be there, then one text of SQL after
//! another on the first database, with the others attached.

use std::fs;
use std::io;
use std::time::Duration;

use joj_analysis::mobibench::document::DatabaseFacts;
use joj_analysis::mobibench::setup::{DatabaseOperation, DatabaseWork};
use libsqlite3_sys::{SQLITE_CORRUPT, SQLITE_ERROR};

use crate::bench::worker::mobibench::progress::TestProgress;
use crate::bench::worker::mobibench::statements::{self, Statements};
use crate::bench::worker::mobibench::threads::ThreadTest;
use crate::bench::worker::task::Refusal;
use crate::machine::proc::clock::{calendar_ns, now_ns, pause};
use crate::machine::sqlite::connection::{Connection, SqliteError};
use crate::machine::sqlite::sqlite_api::Api;

/// The test of one thread.
#[derive(Debug)]
pub struct DatabaseTest<'a> {
    paths: Vec<String>,
    /// One of each database; the first has the others attached.
    connections: Vec<Connection<'a>>,
    work: &'a DatabaseWork,
    statements: Statements<'a>,
}

impl<'a> DatabaseTest<'a> {
    /// Makes the databases of a thread ready.
    /// # Errors
    /// What SQLite said, with the file.
    pub fn new(
        api: &'a Api,
        paths: &[String],
        work: &'a DatabaseWork,
        thread: u32,
        progress: &TestProgress,
    ) -> Result<Self, Refusal> {
        let (mut connections, mut rows) = (Vec::new(), Vec::new());
        for path in paths {
            let prepared = prepare(api, path, work, progress);
            let (connection, rows_of_table) = prepared.map_err(|error| refusal(path, error))?;
            connections.push(connection);
            rows.push(rows_of_table);
        }
        for (number, path) in paths.iter().enumerate().skip(1) {
            attach(&connections[0], number, path, work).map_err(|error| refusal(path, error))?;
        }
        let statements = Statements::new(work, thread, rows, calendar_ns());
        Ok(DatabaseTest { paths: paths.to_vec(), connections, work, statements })
    }

    /// What the databases say of themselves, to the connection that writes to them.
    /// # Errors
    /// What SQLite said.
    pub fn facts(&self) -> Result<Vec<DatabaseFacts>, Refusal> {
        let of_database = |(number, path): (usize, &String)| {
            let schema = if number == 0 { "main".to_owned() } else { format!("db{number}") };
            let ask = |what: &str| {
                let answer = self.connections[0].value(&format!("PRAGMA {schema}.{what}"));
                answer.map_err(|error| refusal(path, error))
            };
            Ok(DatabaseFacts {
                file: path.clone(),
                page_size: ask("page_size")?,
                journal_mode: ask("journal_mode")?,
                synchronous: ask("synchronous")?,
            })
        };
        self.paths.iter().enumerate().map(of_database).collect()
    }

    /// Each transaction was acknowledged, so it has to be there.
    fn verify(&self) -> Result<(), SqliteError> {
        for (database, connection) in self.connections.iter().enumerate() {
            for table in 0..self.work.tables {
                let (question, expected) = self.statements.expected(database, table);
                let found = connection.value(&question)?;
                if found != expected.to_string() {
                    let message = format!("{question} gives {found}, and it should give {expected}");
                    return Err(SqliteError { code: SQLITE_CORRUPT, message });
                }
            }
        }
        Ok(())
    }
}

impl ThreadTest for DatabaseTest<'_> {
    fn measure(&mut self, progress: &TestProgress) -> Result<Vec<u64>, Refusal> {
        progress.expect(self.work.transactions);
        let refuse = |error| refusal(&self.paths[0], error);
        let mut latencies_ns = Vec::new();
        for number in 0..self.work.transactions {
            let text = self.statements.transaction(number);
            let began_ns = now_ns();
            self.connections[0].run_all(&text).map_err(refuse)?;
            latencies_ns.push(now_ns() - began_ns);
            if self.work.pause_ms > 0 {
                pause(Duration::from_millis(self.work.pause_ms));
            }
            progress.advance(1)?;
        }
        if self.work.journal_mode.has_log() {
            checkpoint(&self.connections[0]).map_err(refuse)?;
        }
        Ok(latencies_ns)
    }

    fn finish(self) -> Result<(), Refusal> {
        self.verify().map_err(|error| refusal(&self.paths[0], error))?;
        for (connection, path) in self.connections.into_iter().zip(&self.paths) {
            connection.close().map_err(|error| refusal(path, error))?;
        }
        if self.work.operation == DatabaseOperation::Delete {
            self.paths.iter().try_for_each(|path| remove(path))?;
        }
        Ok(())
    }
}

/// Opens a database and makes its tables; how many rows each has.
fn prepare<'api>(
    api: &'api Api,
    path: &str,
    work: &DatabaseWork,
    progress: &TestProgress,
) -> Result<(Connection<'api>, u64), SqliteError> {
    let connection = Connection::open(api, path)?;
    connection.run("PRAGMA page_size = 4096")?;
    configure(&connection, "main", work)?;
    if work.operation == DatabaseOperation::Insert {
        for table in 0..work.tables {
            connection.run(&format!("DROP TABLE IF EXISTS {}", statements::table(table)))?;
        }
    }
    connection.run_all(&statements::create_tables(work.tables))?;
    let rows = fill(&connection, work, progress)?;
    Ok((connection, rows))
}

fn configure(connection: &Connection<'_>, schema: &str, work: &DatabaseWork) -> Result<(), SqliteError> {
    let mode = work.journal_mode.pragma_value();
    let accepted = connection.value(&format!("PRAGMA {schema}.journal_mode={mode}"))?;
    if accepted != mode {
        let message = format!("PRAGMA journal_mode={mode} gave {accepted}");
        return Err(SqliteError { code: SQLITE_ERROR, message });
    }
    connection.run(&format!("PRAGMA {schema}.synchronous={}", work.synchronous))
}

/// Gives updates and deletes the rows that they need; how many there are in each table.
fn fill(
    connection: &Connection<'_>,
    work: &DatabaseWork,
    progress: &TestProgress,
) -> Result<u64, SqliteError> {
    let mut found = 0;
    for table in 0..work.tables {
        let count = connection.value(&format!("SELECT count(*) FROM {}", statements::table(table)))?;
        found = count.parse().map_or(found, |count: u64| count.max(found));
    }
    let rows = statements::rows_before(work, found);
    progress.expect(rows * u64::from(work.tables));
    connection.run("BEGIN")?;
    for table in 0..work.tables {
        let sql = format!("INSERT OR IGNORE INTO {}(id,Value) VALUES(?1,?2)", statements::table(table));
        let mut insert = connection.prepare(&sql)?;
        insert.bind_text(2, &statements::inserted_value())?;
        for id in 0..rows {
            insert.bind_number(1, i64::try_from(id).unwrap_or(i64::MAX))?;
            insert.run()?;
            progress.count(1);
        }
    }
    connection.run("COMMIT")?;
    if rows > 0 && work.journal_mode.has_log() {
        // What filled the tables is none of the test's checkpoint.
        checkpoint(connection)?;
    }
    Ok(rows)
}

fn attach(
    connection: &Connection<'_>,
    number: usize,
    path: &str,
    work: &DatabaseWork,
) -> Result<(), SqliteError> {
    connection.run(&format!("ATTACH DATABASE '{}' AS 'db{number}'", path.replace('\'', "''")))?;
    configure(connection, &format!("db{number}"), work)
}

/// Of all its databases. One that is not complete is an error: no other program has these open.
fn checkpoint(connection: &Connection<'_>) -> Result<(), SqliteError> {
    let rows = connection.rows("PRAGMA wal_checkpoint", 3)?;
    match rows.first().map(Vec::as_slice) {
        Some([busy, frames, copied]) if busy == "0" && frames == copied => Ok(()),
        found => {
            let message =
                format!("the checkpoint copied not all of the log, somebody else reads it: {found:?}");
            Err(SqliteError { code: SQLITE_ERROR, message })
        }
    }
}

/// Removes a database, and the journal that PERSIST leaves.
fn remove(path: &str) -> Result<(), Refusal> {
    for file in [path.to_owned(), format!("{path}-journal")] {
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Refusal::new(format!("cannot remove {file}: {error}; remove it by hand")));
            }
            _ => {}
        }
    }
    Ok(())
}

fn refusal(path: &str, error: SqliteError) -> Refusal {
    let disk_full = error.code == libsqlite3_sys::SQLITE_FULL;
    let remedy =
        if disk_full { "; the disk or the quota is full: make room, or take a smaller -n" } else { "" };
    Refusal { message: format!("cannot use {path}: {error}{remedy}"), disk_full }
}
