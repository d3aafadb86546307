#!/usr/bin/env python3
"""Maps: a route between two places, nine steps closer, then pictures from above. As Google Maps in FAST'12.

Tiles are added to one file, at its end. Its index is written anew after each view. Searches and the route are rows.
"""
import common

VIEWS = 1 + 9 + 1
TILES = 8  # a view
TILE_BYTES = 2500
INDEX_BYTES = 4 * common.KB
SEARCHES = 3
VIEW_S = 1.5

SCHEMA = ("CREATE TABLE history(_id INTEGER PRIMARY KEY, place TEXT, seen INTEGER)", "CREATE TABLE views(_id INTEGER PRIMARY KEY, zoom INTEGER)")
DECLARED = common.Declared(
    files=2,
    file_bytes=VIEWS * (TILES * TILE_BYTES + INDEX_BYTES),
    commits=1 + SEARCHES + 1,
    file_syncs=VIEWS,
    received_bytes=VIEWS * TILES * TILE_BYTES + 30 * common.KB,
)


def run(app):
    database = app.database("databases/search_history.db", SCHEMA)
    for number in range(SEARCHES):
        app.receive(10 * common.KB)
        database.commit([("INSERT INTO history(place, seen) VALUES (?, ?)", (app.text(50), number))])
    for _ in range(VIEWS):
        for _ in range(TILES):
            app.receive(TILE_BYTES)
            app.write("cache/tiles", TILE_BYTES, mode="ab")
        app.write("cache/tiles.index", INDEX_BYTES, sync=True)
        app.think(VIEW_S)
    database.commit([("INSERT INTO views(zoom) VALUES (9)", ())])
    database.close()


if __name__ == "__main__":
    common.main(__doc__, DECLARED, run)
