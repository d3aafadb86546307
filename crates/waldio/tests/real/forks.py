"""A server that loads waldio, opens a database, then forks: parent and children commit, and all end.

    forks.py DATABASE WORKDIR

A child opens connections of its own: to the parent's database while the parent waits (SQLite's own rule forbids using an
inherited connection, and both copies of its lock table would be wrong at once), and to one of its own beside the parent.
Prints "ROWS OF-CHILDREN" at the end. Standard library only.
"""

import multiprocessing
import os
import sqlite3
import sys
import time

from library import load

CHILDREN = 4
ROWS = 60


def connect(database):
    connection = sqlite3.connect(database, timeout=20, isolation_level=None)
    connection.execute("PRAGMA waldio_fill = zeroes").fetchall()
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("CREATE TABLE IF NOT EXISTS t(a INTEGER PRIMARY KEY, b)")
    return connection


def fill(connection, name):
    for row in range(ROWS):
        connection.execute("INSERT INTO t(b) VALUES (? || hex(zeroblob(5000)))", (f"{name} {row} ",))
    facts = status(connection)
    assert facts["log"] == "open" and facts["errors"] == 0, facts


def status(connection):
    database = connection.execute("SELECT file FROM pragma_database_list").fetchone()
    return dict(connection.execute("SELECT name, value FROM waldio_status WHERE database = ?", database))


def grows(connection):
    """A new log grows past its first reservation in a background thread, which fork does not copy: each has its own."""
    deadline = time.monotonic() + 10
    while status(connection)["growths"] < 2:
        assert time.monotonic() < deadline, "the log of a child never grew"
        time.sleep(0.01)


def count(database):
    connection = sqlite3.connect(database)
    assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    return connection.execute("SELECT count(*) FROM t").fetchone()[0]


def child(database):
    new = not os.path.exists(database)
    connection = connect(database)
    fill(connection, f"child {os.getpid()}")
    if new:
        grows(connection)
    connection.close()


def forked(work):
    """Runs `work` in a forked child that ends at once after it."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return pid


def ended_well(pid):
    assert os.waitpid(pid, 0)[1] == 0, "a child failed"


def main(database, folder):
    load()
    parent = connect(database)
    fill(parent, "parent")
    # The parent's database, while the parent waits.
    ended_well(forked(lambda: child(database)))
    fill(parent, "parent")
    # Databases of their own, beside the parent.
    own = [os.path.join(folder, f"child{number}.db") for number in range(CHILDREN)]
    context = multiprocessing.get_context("fork")
    pool = [context.Process(target=child, args=(path,)) for path in own]
    for process in pool:
        process.start()
    fill(parent, "parent")
    for process in pool:
        process.join()
        assert process.exitcode == 0, "a child failed"
    # A grandchild, whose parent has connections and a thread of its own.
    grand = os.path.join(folder, "grandchild.db")

    def with_a_child_of_its_own():
        child(grand)
        ended_well(forked(lambda: child(grand)))

    ended_well(forked(with_a_child_of_its_own))
    parent.close()
    print(count(database), sum(count(path) for path in [*own, grand]))


if __name__ == "__main__":
    main(*sys.argv[1:])
