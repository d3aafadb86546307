-- journal_size_limit and TRUNCATE do for users what the manual says, and the log goes on working after them.
PRAGMA journal_mode=WAL;
PRAGMA journal_size_limit=100000;
PRAGMA wal_autocheckpoint=50;
CREATE TABLE t(n INTEGER PRIMARY KEY, value BLOB);
BEGIN;
WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 500) INSERT INTO t SELECT n, zeroblob(2000) FROM c;
COMMIT;
INSERT INTO t(value) VALUES (zeroblob(10));
INSERT INTO t(value) VALUES (zeroblob(10));
SELECT count(*) FROM t;
PRAGMA wal_checkpoint(TRUNCATE);
INSERT INTO t(value) VALUES (zeroblob(10));
.open test.db
SELECT count(*) FROM t;
PRAGMA integrity_check;
