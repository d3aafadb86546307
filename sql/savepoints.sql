-- Savepoints, and a cache so small that a transaction spills to the log before it commits or is rolled back.
PRAGMA journal_mode=WAL;
PRAGMA cache_size=10;
CREATE TABLE t(n INTEGER PRIMARY KEY, value BLOB);
CREATE INDEX t_value ON t(value);
BEGIN;
WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 300) INSERT INTO t SELECT n, zeroblob(1000) FROM c;
SAVEPOINT one;
UPDATE t SET value = zeroblob(1200) WHERE n <= 200;
SAVEPOINT two;
DELETE FROM t WHERE n > 100;
SELECT count(*), sum(length(value)) FROM t;
ROLLBACK TO two;
SELECT count(*), sum(length(value)) FROM t;
RELEASE one;
COMMIT;
SELECT count(*), sum(length(value)) FROM t;
PRAGMA integrity_check;
BEGIN;
DELETE FROM t;
WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 300) INSERT INTO t SELECT n, zeroblob(900) FROM c;
ROLLBACK;
SELECT count(*), sum(length(value)) FROM t;
INSERT INTO t(value) VALUES ('over what was rolled back');
.open test.db
SELECT count(*), sum(length(value)) FROM t;
PRAGMA integrity_check;
