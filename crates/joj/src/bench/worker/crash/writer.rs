//! The writer whose power is cut: commits the transactions of the script, and tells when each was acknowledged.

use std::time::Duration;

use joj_analysis::bench::key::{JournalMode, Synchronous, Word};
use joj_analysis::lab::crash_script::{ScriptStep, rows_of, steps, text_of};
use serde::{Deserialize, Serialize};

use crate::bench::worker::libraries::{Libraries, load};
use crate::bench::worker::task::{Refusal, Reply, Task};
use crate::machine::proc::clock::shared_ns;
use crate::machine::sqlite::connection::{Connection, SqliteError};
use crate::machine::sqlite::sqlite_api::Api;

/// Pages after which SQLite checkpoints by itself, inside a COMMIT: once in a while beside the script's own checkpoints.
const AUTOCHECKPOINT_PAGES: u32 = 30;
/// Longer than the time of waldio's delayed flush and two flushes of an emulated card.
const PAUSE: Duration = Duration::from_millis(40);
/// The script's checkpoints, in turn.
const CHECKPOINTS: [&str; 3] = ["RESTART", "PASSIVE", "TRUNCATE"];

/// The database of `joj lab crash`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CrashDatabase {
    /// What to load.
    pub libraries: Libraries,
    /// Its file.
    pub file: String,
    /// Journal mode, or waldio.
    pub mode: JournalMode,
    /// `PRAGMA synchronous`.
    pub synchronous: Synchronous,
    /// Options of waldio: names without `waldio_`, and values.
    pub waldio_options: Vec<(String, String)>,
}

/// Commit the transactions of `joj lab crash`, to be cut.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CrashWriteTask {
    /// Where; the file is not there yet.
    pub database: CrashDatabase,
    /// How many.
    pub commits: u64,
}

/// A step of the writer's, by the clock that all processes share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrashEvent {
    /// The transaction's number; none for a checkpoint, and for closing and opening.
    pub commit: Option<u64>,
    /// Before it.
    pub begin_ns: u64,
    /// Behind it: from here on a COMMIT is acknowledged.
    pub end_ns: u64,
}

/// What the writer did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrashWritten {
    /// The empty table was durable.
    pub ready_ns: u64,
    /// Its steps, in order.
    pub events: Vec<CrashEvent>,
}

impl Task for CrashWriteTask {
    const NAME: &'static str = "crash write";
    type Answer = CrashWritten;
    fn run(&self) -> Reply<Self> {
        run(&load(&self.database.libraries)?, self)
    }
}

/// Does `task` with the SQLite of `api`.
/// # Errors
/// What SQLite said; nothing of the answer is known then.
pub fn run(api: &Api, task: &CrashWriteTask) -> Result<CrashWritten, Refusal> {
    let mut connection = open(api, &task.database)?;
    connection.run("CREATE TABLE t(id INTEGER PRIMARY KEY, number INTEGER, content TEXT)")?;
    connection.run("CREATE INDEX t_number ON t(number)")?;
    check_layout(&connection, &task.database)?;
    // Whatever the mode made durable: from here on only the commits matter.
    rustix::fs::sync();
    let mut written = CrashWritten { ready_ns: shared_ns(), events: Vec::new() };
    let mut checkpoints = CHECKPOINTS.iter().cycle();
    for step in steps(task.commits) {
        let begin_ns = shared_ns();
        let commit = match step {
            ScriptStep::Commit(number) => {
                commit(&connection, number)?;
                Some(number)
            }
            ScriptStep::Checkpoint => {
                let kind = checkpoints.next().unwrap_or(&CHECKPOINTS[0]);
                connection.run(&format!("PRAGMA wal_checkpoint({kind})"))?;
                None
            }
            ScriptStep::Reopen => {
                connection.close()?;
                connection = open(api, &task.database)?;
                None
            }
            ScriptStep::Pause => {
                std::thread::sleep(PAUSE);
                continue;
            }
        };
        written.events.push(CrashEvent { commit, begin_ns, end_ns: shared_ns() });
    }
    connection.close()?;
    Ok(written)
}

/// A connection as an application has it.
/// # Errors
/// What SQLite said; another journal mode than WAL is an error too.
pub fn open<'api>(api: &'api Api, database: &CrashDatabase) -> Result<Connection<'api>, SqliteError> {
    let connection = Connection::open_with(api, &database.file, &database.waldio_options)?;
    let mode = database.mode.pragma_value();
    let accepted = connection.value(&format!("PRAGMA journal_mode={mode}"))?;
    if accepted != mode {
        let message = format!("PRAGMA journal_mode={mode} gave {accepted}");
        return Err(SqliteError { code: libsqlite3_sys::SQLITE_ERROR, message });
    }
    connection.run(&format!("PRAGMA synchronous={}", database.synchronous.word()))?;
    connection.run(&format!("PRAGMA wal_autocheckpoint={AUTOCHECKPOINT_PAGES}"))?;
    Ok(connection)
}

/// waldio falls back to SQLite's own layout where a database cannot have another, which would test something else.
fn check_layout(connection: &Connection<'_>, database: &CrashDatabase) -> Result<(), Refusal> {
    let Some((_, wanted)) = database.waldio_options.iter().find(|(name, _)| name == "layout") else {
        return Ok(());
    };
    let found = connection.value("SELECT value FROM waldio_status WHERE name='layout'")?;
    if found == *wanted {
        return Ok(());
    }
    let message = format!("the log should have the {wanted} layout, and has {found}");
    Err(Refusal { message, disk_full: false })
}

fn commit(connection: &Connection<'_>, number: u64) -> Result<(), SqliteError> {
    let rows = rows_of(number);
    let alone = rows.len() == 1;
    if !alone {
        connection.run("BEGIN IMMEDIATE")?;
    }
    let mut put = connection.prepare("INSERT OR REPLACE INTO t VALUES(?1, ?2, ?3)")?;
    for row in rows {
        put.bind_number(1, i64::try_from(row).unwrap_or(i64::MAX))?;
        put.bind_number(2, i64::try_from(number).unwrap_or(i64::MAX))?;
        put.bind_text(3, &text_of(row, number))?;
        put.run()?;
    }
    if alone { Ok(()) } else { connection.run("COMMIT") }
}
