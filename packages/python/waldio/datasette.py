"""A plugin for Datasette, in a file of its --plugins-dir:

    from waldio.datasette import prepare_connection

Importing it loads waldio, before Datasette opens a database. Each connection that writes is in WAL mode with synchronous=FULL, or
raises NotActiveError. Those that only read, and databases in memory, need no waldio.
"""

from __future__ import annotations

import sqlite3

from datasette import hookimpl

import waldio

__all__ = ["prepare_connection"]

waldio.register()


@hookimpl
def prepare_connection(conn: sqlite3.Connection, database: str) -> None:
    """Datasette calls this for each connection that it has opened."""
    main = next((row for row in conn.execute("PRAGMA database_list") if row[1] == "main"), None)
    if main is None or not main[2]:
        return
    if _may_write(conn):
        waldio.settle(conn.cursor(), "full", database)


def _may_write(conn: sqlite3.Connection) -> bool:
    """SQLite begins a transaction for writing in any case; what is to be written here is taken back."""
    conn.execute("BEGIN IMMEDIATE")
    try:
        version = conn.execute("PRAGMA user_version").fetchone()[0]
        conn.execute(f"PRAGMA user_version={version}")
    except sqlite3.OperationalError as error:
        if "readonly" in str(error):
            return False
        raise
    finally:
        conn.execute("ROLLBACK")
    return True
