-- A TRUNCATE checkpoint leaves an empty file until the next write, also while space was being prepared in the background.
PRAGMA page_size=65536;
PRAGMA journal_mode=WAL;
CREATE TABLE t(value);
INSERT INTO t VALUES (zeroblob(200000));
PRAGMA wal_checkpoint(TRUNCATE);
.shell test ! -s test.db-wal && echo empty at once
.shell sleep 0.3; test ! -s test.db-wal && echo and still empty
INSERT INTO t VALUES (zeroblob(2000000));
PRAGMA wal_checkpoint(TRUNCATE);
.shell sleep 0.3; test ! -s test.db-wal && echo empty again
SELECT count(*), sum(length(value)) FROM t;
PRAGMA integrity_check;
