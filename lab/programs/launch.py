#!/usr/bin/env python3
"""The start of an app: it reads its package and its data, works, and keeps some rows; some of these come from the network.

Four of the ten of FAST'12's Table 4: a game, the weather, Twitter, Gmail. What an app receives, and how long it works, is chosen here. How
many rows it keeps is fitted to Fig. 7: how far the slowest card is behind the fastest.
"""
import sys

import common

SCHEMA = ("CREATE TABLE items(_id INTEGER PRIMARY KEY, sender TEXT, body TEXT)",)
DATABASE = "databases/items.db"
#: Of a file with the app's settings, which nobody syncs.
STATE_BYTES = 1 * common.KB


class Start:
    """What one app does at its start."""

    def __init__(self, package_bytes, data_files, data_bytes, work_s, received_bytes, rows):
        self.package_bytes, self.data_files, self.data_bytes = package_bytes, data_files, data_bytes
        self.work_s, self.received_bytes, self.rows = work_s, received_bytes, rows
        self.declared = common.Declared(
            files=2 + data_files,
            file_bytes=STATE_BYTES,
            read_bytes=package_bytes + data_files * data_bytes,
            commits=rows,
            received_bytes=received_bytes,
        )

    def prepare(self, app):
        app.write("app/package.apk", self.package_bytes, sync=True)
        for number in range(self.data_files):
            app.write(f"data/file{number}", self.data_bytes, sync=True)
        app.database(DATABASE, SCHEMA).close()

    def run(self, app):
        app.read("app/package.apk")
        app.think(self.work_s / 2)
        for number in range(self.data_files):
            app.read(f"data/file{number}")
        app.receive(self.received_bytes)
        if self.rows:
            database = app.database(DATABASE)
            for number in range(self.rows):
                row = (f"sender{number}@example", app.text(600))
                database.commit([("INSERT INTO items(sender, body) VALUES (?, ?)", row)])
            database.close()
        app.write("data/state", STATE_BYTES)
        app.think(self.work_s / 2)


STARTS = {
    "game": Start(23_540_000, 20, 100 * common.KB, 10, 0, 0),
    "weather": Start(2_600_000, 10, 20 * common.KB, 2, 200 * common.KB, 0),
    "twitter": Start(1_360_000, 10, 20 * common.KB, 2, 150 * common.KB, 1),
    "gmail": Start(2_140_000, 10, 20 * common.KB, 2, 300 * common.KB, 2),
}

if __name__ == "__main__":
    chosen = [sys.argv.pop(at) for at, word in reversed(list(enumerate(sys.argv))) if word in STARTS]
    start = STARTS[chosen[0] if chosen else "game"]
    common.main(__doc__ + f"\nFirst: {', '.join(STARTS)}.", start.declared, start.run, start.prepare)
