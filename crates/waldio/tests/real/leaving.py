"""A program whose main thread ends by pthread_exit: it lasts as long as any other thread does.

    leaving.py DATABASE      commits so that waldio's threads run, says which there are, and leaves

Standard library only.
"""

import ctypes
import os
import sqlite3
import sys

from library import load

load()
connection = sqlite3.connect(f"file:{sys.argv[1]}?waldio_group=64KiB,5ms", uri=True, isolation_level=None)
connection.execute("PRAGMA journal_mode = WAL").fetchall()
connection.execute("PRAGMA synchronous = FULL")
connection.execute("CREATE TABLE t(a)")
for _ in range(200):
    connection.execute("INSERT INTO t VALUES (zeroblob(10000))")
threads = []
for thread in os.listdir("/proc/self/task"):
    with open(f"/proc/self/task/{thread}/comm") as comm:
        threads.append(comm.read().strip())
print(*(name for name in sorted(threads) if name.startswith("waldio")), flush=True)
ctypes.CDLL(None).pthread_exit(None)
