"""A program of the system's SQLite that knows nothing of waldio, under LD_PRELOAD (the protocol is in ../driver.py).

    worker.py PRELOAD VERB DATABASE LIBRARY

An empty LIBRARY means without PRELOAD.
"""

import os
import sqlite3
import sys

preload, verb, database, library = sys.argv[1:]
if library and "LD_PRELOAD" not in os.environ:
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "LD_PRELOAD": preload})

connection = sqlite3.connect(database, isolation_level=None)
if verb == "insert":
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE IF NOT EXISTS t(n INTEGER PRIMARY KEY, value TEXT)")
    while True:
        cursor = connection.execute("INSERT INTO t(value) VALUES (hex(randomblob(50)))")
        print("ack", cursor.lastrowid, flush=True)
count, largest = connection.execute("SELECT count(*), max(n) FROM t").fetchone()
print("count", count)
print("max", largest)
print("integrity", connection.execute("PRAGMA integrity_check").fetchone()[0])
# For SQLite alone it is an unknown pragma: no row.
told = connection.execute("PRAGMA waldio").fetchone()
print("waldio", int(told is not None and told[0].startswith("active:")))
connection.close()
