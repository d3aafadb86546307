"""Python's sqlite3 module as a client of waldio (the protocol is in ../driver.py)."""

import sqlite3
import sys

verb, database, library = sys.argv[1:]
if library:
    loader = sqlite3.connect(":memory:")
    loader.enable_load_extension(True)
    loader.load_extension(library)
    loader.close()

connection = sqlite3.connect(database, isolation_level=None)
if verb == "insert":
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS t(n INTEGER PRIMARY KEY, value TEXT)")
    while True:
        cursor = connection.execute("INSERT INTO t(value) VALUES (hex(randomblob(50)))")
        print("ack", cursor.lastrowid, flush=True)
else:
    count, largest = connection.execute("SELECT count(*), max(n) FROM t").fetchone()
    print("count", count)
    print("max", largest)
    print("integrity", connection.execute("PRAGMA integrity_check").fetchone()[0])
    print("waldio", connection.execute("SELECT count(*) FROM waldio_status WHERE name = 'this_connection' AND value LIKE 'active:%'").fetchone()[0] if library else 0)
    connection.close()
