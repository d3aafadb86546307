-- A database file put back from a copy is not overruled by the log of the one it replaces.
PRAGMA journal_mode=WAL;
CREATE TABLE t(n);
INSERT INTO t VALUES (1);
.open other.db
.shell cp test.db backup.db
.open test.db
INSERT INTO t VALUES (2);
SELECT count(*) FROM t;
.open other.db
.shell cp backup.db test.db
.open test.db
SELECT count(*) FROM t;
INSERT INTO t VALUES (3);
SELECT sum(n) FROM t;
.open other.db
-- Deleted, and made anew under the same name.
.shell rm test.db
.open test.db
SELECT count(*) FROM sqlite_schema;
PRAGMA journal_mode=WAL;
CREATE TABLE t(n);
INSERT INTO t VALUES (4);
.open test.db
SELECT sum(n) FROM t;
PRAGMA integrity_check;
