//! A database with one table in which each row fills a leaf page, so that an update of a row writes that page alone.

use std::fs::File;
use std::path::Path;

use joj_analysis::bench::key::JournalMode;
use joj_analysis::recording::page_transactions::plan::PlannedDatabase;

use crate::bench::worker::task::Refusal;
use crate::machine::sqlite::connection::{Connection, SqliteError};
use crate::machine::sqlite::sqlite_api::Api;

/// The longest record of a table leaf that has no overflow page is this much shorter than a page
/// (<https://www.sqlite.org/fileformat2.html>, "B-tree Cell Payload").
const PAGE_REST_BYTES: u32 = 35;
/// The record's header, at most.
const RECORD_HEADER_BYTES: u32 = 8;
/// Letters of the values.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// How a database is opened.
#[derive(Debug, Clone, Copy)]
pub struct DatabaseSettings<'a> {
    pub mode: JournalMode,
    /// `full`, `normal` or `off`.
    pub synchronous: &'a str,
    /// `PRAGMA cache_size`, where it is not SQLite's own.
    pub cache_size: Option<i64>,
}

/// Values of one length, no two alike.
#[derive(Debug)]
pub struct Values {
    state: u64,
    value: String,
}

impl Values {
    /// Values for rows of pages of this size; `seed` tells those of several threads apart.
    pub fn new(page_bytes: u32, seed: u64) -> Self {
        let bytes = page_bytes.saturating_sub(PAGE_REST_BYTES + RECORD_HEADER_BYTES) as usize;
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, value: "A".repeat(bytes) }
    }

    /// The next one.
    pub fn next(&mut self) -> &str {
        let mut bytes = std::mem::take(&mut self.value).into_bytes();
        for piece in bytes.chunks_mut(8) {
            // xorshift64: fast, and nothing here needs more.
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            for (byte, chance) in piece.iter_mut().zip(self.state.to_le_bytes()) {
                *byte = LETTERS[usize::from(chance & 63)];
            }
        }
        // Letters are ASCII.
        self.value = String::from_utf8(bytes).unwrap_or_default();
        &self.value
    }
}

/// The file of a database.
pub fn file_of(directory: &str, database: usize) -> String {
    format!("{directory}/{}.db", database + 1)
}

/// Makes a database and closes it: it is on the disk, and in the journal mode that is asked for. How many pages it has.
/// # Errors
/// What SQLite or the system said.
pub fn make(
    api: &Api,
    path: &str,
    database: &PlannedDatabase,
    settings: &DatabaseSettings<'_>,
) -> Result<u32, Refusal> {
    let connection = Connection::open(api, path)?;
    connection.run(&format!("PRAGMA page_size={}", database.page_bytes))?;
    connection.run("PRAGMA auto_vacuum=0")?;
    connection.run("PRAGMA synchronous=OFF")?;
    connection.value("PRAGMA journal_mode=MEMORY")?;
    connection.run("BEGIN")?;
    connection.run("CREATE TABLE p(id INTEGER PRIMARY KEY, b)")?;
    let mut insert = connection.prepare("INSERT INTO p(b) VALUES(?1)")?;
    let mut values = Values::new(database.page_bytes, u64::MAX);
    for _ in 0..database.rows {
        insert.bind_text(1, values.next())?;
        insert.run()?;
    }
    drop(insert);
    connection.run("COMMIT")?;
    let pages = connection.value("PRAGMA page_count")?.parse().unwrap_or(0);
    connection.close()?;
    // The mode is in the database's header from here on.
    let connection = Connection::open(api, path)?;
    configure(&connection, "main", settings)?;
    connection.close()?;
    let directory = Path::new(path).parent().unwrap_or(Path::new("."));
    for place in [Path::new(path), directory] {
        let synced = File::open(place).and_then(|file| file.sync_all());
        synced.map_err(|error| Refusal::of_write(place, &error))?;
    }
    Ok(pages)
}

/// Sets a database of a connection to what is asked for.
/// # Errors
/// What SQLite said; another journal mode than the wanted one is an error, too.
pub fn configure(
    connection: &Connection<'_>,
    schema: &str,
    settings: &DatabaseSettings<'_>,
) -> Result<(), SqliteError> {
    let value = settings.mode.pragma_value();
    let accepted = connection.value(&format!("PRAGMA {schema}.journal_mode={value}"))?;
    if accepted != value {
        let message = format!("PRAGMA {schema}.journal_mode={value} gave {accepted}");
        return Err(SqliteError { code: libsqlite3_sys::SQLITE_ERROR, message });
    }
    connection.run(&format!("PRAGMA {schema}.synchronous={}", settings.synchronous))?;
    if let Some(pages) = settings.cache_size {
        connection.run(&format!("PRAGMA {schema}.cache_size={pages}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_one_length_and_differ() {
        let mut values = Values::new(512, 1);
        let first = values.next().to_owned();
        let second = values.next().to_owned();
        assert_eq!((first.len(), second.len()), (512 - 43, 512 - 43));
        assert_ne!(first, second);
        assert_ne!(first, Values::new(512, 2).next());
    }
}
