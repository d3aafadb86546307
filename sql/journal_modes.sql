-- Into WAL and back out of it, through every mode; rows written in each are there in the next.
CREATE TABLE t(mode TEXT);
PRAGMA journal_mode=WAL;
INSERT INTO t VALUES ('wal 1');
PRAGMA journal_mode=DELETE;
INSERT INTO t VALUES ('delete');
PRAGMA journal_mode=WAL;
INSERT INTO t VALUES ('wal 2');
PRAGMA journal_mode=TRUNCATE;
INSERT INTO t VALUES ('truncate');
PRAGMA journal_mode=WAL;
PRAGMA journal_mode=PERSIST;
INSERT INTO t VALUES ('persist');
PRAGMA journal_mode=WAL;
INSERT INTO t VALUES ('wal 3');
PRAGMA journal_mode=MEMORY;
INSERT INTO t VALUES ('memory');
PRAGMA journal_mode=OFF;
INSERT INTO t VALUES ('off');
PRAGMA journal_mode=WAL;
INSERT INTO t VALUES ('wal 4');
.open test.db
PRAGMA journal_mode;
PRAGMA journal_mode=DELETE;
.open test.db
PRAGMA journal_mode;
SELECT group_concat(mode, ', ') FROM t;
PRAGMA integrity_check;
-- Out of WAL, nothing of the log is left that could shadow the database.
.shell test ! -s test.db-wal && echo no log
