-- waldio only: ?waldio=off takes one database out, ?vfs=unix another; both work, and waldio says of the second that it passes it by.
.open file:test.db?waldio=off
PRAGMA journal_mode=WAL;
CREATE TABLE t(n);
INSERT INTO t VALUES (1);
SELECT name, value FROM waldio_status WHERE name IN ('log', 'layout');
.shell test -s test.db-wal && echo stock keeps its log beside
.open file:test.db?vfs=unix
INSERT INTO t VALUES (2);
SELECT name, source FROM waldio_status;
.open test.db
INSERT INTO t VALUES (3);
SELECT count(*) > 0 AS known FROM waldio_status;
.connection 1
.open file:test.db?waldio=off
INSERT INTO t VALUES (4);
SELECT sum(n) FROM t;
.connection 0
SELECT sum(n) FROM t;
PRAGMA integrity_check;
