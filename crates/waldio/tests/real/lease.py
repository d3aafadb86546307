"""Opens a database whose log another program has a lease on, which it gives back when it is asked to.

    lease.py DATABASE OPTIONS
"""

import fcntl
import os
import signal
import sqlite3
import sys
import time

from library import load

path, options = sys.argv[1:3]


def connect():
    load()
    return sqlite3.connect(f"file:{path}?{options}", uri=True, isolation_level=None, timeout=5)


def leave_a_log():
    connection = connect()
    connection.execute("PRAGMA journal_mode=WAL").fetchall()
    connection.execute("CREATE TABLE t(a)")
    connection.execute("INSERT INTO t VALUES(1)")
    # As if it were killed.
    os._exit(0)


def hold(told):
    descriptor = os.open(path + "-wal", os.O_RDONLY)
    asked = []
    signal.signal(signal.SIGIO, lambda *_: asked.append(True))
    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    os.write(told, b"1")
    for _ in range(3000):
        time.sleep(0.01)
        if asked:
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            os._exit(0)
    os._exit(1)


if os.fork() == 0:
    leave_a_log()
os.wait()
heard, told = os.pipe()
if os.fork() == 0:
    hold(told)
os.read(heard, 1)
print(connect().execute("SELECT count(*) FROM t").fetchone()[0], "rows", flush=True)
print("the lease was asked for", os.waitstatus_to_exitcode(os.wait()[1]) == 0)
