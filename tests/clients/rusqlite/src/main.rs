//! rusqlite with its bundled SQLite as a client of waldio (the protocol is in ../../driver.py).

use std::env;
use std::error::Error;
use std::io::Write;

use rusqlite::{Connection, LoadExtensionGuard};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [verb, file, library] = &arguments[..] else { return Err("want: VERB DATABASE LIBRARY".into()) };
    if !library.is_empty() {
        load(library)?;
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
    println!("waldio {}", if library.is_empty() { 0 } else { number("SELECT count(*) FROM waldio_status WHERE name = 'this_connection' AND value LIKE 'active:%'")? });
    connection.close().map_err(|(_, error)| error)?;
    Ok(())
}

/// Loads the extension in a connection of its own: the ones opened after it have it as their VFS.
fn load(library: &str) -> rusqlite::Result<()> {
    let connection = Connection::open_in_memory()?;
    // SAFETY: nobody else uses this connection while extensions are allowed in it.
    let _guard = unsafe { LoadExtensionGuard::new(&connection)? };
    // SAFETY: the library is the one that this test was given to load; its entry point is SQLite's.
    unsafe { connection.load_extension(library, None::<&str>) }
}
