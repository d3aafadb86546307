-- waldio only: what waldio_status says of an open log. Only names and values that are the same on every disk.
PRAGMA journal_mode=WAL;
PRAGMA synchronous=FULL;
PRAGMA wal_autocheckpoint=0;
CREATE TABLE t(n);
INSERT INTO t VALUES (1);
INSERT INTO t VALUES (2);
SELECT count(DISTINCT database) AS databases, max(database) LIKE '%/test.db' AS named FROM waldio_status;
SELECT name, value, unit FROM waldio_status
WHERE name IN ('layout', 'log', 'fill_asked', 'persist_asked', 'strict', 'log_bytes', 'log_frames', 'commits', 'page_bytes',
    'errors', 'poison') ORDER BY name;
SELECT count(*) AS without_source FROM waldio_status WHERE source IS NULL OR source = '';
SELECT count(*) AS without_unit FROM waldio_status WHERE unit IS NULL;
-- One commit more: one commit more, one frame, and no write that is not a sync of its own or rides on one.
CREATE TEMP TABLE before AS SELECT name, value FROM waldio_status WHERE name IN ('commits', 'log_frames', 'writes');
INSERT INTO t VALUES (3);
SELECT name, now.value - before.value AS more FROM waldio_status AS now JOIN before USING (name) ORDER BY name;
-- Closed and opened again: the log and the counts start anew.
.open other.db
.shell test ! -e test.db-wal && echo no log
.open test.db
INSERT INTO t VALUES (4);
SELECT name, value FROM waldio_status WHERE name IN ('log_frames', 'commits') AND database LIKE '%/test.db' ORDER BY name;
SELECT sum(n) FROM t;
