-- Looking without touching: mode=ro, immutable=1, query_only, and databases that have no file.
PRAGMA journal_mode=WAL;
CREATE TABLE t(n);
INSERT INTO t VALUES (1);
.open file:test.db?mode=ro
SELECT sum(n) FROM t;
INSERT INTO t VALUES (2);
.open file:test.db?immutable=1
SELECT sum(n) FROM t;
.open test.db
PRAGMA query_only=ON;
INSERT INTO t VALUES (3);
PRAGMA query_only=OFF;
SELECT sum(n) FROM t;
CREATE TEMP TABLE scratch AS SELECT n + 10 AS n FROM t;
SELECT sum(n) FROM scratch;
.open :memory:
PRAGMA journal_mode=WAL;
CREATE TABLE t(n);
INSERT INTO t VALUES (7);
SELECT sum(n) FROM t;
.open ""
PRAGMA journal_mode=WAL;
CREATE TABLE t(n);
INSERT INTO t VALUES (8);
SELECT sum(n) FROM t;
