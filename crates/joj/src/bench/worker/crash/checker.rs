//! Looks at a database behind a power cut: what is there, whether it may be so, and whether it can be written on.
//!
//!   copy: stock SQLite | in place, with the mode's own: read, judge, commit a row, close, read that row again

use std::fs;
use std::path::Path;

use joj_analysis::lab::crash::{CrashVerdict, Promise, Seen};
use joj_analysis::lab::crash_script::text_of;
use serde::{Deserialize, Serialize};

use crate::bench::worker::crash::writer::{CrashDatabase, open};
use crate::bench::worker::libraries::{Libraries, load};
use crate::bench::worker::task::{Refusal, Reply, Task};
use crate::machine::sqlite::connection::{Connection, SqliteError};
use crate::machine::sqlite::sqlite_api::Api;

/// A row that no transaction writes.
const NEW_ROW: u64 = 1 << 40;

/// Look at a database behind a power cut.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CrashCheckTask {
    /// The database.
    pub database: CrashDatabase,
    /// What it must have.
    pub promise: Promise,
    /// An empty directory, to look at a copy there first, with nothing loaded into SQLite.
    pub copy: Option<String>,
}

/// What a database behind a power cut has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrashChecked {
    /// By the mode itself.
    pub verdict: CrashVerdict,
    /// By stock SQLite, of a copy.
    pub stock: Option<CrashVerdict>,
}

impl Task for CrashCheckTask {
    const NAME: &'static str = "crash check";
    type Answer = CrashChecked;
    fn run(&self) -> Reply<Self> {
        run(self, load)
    }
}

/// `load` makes SQLite ready. What is wrong with the database is no error, but the answer's.
fn run(task: &CrashCheckTask, load: fn(&Libraries) -> Result<Api, Refusal>) -> Result<CrashChecked, Refusal> {
    let database = &task.database;
    // Before the extension is there: it makes itself the default of all connections to come.
    let stock = match &task.copy {
        None => None,
        Some(directory) => {
            let api = load(&Libraries { sqlite: database.libraries.sqlite.clone(), ..Libraries::default() })?;
            let looked = |copy| looked_at(&api, &copy, task.promise, false);
            let unread = |error| CrashVerdict::Corrupt(format!("cannot copy the database: {error}"));
            Some(copied(database, Path::new(directory)).map_or_else(unread, looked))
        }
    };
    let api = load(&database.libraries)?;
    let verdict = looked_at(&api, database, task.promise, true);
    Ok(CrashChecked { verdict, stock })
}

/// The files that a power cut leaves; the index in shared memory is made anew in any case.
fn copied(database: &CrashDatabase, directory: &Path) -> std::io::Result<CrashDatabase> {
    let to = directory.join("copy.db");
    for end in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{end}", to.display()));
    }
    for end in ["", "-wal"] {
        match fs::copy(format!("{}{end}", database.file), format!("{}{end}", to.display())) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    let file = to.to_string_lossy().into_owned();
    Ok(CrashDatabase { file, waldio_options: Vec::new(), ..database.clone() })
}

/// The verdict on `database`; `written_on`: a new row has to stay there, too.
fn looked_at(api: &Api, database: &CrashDatabase, promise: Promise, written_on: bool) -> CrashVerdict {
    let looked = open(api, database).and_then(|connection| Ok((see(&connection)?, connection)));
    let (seen, connection) = match looked {
        Ok(looked) => looked,
        Err(error) => return CrashVerdict::Corrupt(error.to_string()),
    };
    let verdict = CrashVerdict::of(&seen, promise);
    if written_on && matches!(verdict, CrashVerdict::Sound(_) | CrashVerdict::Lost(_)) {
        // On the log as it was recovered: closing would begin another.
        match commit_another(api, database, connection) {
            Ok(()) => verdict,
            Err(error) => CrashVerdict::Unusable(error.to_string()),
        }
    } else {
        verdict
    }
}

fn see(connection: &Connection<'_>) -> Result<Seen, SqliteError> {
    let mut seen = Seen::default();
    {
        let mut rows = connection.prepare("SELECT id, number, content FROM t ORDER BY id")?;
        while rows.step()? {
            let number = |column| rows.column(column).parse::<u64>().unwrap_or(u64::MAX);
            let (row, number) = (number(0), number(1));
            if rows.column(2) != text_of(row, number) && seen.wrong_text.is_none() {
                seen.wrong_text = Some(row);
            }
            seen.rows.push((row, number));
        }
    }
    seen.integrity = connection.value("PRAGMA integrity_check")?;
    Ok(seen)
}

fn commit_another(
    api: &Api,
    database: &CrashDatabase,
    connection: Connection<'_>,
) -> Result<(), SqliteError> {
    connection.run(&format!("INSERT INTO t VALUES({NEW_ROW}, 0, 'behind the cut')"))?;
    connection.close()?;
    let connection = open(api, database)?;
    let found = connection.value(&format!("SELECT content FROM t WHERE id = {NEW_ROW}"))?;
    let integrity = connection.value("PRAGMA integrity_check")?;
    connection.close()?;
    if found == "behind the cut" && integrity == "ok" {
        return Ok(());
    }
    let message = format!("a new row was read back as {found:?}, integrity_check: {integrity}");
    Err(SqliteError { code: libsqlite3_sys::SQLITE_CORRUPT, message })
}

#[cfg(test)]
mod tests {
    use joj_analysis::bench::key::{JournalMode, Synchronous};

    use super::*;
    use crate::bench::worker::crash::writer::{self, CrashWriteTask};
    use crate::machine::files::work_dir::WorkDir;

    fn bundled(_: &Libraries) -> Result<Api, Refusal> {
        Ok(Api::bundled())
    }

    fn checked(file: &Path, promise: Promise) -> CrashChecked {
        let database = CrashDatabase {
            libraries: Libraries::default(),
            file: file.to_string_lossy().into_owned(),
            mode: JournalMode::Wal,
            synchronous: Synchronous::Full,
            waldio_options: Vec::new(),
        };
        if !file.exists() {
            let task = CrashWriteTask { database: database.clone(), commits: 30 };
            writer::run(&Api::bundled(), &task).unwrap();
        }
        let copy = file.parent().map(|directory| directory.to_string_lossy().into_owned());
        run(&CrashCheckTask { database, promise, copy }, bundled).unwrap()
    }

    #[test]
    fn what_the_writer_wrote_is_sound_and_what_it_did_not_is_lost() {
        let directory = WorkDir::create(&std::env::temp_dir()).unwrap();
        for (acknowledged, expected) in [(29, CrashVerdict::Sound(30)), (31, CrashVerdict::Lost(30))] {
            let file = directory.path().join(format!("{acknowledged}.db"));
            let promise = Promise { acknowledged, begun: acknowledged + 1 };
            let both = CrashChecked { verdict: expected.clone(), stock: Some(expected) };
            assert_eq!(checked(&file, promise), both);
        }
    }

    #[test]
    fn damage_is_found_by_both() {
        let directory = WorkDir::create(&std::env::temp_dir()).unwrap();
        let file = directory.path().join("damaged.db");
        let promise = Promise { acknowledged: 30, begun: 30 };
        checked(&file, promise);
        let mut bytes = fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle..middle + 512].fill(0x55);
        fs::write(&file, bytes).unwrap();
        let found = checked(&file, promise);
        assert!(matches!(found.verdict, CrashVerdict::Corrupt(_)), "{found:?}");
        assert!(matches!(found.stock, Some(CrashVerdict::Corrupt(_))), "{found:?}");
    }
}
