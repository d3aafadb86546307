//! A pool of sqlx with its bundled SQLite and waldio linked in (the protocol is in ../../driver.py).

use std::env;
use std::error::Error;
use std::io::Write;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{SqlitePool, query, query_scalar};

fn main() -> Result<(), Box<dyn Error>> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run())
}

async fn run() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [verb, file, library] = &arguments[..] else { return Err("want: VERB DATABASE LIBRARY".into()) };
    let mut options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full);
    if !library.is_empty() {
        waldio::register()?;
        // Without `register` opening is an error: no such vfs.
        options = options.vfs("waldio");
    }
    let pool = SqlitePoolOptions::new().max_connections(4).connect_with(options).await?;
    if verb == "insert" {
        insert(&pool).await?;
    }
    let number = async |sql: &'static str| query_scalar::<_, i64>(sql).fetch_one(&pool).await;
    println!("count {}", number("SELECT count(*) FROM t").await?);
    println!("max {}", number("SELECT max(n) FROM t").await?);
    println!("integrity {}", query_scalar::<_, String>("PRAGMA integrity_check").fetch_one(&pool).await?);
    let told: Option<String> = query_scalar("PRAGMA waldio").fetch_optional(&pool).await?;
    println!("waldio {}", u8::from(told.is_some_and(|told| told.starts_with("active:"))));
    pool.close().await;
    Ok(())
}

async fn insert(pool: &SqlitePool) -> Result<(), Box<dyn Error>> {
    query("CREATE TABLE IF NOT EXISTS t(n INTEGER PRIMARY KEY, value TEXT)").execute(pool).await?;
    loop {
        let done = query("INSERT INTO t(value) VALUES (hex(randomblob(50)))").execute(pool).await?;
        writeln!(std::io::stdout(), "ack {}", done.last_insert_rowid())?;
    }
}
