//! What writers had acknowledged when they were gone, compared with the rows that are there.

use std::path::Path;
use std::time::Duration;

use super::sqlite::{Connection, system};

/// The table that holds the rows; each writer numbers its own from 1.
pub const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS rows(writer TEXT, seq INTEGER, content BLOB, PRIMARY KEY(writer, seq)) WITHOUT ROWID";

/// Loads waldio and makes the database. Its writers may be killed before one of them had made the table.
pub fn prepare(database: &Path) -> Connection {
    system().load(None).unwrap();
    let db = system().open(database);
    db.rows(&format!("PRAGMA journal_mode=WAL; {SCHEMA}"));
    db
}

/// How long writers are killed.
pub fn soak_time() -> Duration {
    let seconds = std::env::var("JOJ_SOAK_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(seconds.unwrap_or(10))
}

/// One writer that is gone.
#[derive(Debug, Clone)]
pub struct Gone {
    /// Its name, which no other had.
    pub name: String,
    /// The newest row whose COMMIT returned to it.
    pub acknowledged: u64,
}

/// Each has all it acknowledged, and at most the one transaction more that it was in.
pub fn check(database: &Path, gone: &[Gone], seed: u64, with_waldio: bool) {
    let open = if with_waldio { system().open(database) } else { system().open_stock(database) };
    assert_eq!(open.one("PRAGMA integrity_check"), "ok", "seed {seed}");
    let rows = open.rows("SELECT writer, count(*), max(seq) FROM rows GROUP BY writer ORDER BY writer");
    let found = |name: &str| rows.iter().find(|row| row[0] == name);
    for Gone { name, acknowledged } in gone {
        let (count, newest): (u64, u64) =
            found(name).map_or((0, 0), |row| (row[1].parse().unwrap(), row[2].parse().unwrap()));
        assert_eq!(count, newest, "{name} has gaps (seed {seed})");
        assert!(
            (*acknowledged..=acknowledged + 1).contains(&newest),
            "{name} acknowledged {acknowledged} and has {newest} (seed {seed})"
        );
    }
}
