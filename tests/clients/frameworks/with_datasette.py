"""Datasette with the plugin as a client of waldio (the protocol is in ../driver.py)."""

import asyncio
import pathlib
import sqlite3
import sys
import tempfile

import counted
from datasette.app import Datasette

verb, database, library = sys.argv[1:]


def insert(connection):
    with connection:  # Datasette leaves the COMMIT to the function
        return connection.execute(counted.INSERT).lastrowid


async def main(plugins):
    if library:
        pathlib.Path(plugins, "with_waldio.py").write_text("from waldio.datasette import prepare_connection\n")
    if not pathlib.Path(database).exists():
        sqlite3.connect(database).execute(counted.CREATE)
    app = Datasette([database], plugins_dir=plugins)
    db = app.get_database(pathlib.Path(database).stem)
    if verb == "insert":
        while True:
            row = await db.execute_write_fn(insert)
            print("ack", row, flush=True)
    for name, sql in counted.QUESTIONS.items():
        # By the connection that writes, whose commits it is about.
        counted.show(name, await db.execute_write_fn(lambda connection, sql=sql: connection.execute(sql).fetchone()))
    db.close()


with tempfile.TemporaryDirectory() as plugins:
    asyncio.run(main(plugins))
