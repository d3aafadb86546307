#!/usr/bin/env python3
"""A feed: sign in, load it, five times more of it, sign out. As Facebook's app in FAST'12.

Each story is a row, each picture a file of the cache and a row that says so, all of them commits of their own.
"""
import common

LOADS = 6
STORIES = 10  # a load
PICTURES = 12  # a load
PICTURE_BYTES = 2 * common.MB
SIGN_IN_COMMITS = 4
# With it there are 3.1 commits a second, as in MobiGen's published recording of Facebook: 365 in 118 s.
LOAD_S = 7.0

SCHEMA = (
    "CREATE TABLE stories(_id INTEGER PRIMARY KEY, author TEXT, body TEXT, likes INTEGER)",
    "CREATE TABLE pictures(url TEXT PRIMARY KEY, file TEXT, size INTEGER)",
    "CREATE TABLE settings(name TEXT PRIMARY KEY, value TEXT)",
)
DECLARED = common.Declared(
    files=LOADS * PICTURES,
    file_bytes=PICTURE_BYTES,
    commits=1 + SIGN_IN_COMMITS + LOADS * (STORIES + PICTURES) + 1,
    received_bytes=PICTURE_BYTES + LOADS * 60 * common.KB,
)


def run(app):
    database = app.database("databases/fb.db", SCHEMA)
    sizes = common.shares(PICTURE_BYTES, LOADS * PICTURES, app.random)
    for number in range(SIGN_IN_COMMITS):
        app.receive(10 * common.KB)
        database.commit([("INSERT INTO settings VALUES (?, ?)", (f"setting{number}", app.text(80)))])
    for load in range(LOADS):
        app.receive(60 * common.KB)
        for _ in range(STORIES):
            story = (app.text(24), app.text(400), 0)
            database.commit([("INSERT INTO stories(author, body, likes) VALUES (?, ?, ?)", story)])
        for number in range(load * PICTURES, (load + 1) * PICTURES):
            app.receive(sizes[number])
            app.write(f"cache/pictures/{number}", sizes[number])
            picture = (f"http://pictures.example/{app.text(60)}", str(number), sizes[number])
            database.commit([("INSERT INTO pictures VALUES (?, ?, ?)", picture)])
        app.think(LOAD_S)
    database.commit([("DELETE FROM settings WHERE name <> 'setting0'", ())])
    database.close()


if __name__ == "__main__":
    common.main(__doc__, DECLARED, run)
