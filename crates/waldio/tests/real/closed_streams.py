"""What becomes of the standard streams that a program closed, and of the locks of its databases.

    closed_streams.py DATABASE

Prints one line: what standard error leads to after a write through waldio, whether another process may write while this one
has the database to itself, and what standard input leads to then.
"""

import fcntl
import os
import sqlite3
import subprocess
import sys

from library import load

path = sys.argv[1]


def connect():
    return sqlite3.connect(path, isolation_level=None, timeout=0)


def leads_to(descriptor):
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except FileNotFoundError:
        return "nothing"


def another_process_writes():
    insert = "sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None).execute('INSERT INTO t VALUES(2)')"
    command = [sys.executable, "-c", f"import sqlite3, sys; {insert}", path]
    null = subprocess.DEVNULL
    return subprocess.call(command, stdin=null, stdout=null, stderr=null) == 0


output = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 10)
load()
first = connect()
first.execute("PRAGMA journal_mode=WAL").fetchall()
first.execute("CREATE TABLE t(a INTEGER PRIMARY KEY)")
first.close()

# Whose files are open already, so that only waldio opens any.
stock = sqlite3.connect(f"file:{path}?vfs=unix", uri=True)
stock.execute("SELECT count(*) FROM t").fetchone()
first = connect()
os.close(2)
first.execute("INSERT INTO t VALUES(1)")
after_write = leads_to(2)

stock.close()
first.execute("PRAGMA locking_mode=EXCLUSIVE").fetchall()
first.execute("UPDATE t SET a = 1")
os.closerange(0, 3)
second = connect()
try:
    second.execute("SELECT count(*) FROM t").fetchone()
except sqlite3.OperationalError:
    pass
other = "writes" if another_process_writes() else "is refused"
os.write(output, f"{after_write}, another process {other}, {leads_to(0)}\n".encode())
