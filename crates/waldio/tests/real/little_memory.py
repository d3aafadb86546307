"""Commits with a little more address space than the process has by then, and says how many commits that were.

    little_memory.py DATABASE OPTIONS KIB
"""

import resource
import sqlite3
import sys

from library import load

path, options, kib = sys.argv[1], sys.argv[2], int(sys.argv[3])
load()
connection = sqlite3.connect(f"file:{path}?{options}", uri=True, isolation_level=None)
connection.execute("PRAGMA journal_mode=WAL").fetchall()
connection.execute("PRAGMA synchronous=FULL")
connection.execute("CREATE TABLE t(a INTEGER PRIMARY KEY, b)")
with open("/proc/self/statm", encoding="ascii") as sizes:
    bytes_now = int(sizes.read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (bytes_now + (kib << 10), -1))
acknowledged = 0
for number in range(60):
    try:
        connection.execute("INSERT INTO t VALUES(?, zeroblob(50000))", (number,))
        acknowledged += 1
    except (sqlite3.Error, MemoryError):
        pass
print("acknowledged", acknowledged, flush=True)
