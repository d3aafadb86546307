-- wal_checkpoint in each mode, alone and beside a reader: busy, frames in the log, frames copied.
PRAGMA page_size=4096;
PRAGMA journal_mode=WAL;
PRAGMA wal_autocheckpoint=0;
CREATE TABLE t(n INTEGER PRIMARY KEY, value BLOB);
INSERT INTO t(value) VALUES (zeroblob(10000));
PRAGMA wal_checkpoint(PASSIVE);
INSERT INTO t(value) VALUES (zeroblob(10000));
PRAGMA wal_checkpoint(FULL);
INSERT INTO t(value) VALUES (zeroblob(10000));
PRAGMA wal_checkpoint(RESTART);
INSERT INTO t(value) VALUES (zeroblob(10000));
PRAGMA wal_checkpoint(TRUNCATE);
PRAGMA wal_checkpoint(TRUNCATE);
INSERT INTO t(value) VALUES (zeroblob(10000));
.connection 1
.open test.db
BEGIN;
SELECT count(*) FROM t;
.connection 0
INSERT INTO t(value) VALUES (zeroblob(10000));
PRAGMA wal_checkpoint(PASSIVE);
PRAGMA wal_checkpoint(FULL);
PRAGMA wal_checkpoint(RESTART);
PRAGMA wal_checkpoint(TRUNCATE);
.connection 1
SELECT count(*) FROM t;
COMMIT;
SELECT count(*) FROM t;
.connection 0
PRAGMA wal_checkpoint(TRUNCATE);
SELECT count(*), sum(length(value)) FROM t;
PRAGMA integrity_check;
