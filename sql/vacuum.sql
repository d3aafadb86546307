-- VACUUM rewrites every page through the log; VACUUM INTO and a change of page size besides.
PRAGMA journal_mode=WAL;
CREATE TABLE t(n INTEGER PRIMARY KEY, value BLOB);
WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 2000) INSERT INTO t SELECT n, zeroblob(500) FROM c;
DELETE FROM t WHERE n % 2;
VACUUM;
PRAGMA freelist_count;
SELECT count(*), sum(n) FROM t;
PRAGMA integrity_check;
VACUUM INTO 'copy.db';
.open copy.db
SELECT count(*), sum(n) FROM t;
PRAGMA integrity_check;
.open test.db
PRAGMA journal_mode=DELETE;
PRAGMA page_size=8192;
VACUUM;
PRAGMA journal_mode=WAL;
PRAGMA page_size;
SELECT count(*), sum(n) FROM t;
PRAGMA integrity_check;
