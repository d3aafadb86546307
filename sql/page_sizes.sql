-- Every page size: a frame is 24 bytes more, and lies across the blocks of the disk differently each time.
.open size512.db
PRAGMA page_size=512;
PRAGMA journal_mode=WAL;
CREATE TABLE t(n INTEGER PRIMARY KEY, value BLOB);
WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 100) INSERT INTO t SELECT n, zeroblob(n * 30) FROM c;
UPDATE t SET value = zeroblob(n) WHERE n % 3 = 0;
.open size512.db
SELECT page_size, (SELECT count(*) FROM t), (SELECT sum(length(value)) FROM t) FROM pragma_page_size;
PRAGMA integrity_check;
.open size1024.db
PRAGMA page_size=1024;
PRAGMA journal_mode=WAL;
CREATE TABLE t(n INTEGER PRIMARY KEY, value BLOB);
WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 100) INSERT INTO t SELECT n, zeroblob(n * 30) FROM c;
UPDATE t SET value = zeroblob(n) WHERE n % 3 = 0;
.open size1024.db
SELECT page_size, (SELECT count(*) FROM t), (SELECT sum(length(value)) FROM t) FROM pragma_page_size;
PRAGMA integrity_check;
.open size16384.db
PRAGMA page_size=16384;
PRAGMA journal_mode=WAL;
CREATE TABLE t(n INTEGER PRIMARY KEY, value BLOB);
WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 100) INSERT INTO t SELECT n, zeroblob(n * 30) FROM c;
UPDATE t SET value = zeroblob(n) WHERE n % 3 = 0;
.open size16384.db
SELECT page_size, (SELECT count(*) FROM t), (SELECT sum(length(value)) FROM t) FROM pragma_page_size;
PRAGMA integrity_check;
.open size65536.db
PRAGMA page_size=65536;
PRAGMA journal_mode=WAL;
CREATE TABLE t(n INTEGER PRIMARY KEY, value BLOB);
WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 100) INSERT INTO t SELECT n, zeroblob(n * 3000) FROM c;
UPDATE t SET value = zeroblob(n) WHERE n % 3 = 0;
.open size65536.db
SELECT page_size, (SELECT count(*) FROM t), (SELECT sum(length(value)) FROM t) FROM pragma_page_size;
PRAGMA integrity_check;
