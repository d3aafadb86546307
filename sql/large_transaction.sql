-- One transaction that is larger than the log's working size, then one that wraps round to the start of the log.
PRAGMA journal_mode=WAL;
CREATE TABLE t(n INTEGER PRIMARY KEY, value TEXT);
BEGIN;
WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000)
INSERT INTO t SELECT n, printf('%0500d', n) FROM c;
COMMIT;
SELECT count(*), sum(n), sum(length(value)) FROM t;
UPDATE t SET value = printf('%0500d', n + 1);
SELECT count(*), sum(CAST(value AS INTEGER)) FROM t;
PRAGMA wal_checkpoint(TRUNCATE);
INSERT INTO t SELECT n + 20000, value FROM t WHERE n <= 100;
.open test.db
SELECT count(*), sum(CAST(value AS INTEGER)) FROM t;
PRAGMA integrity_check;
