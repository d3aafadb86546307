//! SQL that a seed decides: all that changes a log's life, in any order. Nothing in it depends on a clock or on chance of
//! SQLite's own, so that it gives the same on any VFS.

use super::chance::Chance;

/// What happens next on one of two connections.
#[derive(Debug, Clone)]
pub enum Step {
    /// A statement.
    Sql(String),
    /// The connection is closed and opened again.
    Reopen,
}

/// The next step.
pub fn step(chance: &mut Chance) -> Step {
    let sql = match chance.below(100) {
        0..=24 => insert(chance),
        25..=34 => update(chance),
        35..=40 => delete(chance),
        41..=58 => transaction(chance),
        59..=64 => schema(chance),
        65..=74 => look(chance),
        75..=82 => checkpoint(chance),
        83..=93 => setting(chance),
        94..=95 => "VACUUM".to_owned(),
        96 => journal_mode(chance),
        _ => return Step::Reopen,
    };
    Step::Sql(sql)
}

fn table(chance: &mut Chance) -> String {
    format!("t{}", chance.below(3))
}

fn key(chance: &mut Chance) -> u64 {
    chance.below(600)
}

fn insert(chance: &mut Chance) -> String {
    let (table, key, number) = (table(chance), key(chance), chance.below(100_000));
    match chance.below(10) {
        0..=5 => {
            format!("INSERT OR REPLACE INTO {table}(a, b, c) VALUES ({key}, {number}, 'short {number}')")
        }
        6 => format!("INSERT INTO {table}(a, b, c) VALUES ({key}, {number}, NULL)"),
        7 => {
            let bytes = chance.below(150_000);
            format!(
                "INSERT OR REPLACE INTO {table}(a, b, c) VALUES ({key}, {number}, zeroblob({bytes}) || x'{number:06}')"
            )
        }
        _ => {
            let (rows, bytes) = (chance.below(250), chance.below(900));
            format!(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <= {rows})
                 INSERT OR REPLACE INTO {table}(a, b, c)
                 SELECT {key} + i, i * {number} % 977, printf('%.*c', {bytes}, 'x') || i FROM n"
            )
        }
    }
}

fn update(chance: &mut Chance) -> String {
    let (table, key, number, span) = (table(chance), key(chance), chance.below(1000), chance.below(80));
    match chance.below(3) {
        0 => format!("UPDATE {table} SET b = b + {number} WHERE a BETWEEN {key} AND {key} + {span}"),
        1 => format!(
            "UPDATE {table} SET c = printf('%d %.*c', a, {number}, 'y') WHERE a BETWEEN {key} AND {key} + {span}"
        ),
        _ => format!("UPDATE OR IGNORE {table} SET a = a + {number} WHERE b % 7 = {}", number % 7),
    }
}

fn delete(chance: &mut Chance) -> String {
    let (table, key, span) = (table(chance), key(chance), chance.below(150));
    if chance.below(8) == 0 {
        return format!("DELETE FROM {table}");
    }
    format!("DELETE FROM {table} WHERE a BETWEEN {key} AND {key} + {span}")
}

fn transaction(chance: &mut Chance) -> String {
    let all = [
        "BEGIN",
        "BEGIN IMMEDIATE",
        "BEGIN EXCLUSIVE",
        "COMMIT",
        "COMMIT",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT s",
        "SAVEPOINT s",
        "SAVEPOINT r",
        "ROLLBACK TO s",
        "ROLLBACK TO r",
        "RELEASE s",
        "RELEASE r",
    ];
    (*chance.pick(&all)).to_owned()
}

fn schema(chance: &mut Chance) -> String {
    let table = table(chance);
    match chance.below(7) {
        0..=2 => format!("CREATE TABLE IF NOT EXISTS {table}(a INTEGER PRIMARY KEY, b, c)"),
        3 => format!("CREATE INDEX IF NOT EXISTS {table}_b ON {table}(b)"),
        4 => format!("CREATE INDEX IF NOT EXISTS {table}_c ON {table}(c, b)"),
        5 => format!("DROP INDEX IF EXISTS {table}_{}", chance.pick(&["b", "c"])),
        _ => format!("DROP TABLE {table}"),
    }
}

fn look(chance: &mut Chance) -> String {
    let (table, key) = (table(chance), key(chance));
    match chance.below(5) {
        0 => format!("SELECT count(*), sum(length(c)), min(a), max(a), sum(b) FROM {table}"),
        1 => format!(
            "SELECT a, b, length(c), substr(c, -20) FROM {table} WHERE a >= {key} ORDER BY a LIMIT 20"
        ),
        2 => format!("SELECT b, count(*) FROM {table} GROUP BY b ORDER BY b LIMIT 30"),
        3 => "PRAGMA integrity_check".to_owned(),
        _ => "PRAGMA page_count".to_owned(),
    }
}

fn checkpoint(chance: &mut Chance) -> String {
    format!("PRAGMA wal_checkpoint({})", chance.pick(&["PASSIVE", "FULL", "RESTART", "TRUNCATE"]))
}

fn setting(chance: &mut Chance) -> String {
    let all = [
        "cache_size = 5",
        "cache_size = 5",
        "cache_size = 2000",
        "synchronous = FULL",
        "synchronous = FULL",
        "synchronous = NORMAL",
        "synchronous = OFF",
        "synchronous = EXTRA",
        "wal_autocheckpoint = 1",
        "wal_autocheckpoint = 40",
        "wal_autocheckpoint = 1000",
        "journal_size_limit = -1",
        "journal_size_limit = 0",
        "journal_size_limit = 100000",
        "mmap_size = 0",
        "mmap_size = 200000",
        "user_version = 7",
        "user_version",
        "journal_mode",
        "incremental_vacuum(10)",
        "secure_delete = ON",
        "secure_delete = OFF",
        "locking_mode = EXCLUSIVE",
        "locking_mode = NORMAL",
        "locking_mode = NORMAL",
        "checkpoint_fullfsync = 1",
        "cache_spill = 1",
    ];
    format!("PRAGMA {}", chance.pick(&all))
}

fn journal_mode(chance: &mut Chance) -> String {
    // Not OFF: there a ROLLBACK may corrupt the database, as documented, and stock's as well.
    let all = ["DELETE", "TRUNCATE", "PERSIST", "MEMORY", "WAL", "WAL", "WAL", "WAL"];
    format!("PRAGMA journal_mode = {}", chance.pick(&all))
}
