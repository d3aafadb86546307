-- Exclusive locking mode keeps the wal-index in memory: the log works without shared memory.
PRAGMA locking_mode=EXCLUSIVE;
PRAGMA journal_mode=WAL;
CREATE TABLE t(n);
INSERT INTO t VALUES (1), (2);
.connection 1
.open test.db
SELECT 'kept out' WHERE (SELECT count(*) FROM t) < 0;
.connection 0
INSERT INTO t VALUES (3);
PRAGMA wal_checkpoint;
PRAGMA locking_mode=NORMAL;
SELECT sum(n) FROM t;
INSERT INTO t VALUES (4);
.connection 1
SELECT sum(n) FROM t;
INSERT INTO t VALUES (5);
.connection 0
SELECT sum(n) FROM t;
BEGIN IMMEDIATE;
.connection 1
INSERT INTO t VALUES (6);
.connection 0
COMMIT;
SELECT sum(n) FROM t;
PRAGMA integrity_check;
