#!/usr/bin/env python3
"""Kills a client of waldio in the middle of its commits and counts what is left.

    driver.py NAME LIBRARY DIRECTORY -- WORKER...

WORKER is a command in the client's own language, which the driver calls with three more words:

    insert DATABASE LIBRARY   load LIBRARY, open DATABASE with journal_mode=WAL and synchronous=FULL, make the table
                              t(n INTEGER PRIMARY KEY, value TEXT) if needed, insert rows one commit each for ever,
                              and print "ack N" once the COMMIT of row N has returned
    check DATABASE LIBRARY    print "count N", "max N", "integrity TEXT" and "waldio N", on how many databases it is active;
                              an empty LIBRARY means stock SQLite: load nothing, and print "waldio 0"

The table must hold every row that was acknowledged, without a hole: with waldio in the client, and on a copy with
stock SQLite in the client and in Debian's Python. Ends with a line "N passed, N failed, N skipped".
"""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

ROUNDS = (300, 300, 400)  # acknowledged commits before each kill: 1,000 in all
PATIENCE_SECONDS = 120


class Failure(Exception):
    """What the client got wrong."""


def start(worker, verb, database, library):
    """Starts the worker in a session of its own, so that a kill takes its children too."""
    command = [*worker, verb, database, library]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True)


def insert_until_killed(worker, database, library, acknowledged_min):
    """The last row acknowledged before SIGKILL, which comes after `acknowledged_min` of them, in the middle of work."""
    process = start(worker, "insert", database, library)
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(process.pid, signal.SIGKILL))
    signal.alarm(PATIENCE_SECONDS)
    count, last = 0, 0
    for line in process.stdout:  # after the kill too: what the pipe still holds was acknowledged
        if not line.startswith("ack ") or not line.endswith("\n"):
            continue
        count, last = count + 1, int(line.split()[1])
        if count == acknowledged_min:
            time.sleep(random.uniform(0, 0.003))  # anywhere in a commit, not always where the pipe is read
            os.killpg(process.pid, signal.SIGKILL)
    signal.alarm(0)
    status = process.wait()
    if count < acknowledged_min:
        raise Failure(f"the worker acknowledged {count} commits and ended with status {status}")
    return last


def check(worker, database, library):
    """What the worker's `check` printed, by name."""
    process = start(worker, "check", database, library)
    output, _ = process.communicate(timeout=PATIENCE_SECONDS)
    if process.returncode != 0:
        raise Failure(f"check ended with status {process.returncode}: {output}")
    return dict(line.split(" ", 1) for line in output.splitlines() if " " in line)


def check_with_stock_python(database):
    """The same facts from the SQLite of the Python that runs this."""
    connection = sqlite3.connect(database)
    try:
        count, largest = connection.execute("SELECT count(*), max(n) FROM t").fetchone()
        integrity = connection.execute("PRAGMA integrity_check").fetchone()[0]
        return {"count": str(count), "max": str(largest), "integrity": integrity, "waldio": "0"}
    finally:
        connection.close()


def judge(facts, acknowledged, with_waldio):
    """Raises unless every acknowledged row is there and nothing is broken."""
    if facts.get("integrity") != "ok":
        raise Failure(f"integrity_check: {facts}")
    if int(facts["count"]) < acknowledged:
        raise Failure(f"{acknowledged} commits were acknowledged, {facts['count']} rows are left")
    if facts["count"] != facts["max"]:
        raise Failure(f"a hole in the history: {facts}")
    if (int(facts["waldio"]) > 0) != with_waldio:
        raise Failure(f"waldio is active on {facts['waldio']} databases, and {'was' if with_waldio else 'was not'} loaded")


def copy_of(database, name):
    """The database and its log as the kill left them, without the -shm, as after a reboot."""
    copy = os.path.join(os.path.dirname(database), name)
    for suffix in ("", "-wal"):
        if os.path.exists(database + suffix):
            shutil.copyfile(database + suffix, copy + suffix)
    return copy


def main():
    name, library, directory, separator, *worker = sys.argv[1:]
    if separator != "--" or not worker:
        sys.exit(__doc__)
    database = os.path.join(directory, "app.db")
    passed, failed, acknowledged = 0, 0, 0

    def attempt(promise, judged):
        nonlocal passed, failed
        try:
            judged()
            passed += 1
        except (Failure, subprocess.TimeoutExpired, sqlite3.Error, KeyError, ValueError) as error:
            failed += 1
            print(f"FAILED clients: {name}: {promise}: {error}")

    for number, acknowledged_min in enumerate(ROUNDS, 1):
        try:
            acknowledged = insert_until_killed(worker, database, library, acknowledged_min)
        except Failure as error:
            failed += 1
            print(f"FAILED clients: {name}: round {number}: {error}")
            break
        print(f"{name}: killed after the acknowledgement of row {acknowledged}", flush=True)
        log = os.path.getsize(database + "-wal") if os.path.exists(database + "-wal") else 0
        attempt(f"round {number}, a log is left by the kill", lambda: log > 0 or (_ for _ in ()).throw(Failure("no -wal")))
        stock, python = copy_of(database, "stock.db"), copy_of(database, "python.db")
        attempt(f"round {number}, stock client", lambda: judge(check(worker, stock, ""), acknowledged, False))
        attempt(f"round {number}, stock Python", lambda: judge(check_with_stock_python(python), acknowledged, False))
        attempt(f"round {number}, waldio", lambda: judge(check(worker, database, library), acknowledged, True))
    else:
        # The last check closed the database with waldio: stock takes it over where it stands.
        attempt("after a clean close, stock", lambda: judge(check(worker, database, ""), acknowledged, False))
    print(f"{passed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
