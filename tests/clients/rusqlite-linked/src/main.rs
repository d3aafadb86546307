//! rusqlite with its bundled SQLite and waldio linked in, which loads nothing (the protocol is in ../../driver.py).

use std::env;
use std::error::Error;
use std::io::Write;

use rusqlite::Connection;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [verb, file, library] = &arguments[..] else { return Err("want: VERB DATABASE LIBRARY".into()) };
    if !library.is_empty() {
        waldio::register()?;
    }
    let connection = Connection::open(file)?;
    if verb == "insert" {
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute("CREATE TABLE IF NOT EXISTS t(n INTEGER PRIMARY KEY, value TEXT)", [])?;
        loop {
            connection.execute("INSERT INTO t(value) VALUES (hex(randomblob(50)))", [])?;
            writeln!(std::io::stdout(), "ack {}", connection.last_insert_rowid())?;
        }
    }
    let number = |query: &str| connection.query_row(query, [], |row| row.get::<_, i64>(0));
    println!("count {}\nmax {}", number("SELECT count(*) FROM t")?, number("SELECT max(n) FROM t")?);
    let integrity: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    println!("integrity {integrity}");
    // No row where waldio was not registered: the pragma is unknown to SQLite.
    let told = connection.query_row("PRAGMA waldio", [], |row| row.get::<_, String>(0)).unwrap_or_default();
    println!("waldio {}", u8::from(told.starts_with("active:")));
    connection.close().map_err(|(_, error)| error)?;
    Ok(())
}
