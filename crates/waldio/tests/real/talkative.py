"""A program of one thread that closed standard output and prints all the same, beside its commits.

    talkative.py DATABASE COMMITS

Says after how many of them the log held what was printed, and how often anybody took it.
"""

import fcntl
import os
import sqlite3
import sys

from library import load

path, commits = sys.argv[1], int(sys.argv[2])
output = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 10)
load()
connection = sqlite3.connect(path, isolation_level=None)
connection.execute("PRAGMA journal_mode=WAL").fetchall()
connection.execute("PRAGMA synchronous=FULL")
connection.execute("CREATE TABLE t(a INTEGER PRIMARY KEY, b)")
log = os.open(path + "-wal", os.O_RDONLY)


def close_output():
    try:
        os.close(1)
    except OSError:
        pass


spoiled, taken = 0, 0
for number in range(commits):
    if number % 40 == 39:
        # So that the log grows again.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    close_output()
    connection.execute("INSERT INTO t(b) VALUES(randomblob(3000))")
    close_output()
    for _ in range(100):
        try:
            taken += os.write(1, b"a line of the program\n") > 0
        except OSError:
            pass
    spoiled += os.pread(log, 6, 0) == b"a line"
    if spoiled:
        break
os.write(output, f"spoiled {spoiled}, written for it {taken}\n".encode())
