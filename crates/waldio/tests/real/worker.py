"""A process that writes or reads a database beside others, as a child of the real_* tests.

    worker.py write DATABASE SIDE NAME COMMITS SYNCHRONOUS   one row each, "ack SEQ" after each COMMIT
    worker.py read DATABASE SIDE NAME                        verifies snapshots until a row of `finish` appears

SIDE is stock, waldio, or waldio-fua: with waldio_persist=fua.

Row SEQ of writer NAME holds bytes that follow from both, and the same transaction moves head(NAME) to SEQ. So in any
snapshot, for each writer, count = newest = head; and from one snapshot to the next none of it goes back.
An error of SQLite is a line "error CODE TEXT". The last line of a writer that ends well is "status {...}" with what waldio_status says and its memory; of a reader, "snapshots N". Standard library only.
"""

import hashlib
import json
import os
import random
import resource
import sqlite3
import sys

from library import load

SCHEMA = """
CREATE TABLE IF NOT EXISTS rows(writer TEXT, seq INTEGER, content BLOB, PRIMARY KEY(writer, seq)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS head(writer TEXT PRIMARY KEY, seq INTEGER);
CREATE TABLE IF NOT EXISTS finish(done INTEGER);
"""


def content(writer, seq):
    """The bytes of a row: some of them longer than a page."""
    stamp = hashlib.sha256(f"{writer} {seq}".encode()).digest()
    repeats = 200 if seq % 17 == 0 else 1 + seq % 12
    return stamp * repeats


def connect(database, side):
    if side == "waldio-fua":
        os.environ["WALDIO_PERSIST"] = "fua"
    if side != "stock":
        load()
    connection = sqlite3.connect(database, timeout=60, isolation_level=None)
    connection.execute("PRAGMA wal_autocheckpoint = 150")
    return connection


def checkpoint_now_and_then(connection, chance):
    if chance.random() < 0.02:
        kind = chance.choice(["PASSIVE", "PASSIVE", "FULL", "RESTART", "TRUNCATE"])
        connection.execute("PRAGMA busy_timeout = 50")
        connection.execute(f"PRAGMA wal_checkpoint({kind})").fetchall()
        connection.execute("PRAGMA busy_timeout = 60000")


def write(database, side, name, commits, synchronous):
    chance = random.Random(name)
    connection = connect(database, side)
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.executescript("BEGIN IMMEDIATE;" + SCHEMA + "COMMIT;")
    for seq in range(1, int(commits) + 1):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO rows VALUES (?, ?, ?)", (name, seq, content(name, seq)))
        connection.execute("INSERT OR REPLACE INTO head VALUES (?, ?)", (name, seq))
        connection.execute("COMMIT")
        # A pipe keeps what was written when its writer is killed: what stands there was acknowledged.
        os.write(1, f"ack {seq}\n".encode())
        checkpoint_now_and_then(connection, chance)
    status = {}
    if side != "stock":
        status = dict(connection.execute("SELECT name, value FROM waldio_status"))
    status["peak_rss_kib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print("status", json.dumps(status), flush=True)
    connection.close()


def verify(connection, before, chance):
    """One snapshot; the heads in it."""
    connection.execute("BEGIN")
    heads = dict(connection.execute("SELECT writer, seq FROM head"))
    for writer, seq in heads.items():
        count, newest = connection.execute(
            "SELECT count(*), max(seq) FROM rows WHERE writer = ?", (writer,)
        ).fetchone()
        assert count == newest == seq, f"{writer}: {count} rows, newest {newest}, head {seq}"
        assert seq >= before.get(writer, 0), f"{writer} went back from {before[writer]} to {seq}"
        for looked_at in {seq, max(1, seq - 1), chance.randint(1, seq)}:
            row = connection.execute(
                "SELECT content FROM rows WHERE writer = ? AND seq = ?", (writer, looked_at)
            ).fetchone()
            assert row[0] == content(writer, looked_at), f"{writer} {looked_at}: other bytes"
    assert before.keys() <= heads.keys(), "a writer vanished"
    done = connection.execute("SELECT count(*) FROM finish").fetchone()[0]
    connection.execute("COMMIT")
    return heads, done


def read(database, side, name):
    chance = random.Random(name)
    connection = connect(database, side)
    heads, done, snapshots = {}, 0, 0
    print("reading", flush=True)
    while not done:
        heads, done = verify(connection, heads, chance)
        snapshots += 1
        if snapshots % 200 == 0:
            connection.close()
            connection = connect(database, side)
    print("snapshots", snapshots, flush=True)
    connection.close()


if __name__ == "__main__":
    try:
        {"write": write, "read": read}[sys.argv[1]](*sys.argv[2:])
    except sqlite3.Error as error:
        # For a test that provokes one; Python's traceback on stderr, which says no code, stays.
        print("error", getattr(error, "sqlite_errorcode", -1), error, flush=True)
        raise
