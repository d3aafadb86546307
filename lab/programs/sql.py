#!/usr/bin/env python3
"""A benchmark of SQL of the kind of RLBench: rows one by one, rows in one transaction, searches, changes, deletions.

No network, and no pauses: what is no storage's is the processor's.
"""
import common

SINGLE_ROWS = 400
ROWS = 10_000
SEARCHES = 50

TABLES = ("CREATE TABLE t1(a INTEGER, b INTEGER, c TEXT)", "CREATE TABLE t2(a INTEGER, b INTEGER, c TEXT)", "CREATE TABLE t3(a INTEGER, b INTEGER, c TEXT)")
INSERT = "INSERT INTO {} VALUES (?, ?, ?)"
DECLARED = common.Declared(
    files=0,
    file_bytes=0,
    commits=1 + SINGLE_ROWS + 10,
)


def run(app):
    database = app.database("databases/rl.db", TABLES)
    row = lambda number: (number, app.random.randrange(ROWS), app.text(40))
    for number in range(SINGLE_ROWS):
        database.commit([(INSERT.format("t1"), row(number))])
    database.commit([(INSERT.format("t2"), row(number)) for number in range(ROWS)])
    database.commit([("CREATE INDEX t3b ON t3(b)", ())])
    database.commit([(INSERT.format("t3"), row(number)) for number in range(ROWS)])
    for number in range(SEARCHES):
        database.read("SELECT count(*), avg(b) FROM t2 WHERE b >= ? AND b < ?", number * 100, number * 100 + 1000)
        database.read("SELECT count(*) FROM t2 WHERE c LIKE ?", f"%{number}%")
        database.read("SELECT count(*), avg(b) FROM t3 WHERE b >= ? AND b < ?", number * 100, number * 100 + 100)
    database.commit([("CREATE INDEX t2a ON t2(a)", ())])
    database.commit([("UPDATE t2 SET b = b * 2 WHERE a >= ? AND a < ?", (number * 10, number * 10 + 10)) for number in range(100)])
    database.commit([("UPDATE t3 SET b = ? WHERE a = ?", (number, number)) for number in range(100)])
    database.commit([("INSERT INTO t1 SELECT b, a, c FROM t2", ())])
    database.commit([("DELETE FROM t2 WHERE c LIKE '%50%'", ())])
    database.commit([("DELETE FROM t2 WHERE a > 10 AND a < 8000", ())])
    database.commit([("DROP TABLE t3", ())])
    database.close()


if __name__ == "__main__":
    common.main(__doc__, DECLARED, run)
