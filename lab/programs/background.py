#!/usr/bin/env python3
"""Two hours in the background: six apps and eight widgets ask their servers and keep what they got. As FAST'12's Fig. 10.

They receive 1.6 MB together. Each time an app keeps some rows, and then when it asked last, both commits.
"""
import common

SECONDS = 7200
RECEIVED_BYTES = 1_600_000
# Every so many seconds, with so many rows.
SYNCED = {"twitter": (300, 4), "books": (1800, 2), "contacts": (1800, 3), "gmail": (300, 4), "picasa": (1800, 2), "calendar": (900, 2)}
WIDGETS = {name: (900, 2) for name in ("pulse", "news", "weather", "youtube", "agenda", "facebook", "market", "tweets")}
APPS = {**SYNCED, **WIDGETS}
KEPT_ROWS = 60

SCHEMA = ("CREATE TABLE items(_id INTEGER PRIMARY KEY, body TEXT)", "CREATE TABLE state(_id INTEGER PRIMARY KEY, asked INTEGER)")
TIMES = {name: SECONDS // every for name, (every, _) in APPS.items()}
DECLARED = common.Declared(
    files=0,
    file_bytes=0,
    commits=len(APPS) + sum(TIMES[name] * (rows + 1) for name, (_, rows) in APPS.items()),
    received_bytes=RECEIVED_BYTES,
)


def run(app):
    databases = {name: app.database(f"databases/{name}.db", SCHEMA) for name in APPS}
    written = dict.fromkeys(APPS, 0)
    events = sorted((number * every, name) for name, (every, _) in APPS.items() for number in range(TIMES[name]))
    size = RECEIVED_BYTES // len(events)
    now = 0
    for second, name in events:
        app.think(second - now)
        now = second
        app.receive(size)
        for _ in range(APPS[name][1]):
            row = (written[name] % KEPT_ROWS + 1, app.text(500))
            databases[name].commit([("REPLACE INTO items VALUES (?, ?)", row)])
            written[name] += 1
        databases[name].commit([("REPLACE INTO state VALUES (1, ?)", (second,))])
    app.think(SECONDS - now)
    for database in databases.values():
        database.close()


if __name__ == "__main__":
    common.main(__doc__, DECLARED, run)
