"""Stores records in a key-value store, one transaction each, for `joj crash` (docs/crash_stores.md).

    store.py NAME sync      stores RECORDS records, each one synced, and prints `stored N` behind each
    store.py NAME nosync    the same, but the store is told not to sync
    store.py NAME check     looks at what is there: exit code 0 all that was promised, 1 some of it is gone, 2 something is wrong

NAME is lmdb, leveldb (plyvel), rocksdb (rocksdict) or duckdb.
"""

import os
import sys

RECORDS = 20
PLACE = "store"


def value(number):
    """What record `number` holds: 1,200 bytes."""
    return (f"{number:06}" * 200).encode()


class Lmdb:
    def __init__(self, sync):
        import lmdb

        os.makedirs(PLACE, exist_ok=True)
        self.store = lmdb.open(PLACE, map_size=16 << 20, sync=sync)

    def put(self, number):
        with self.store.begin(write=True) as transaction:
            transaction.put(b"%06d" % number, value(number))

    def all(self):
        with self.store.begin() as transaction:
            return [(int(key), bytes(held)) for key, held in transaction.cursor()]

    def close(self):
        self.store.close()


class LevelDb:
    def __init__(self, sync):
        import plyvel

        self.sync = sync
        self.store = plyvel.DB(PLACE, create_if_missing=True)

    def put(self, number):
        self.store.put(b"%06d" % number, value(number), sync=self.sync)

    def all(self):
        return [(int(key), held) for key, held in self.store]

    def close(self):
        self.store.close()


class RocksDb:
    def __init__(self, sync):
        import rocksdict

        options = rocksdict.Options(raw_mode=True)
        options.create_if_missing(True)
        self.store = rocksdict.Rdict(PLACE, options)
        self.how = rocksdict.WriteOptions()
        self.how.sync = sync

    def put(self, number):
        self.store.put(b"%06d" % number, value(number), write_opt=self.how)

    def all(self):
        return [(int(key), held) for key, held in self.store.items()]

    def close(self):
        self.store.close()


class DuckDb:
    def __init__(self, sync):
        # The module without what is written in Python: half of the time of a check in the emulated machine.
        import _duckdb as duckdb

        os.makedirs(PLACE, exist_ok=True)
        # One thread: a database starts as many as the machine has processors.
        modes = {"threads": 1, "fsync_mode": "STANDARD" if sync else "NONE"}
        self.store = duckdb.connect(f"{PLACE}/db", config=modes)
        self.store.execute("CREATE TABLE IF NOT EXISTS records (number INTEGER, held BLOB)")

    def put(self, number):
        self.store.execute("INSERT INTO records VALUES (?, ?)", [number, value(number)])

    def all(self):
        return self.store.execute("SELECT number, held FROM records ORDER BY number").fetchall()

    def close(self):
        self.store.close()


STORES = {"lmdb": Lmdb, "leveldb": LevelDb, "rocksdb": RocksDb, "duckdb": DuckDb}


def run(store, sync):
    store = store(sync)
    for number in range(RECORDS):
        store.put(number)
        print(f"stored {number}", flush=True)
    store.close()


def check(store):
    promised = len(sys.stdin.read().splitlines())
    if not os.path.exists(PLACE):
        wrong(1, "the store is gone") if promised else sys.exit(0)
    try:
        records = store(True).all()
    except Exception as problem:  # Each store has exceptions of its own.
        when = "" if promised else ", before anything was promised"
        said = " ".join(str(problem).split())
        wrong(2, f"the store does not open or read{when}: {type(problem).__name__} {said}")
    numbers = [number for number, _ in records]
    if any(number >= RECORDS or held != value(number) for number, held in records):
        wrong(2, "a record has what nobody stored")
    if numbers[:promised] != list(range(promised)):
        wrong(1, f"{promised - len([one for one in numbers if one < promised])} records are gone")
    if numbers != list(range(len(numbers))):
        wrong(2, "a record is there without one before it")
    sys.stdout.flush()
    os._exit(0)


def wrong(code, what):
    print(what, flush=True)
    # Not by an exception: closing a broken store may end the process otherwise.
    os._exit(code)


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in STORES or sys.argv[2] not in ("sync", "nosync", "check"):
        sys.exit(__doc__)
    store = STORES[sys.argv[1]]
    if sys.argv[2] == "check":
        check(store)
    else:
        run(store, sys.argv[2] == "sync")


main()
