"""What the programs share: files, databases, time that is no storage's, and the command line.

A program is a function `run(app)` and what it declares: how many files and commits it makes. Its calls depend on the seed alone. Time passes
in `think` and `receive`, where a program of a phone would work or wait for its network; `--pace 0` leaves that out.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import random
import sqlite3
import time

KB = 1024
MB = 1000 * 1000
# Bytes a second that FAST'12's phone received (its Table 2).
NETWORKS = {"wifi": 1.10 * MB, "usb": 8.04 * MB}
# SQLite syncs this often for a commit in DELETE mode: the journal twice, its directory, the database.
SYNCS_PER_COMMIT = 4
CHUNK_BYTES = 64 * KB


@dataclasses.dataclass
class Declared:
    """What a run does to its files. Numbers that the program's author counted, not the program."""

    files: int  # that are there at the end, without databases
    file_bytes: int  # that were written to files, without databases
    commits: int
    file_syncs: int = 0  # sync calls that are not SQLite's
    read_bytes: int = 0  # that were read of files, without databases
    received_bytes: int = 0  # from the network
    databases: dict = dataclasses.field(default_factory=dict)  # KiB at the end, where the paper says so

    def told(self):
        return dict(dataclasses.asdict(self), syncs=SYNCS_PER_COMMIT * self.commits + self.file_syncs)


class Database:
    """A SQLite database as Android 2.3 had it: pages of 1 KiB, a journal that is deleted, every commit synced."""

    def __init__(self, path, schema):
        self.connection = sqlite3.connect(path, isolation_level=None)
        for pragma in ("page_size=1024", "journal_mode=DELETE", "synchronous=FULL", "cache_size=-8000"):
            self.connection.execute(f"PRAGMA {pragma}").fetchall()
        if schema:
            self.commit([(statement, ()) for statement in schema])

    def commit(self, statements):
        """One transaction."""
        self.connection.execute("BEGIN IMMEDIATE")
        for sql, values in statements:
            self.connection.execute(sql, values)
        self.connection.execute("COMMIT")

    def read(self, sql, *values):
        return self.connection.execute(sql, values).fetchall()

    def close(self):
        self.connection.close()


class App:
    """The directory of a program, its seed, and its clock."""

    def __init__(self, directory, seed, pace, network):
        self.directory = pathlib.Path(directory)
        self.random = random.Random(seed)
        self.pace = pace
        self.bytes_per_s = NETWORKS[network]
        self.made = set()

    def think(self, seconds):
        """The processor's time, or a user's."""
        if self.pace > 0:
            time.sleep(seconds * self.pace)

    def receive(self, size):
        self.think(size / self.bytes_per_s)

    def path(self, name):
        path = self.directory / name
        if path.parent not in self.made:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.made.add(path.parent)
        return path

    def database(self, name, schema=()):
        return Database(self.path(name), schema)

    def write(self, name, size, sync=False, mode="wb"):
        """A file, written in order, from its begin or, with "ab", at its end."""
        with open(self.path(name), mode, buffering=0) as file:
            for begin in range(0, size, CHUNK_BYTES):
                file.write(self.random.randbytes(min(CHUNK_BYTES, size - begin)))
            if sync:
                os.fsync(file.fileno())

    def read(self, name, is_cached=False):
        """A file, read in order, and from the device: nothing of it is in memory before, unless it was just written."""
        with open(self.directory / name, "rb", buffering=0) as file:
            if not is_cached:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while file.read(CHUNK_BYTES):
                pass

    def text(self, length):
        """Letters, for a database."""
        return self.random.randbytes((length + 1) // 2).hex()[:length]


def shares(total, count, generator):
    """`count` sizes that are `total` together, most of them small: one is up to twenty times another."""
    weights = [generator.choice((1, 2, 3, 5, 8, 20)) for _ in range(count)]
    sizes = [total * weight // sum(weights) for weight in weights]
    sizes[-1] += total - sum(sizes)
    return sizes


def main(description, declared, run, prepare=None):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("directory", nargs="?", help="an empty directory, for the program's files")
    parser.add_argument("--declare", action="store_true", help="print what a run does to its files, as JSON, and do nothing")
    parser.add_argument("--prepare", action="store_true", help="make the files that the program finds, and do nothing else")
    parser.add_argument("--network", choices=NETWORKS, default="wifi")
    parser.add_argument("--pace", type=float, default=1, help="factor of the time that is no storage's")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.declare:
        print(json.dumps(declared.told()))
        return
    if options.directory is None:
        parser.error("name a directory")
    app = App(options.directory, options.seed, options.pace, options.network)
    if not options.prepare:
        run(app)
    elif prepare:
        prepare(app)
