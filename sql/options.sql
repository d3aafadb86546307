-- waldio only: what an option may be, and what is said of one that is not. A wrong value changes nothing.
PRAGMA waldio_persist = 'sometimes';
PRAGMA waldio_persist;
PRAGMA waldio_persist = flush;
PRAGMA waldio_persistence = flush;
PRAGMA waldio_group_commit = off;
PRAGMA journal_mode = WAL;
CREATE TABLE t(n);
PRAGMA waldio_persist = fua;
PRAGMA waldio_persist;
ATTACH 'file:other.db?waldio_fill=never' AS other;
ATTACH 'file:other.db?waldio_fill=zeroes' AS other;
PRAGMA other.waldio_fill;
