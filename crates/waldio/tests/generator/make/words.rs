//! Single statements.

use super::{Actor, Maker};

impl Maker {
    /// Changes rows; some fail, some are larger than any cache here.
    pub(super) fn change(&mut self) -> String {
        let (key, number) = (self.chance.below(60), self.chance.below(1000));
        let clause = self.pick(&["ROLLBACK", "ABORT", "FAIL", "IGNORE", "REPLACE"]);
        match self.chance.below(14) {
            0..=2 => format!("INSERT OR REPLACE INTO t VALUES ({key}, {}, 'row {number}')", 10_000 + number),
            3 => format!("INSERT INTO u VALUES ({key}, {number})"),
            // Page after page, each once: nothing is written twice.
            4 => "UPDATE t SET c = replace(replace(c, 'o', 'r'), 'x', 'o')".to_owned(),
            5 => format!("UPDATE t SET c = printf('%.*c', length(c), '{}')", self.letter()),
            // Pages split, and are written again within the transaction.
            6 => format!("UPDATE t SET c = substr(c || c, 1, {})", 50 + number),
            7 => {
                let (rows, bytes) = (self.chance.below(80), self.chance.below(700));
                format!(
                    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) INSERT OR REPLACE \
                     INTO t SELECT {key} + i, i * 7 + {number}, printf('%.*c', {bytes}, 'x') || i FROM n"
                )
            }
            8 => format!("DELETE FROM t WHERE a BETWEEN {key} AND {}", key + number % 20),
            9 => format!("INSERT OR REPLACE INTO t VALUES ({key}, -{number}, zeroblob({}))", number * 60),
            // Fails in the middle, when some rows are changed already.
            10 => format!("UPDATE OR {clause} t SET b = 10 * (b / 10 % 7 + {})", key % 9),
            11 => format!("INSERT OR {clause} INTO t SELECT a + 20, b, c FROM t ORDER BY a"),
            12 => format!("UPDATE OR {clause} t SET c = CASE WHEN a > {key} THEN NULL ELSE c || 'n' END"),
            _ => format!("UPDATE t SET b = b + 100000, c = c || '{number}' WHERE a % 3 = {}", number % 3),
        }
    }

    fn letter(&mut self) -> char {
        *self.chance.pick(&['o', 'x', 'p', 'q'])
    }

    /// Begins, ends and marks transactions.
    pub(super) fn transaction(&mut self) -> String {
        self.pick(&[
            "BEGIN",
            "BEGIN",
            "BEGIN IMMEDIATE",
            "BEGIN EXCLUSIVE",
            "COMMIT",
            "COMMIT",
            "COMMIT",
            "COMMIT",
            "ROLLBACK",
            "ROLLBACK",
            "SAVEPOINT s",
            "SAVEPOINT r",
            "ROLLBACK TO s",
            "ROLLBACK TO r",
            "RELEASE s",
            "RELEASE r",
        ])
    }

    /// Reads; a reader stays where it is inside of a transaction.
    pub(super) fn read(&mut self) -> String {
        self.pick(&[
            "SELECT count(*), min(a), max(b), sum(length(c)) FROM t",
            "SELECT a, b, substr(c, 1, 5), substr(c, -5) FROM t ORDER BY a LIMIT 30",
            "SELECT count(*), max(id) FROM kept",
            "SELECT count(*), sum(b) FROM u",
            "PRAGMA integrity_check",
            "PRAGMA page_count",
            "PRAGMA data_version",
        ])
    }

    /// A checkpoint.
    pub(super) fn checkpoint(&mut self) -> String {
        let mode = self.pick(&["PASSIVE", "FULL", "RESTART", "RESTART", "TRUNCATE"]);
        format!("PRAGMA wal_checkpoint({mode})")
    }

    /// A pragma that changes how a log lives.
    pub(super) fn setting(&mut self) -> String {
        let setting = self.pick(&[
            "cache_size = 2",
            "cache_size = 5",
            "cache_size = 2000",
            "cache_spill = 1",
            "synchronous = FULL",
            "synchronous = EXTRA",
            "synchronous = NORMAL",
            "synchronous = OFF",
            "wal_autocheckpoint = 1",
            "wal_autocheckpoint = 7",
            "wal_autocheckpoint = 0",
            "wal_autocheckpoint = 1000",
            "journal_size_limit = 0",
            "journal_size_limit = 20000",
            "journal_size_limit = -1",
            "mmap_size = 0",
            "mmap_size = 100000",
            "secure_delete = 1",
            "checkpoint_fullfsync = 1",
            "query_only = 0",
        ]);
        format!("PRAGMA {setting}")
    }

    /// Tables and indexes.
    pub(super) fn schema(&mut self) -> String {
        self.pick(&[
            "CREATE INDEX IF NOT EXISTS t_c ON t(c)",
            "DROP INDEX IF EXISTS t_c",
            "DROP TABLE IF EXISTS u",
            "CREATE TABLE IF NOT EXISTS u(a INTEGER PRIMARY KEY, b)",
            "PRAGMA user_version = 7",
            "CREATE TEMP TABLE IF NOT EXISTS w AS SELECT * FROM t",
            "ANALYZE",
        ])
    }

    /// What reads or rewrites a whole database.
    pub(super) fn copy(&mut self, who: usize) {
        let file = self.next_file;
        self.next_file += 1;
        // Another page size would leave the embedded layout no room.
        let embedded = self.program.is_embedded();
        match self.chance.below(8) {
            0 | 1 => self.sql(who, "VACUUM".to_owned()),
            2 if !embedded => {
                let size = self.pick(&["512", "1024", "4096"]);
                self.sql(who, format!("PRAGMA page_size = {size}"));
                self.sql(who, "VACUUM".to_owned());
            }
            3 => self.sql(who, format!("VACUUM INTO '{{dir}}/into-{file}.db'")),
            4 => self.order(Actor::Connection(who), format!("backup backup-{file}.db")),
            5 => {
                self.sql(who, format!("ATTACH '{{dir}}/attached-{}.db' AS more", file % 2));
                self.sql(who, "CREATE TABLE IF NOT EXISTS more.m(a, b)".to_owned());
            }
            6 => self.sql(who, "INSERT INTO more.m SELECT a, c FROM t".to_owned()),
            _ => self.sql(who, "DETACH more".to_owned()),
        }
    }

    /// What fails on stock's side as well.
    pub(super) fn hardship(&mut self, process: usize) {
        let count = self.pick(&["1", "1", "2", "3"]);
        let words = match self.chance.below(11) {
            0 => format!("fail openat EMFILE {count}"),
            1 => format!("fail openat-wal EMFILE {count}"),
            2 => format!("fail fdatasync EINTR {count}"),
            3 => format!("fail fdatasync EIO {count}"),
            4 => format!("fail pwrite64 ENOSPC {count}"),
            5 => format!("fail pwrite64 EFBIG {count}"),
            6 => format!("fail ftruncate EIO {count}"),
            7 => format!("bytes {}", 30_000 + self.chance.below(60_000)),
            8 => "bytes all".to_owned(),
            9 => format!("fail openat-waldio EMFILE {count}"),
            _ => format!("fail pwrite64 EIO {count}"),
        };
        self.order(Actor::Process(process), words);
    }
}
