"""waldio: a SQLite extension that makes durable commits faster where several connections write.

    import waldio
    connection = waldio.connect("app.db")

`connect` opens a database and raises where waldio does not take care of its commits. `register` is for frameworks that open their
connections themselves: what the process opens after it has waldio. `load` is for a connection of your own. waldio.sqlalchemy,
waldio.django and waldio.datasette are for these frameworks. See docs/usage.md of the project for what a COMMIT is worth with each
option.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
import sys
import threading
from typing import Any
from urllib.parse import quote

__all__ = ["NotActiveError", "connect", "load", "loadable_path", "register", "settle", "state"]
__version__ = "@VERSION@"

#: What waldio itself takes, without `waldio_` in front; everything else goes to sqlite3.connect.
OPTIONS = frozenset(
    ["db_chunk", "durable_reads", "fill", "group", "group_commit", "layout", "log_bytes", "persist", "strict"]
)

_registering = threading.Lock()
_is_registered = False


class NotActiveError(sqlite3.OperationalError):
    """The connection would work without waldio. The message says why."""


def loadable_path() -> str:
    """The extension's file, as `load_extension` takes it."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "libwaldio.so")


def load(connection: sqlite3.Connection) -> None:
    """Loads waldio through a connection: all databases that the process opens afterwards have it.

    The connection's own database has to be in memory. Where it is a file that is open without waldio, this raises
    sqlite3.OperationalError: open it after `register` instead.
    """
    if not hasattr(connection, "enable_load_extension"):
        raise NotActiveError("this Python's sqlite3 cannot load extensions into a connection: call waldio.register() instead")
    connection.enable_load_extension(True)
    try:
        connection.load_extension(loadable_path())
    finally:
        connection.enable_load_extension(False)


def register() -> None:
    """Loads waldio into this process, once: all databases that it opens with sqlite3 afterwards have it.

    Raises NotActiveError where this Python's SQLite cannot load extensions, and sqlite3.OperationalError where waldio refuses, for
    instance because of a wrong value in a WALDIO_ variable.
    """
    global _is_registered
    with _registering:
        if _is_registered:
            return
        if hasattr(sqlite3.Connection, "enable_load_extension"):
            connection = sqlite3.connect(":memory:")
            try:
                load(connection)
            finally:
                connection.close()
        else:
            _load_past_python()
        _is_registered = True


def _load_past_python() -> None:
    """The same through SQLite's own functions: some Pythons (pyenv's) are built without `load_extension`."""
    sqlite3.connect(":memory:").close()
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        paths = [line.split(maxsplit=5)[-1].strip() for line in maps]
    library = next((path for path in paths if os.path.basename(path).startswith("libsqlite3.so")), None)
    if library is None:
        raise NotActiveError(
            "this Python has a SQLite of its own inside, which cannot load extensions: take another Python, such as the system's"
        )
    sqlite = ctypes.CDLL(library)
    sqlite.sqlite3_free.argtypes = [ctypes.c_void_p]
    database, message = ctypes.c_void_p(), ctypes.c_void_p()
    try:
        if sqlite.sqlite3_open(b":memory:", ctypes.byref(database)) != 0:
            raise NotActiveError("SQLite cannot open a database in memory")
        sqlite.sqlite3_enable_load_extension(database, 1)
        path = os.fsencode(loadable_path())
        if sqlite.sqlite3_load_extension(database, path, None, ctypes.byref(message)) != 0:
            text = ctypes.string_at(message.value).decode(errors="replace") if message.value else "no message"
            raise sqlite3.OperationalError(text)
    finally:
        sqlite.sqlite3_free(message)
        sqlite.sqlite3_close(database)


def state(connection: sqlite3.Connection) -> str:
    """One word and a sentence: `active: ..`, `waiting: ..` (no log open yet), `inactive: ..`, `failed: ..`."""
    return _told(connection.execute("PRAGMA waldio").fetchone())


def _told(row: Any) -> str:
    """What `PRAGMA waldio` gave. SQLite alone does not know it."""
    return row[0] if row else "inactive: this connection goes past waldio: its URI says so, or it was opened before waldio was loaded"


def settle(cursor: Any, durability: str = "full", name: str = "") -> None:
    """Brings a connection that a framework has opened into WAL mode, and raises NotActiveError where waldio does not take care of it.

    `cursor`: of that connection, outside of a transaction. `durability`: as for connect. `name`: the database's, for the message.
    """
    if durability != "full":
        if not durability.isalpha():
            raise ValueError(f"durability is full, bounded or normal, not {durability!r}")
        cursor.execute(f"PRAGMA waldio_durability={durability}")
    _open_log(cursor, durability == "full", name)


def _open_log(cursor: Any, is_full: bool, name: str) -> None:
    statements = ["PRAGMA journal_mode=WAL"] + ["PRAGMA synchronous=FULL"] * is_full
    # The last one opens the log of a database that had this mode already.
    for sql in [*statements, "SELECT count(*) FROM sqlite_master"]:
        cursor.execute(sql)
        if cursor.description:
            cursor.fetchone()
    cursor.execute("PRAGMA waldio")
    told = _told(cursor.fetchone())
    if not told.startswith("active:"):
        raise NotActiveError(f"{name}: {told}")


def connect(
    database: str | os.PathLike[str],
    *,
    durability: str = "full",
    uri: bool = False,
    **options: Any,
) -> sqlite3.Connection:
    """Opens a database in WAL mode, with waldio.

    `durability`: what a COMMIT is worth after a power cut: "full" (it is there), "bounded" (the last 10 ms and a flush or two may be lost) or "normal".
    `uri`: `database` is a URI, as for sqlite3.connect.
    `options`: waldio's (OPTIONS, for example log_bytes=1048576), and those of sqlite3.connect.

    Raises NotActiveError, with the connection closed, where waldio does not take care of its commits: a database in memory, a URI
    with `waldio=off` or another VFS.
    """
    register()
    own = {name: options.pop(name) for name in sorted(OPTIONS.intersection(options))}
    own["durability"] = durability
    name = os.fspath(database)
    if not uri:
        # "//server" would be a machine's name.
        name = "file:" + quote(os.path.abspath(name)) if name not in ("", ":memory:") else "file::memory:"
    parameters = "&".join(f"waldio_{option}={quote(_text(value))}" for option, value in own.items())
    connection = sqlite3.connect(f"{name}{'&' if '?' in name else '?'}{parameters}", uri=True, **options)
    try:
        _open_log(connection.cursor(), durability == "full", str(database))
    except BaseException:
        connection.close()
        raise
    return connection


def _text(value: Any) -> str:
    """An option's value as waldio has it."""
    return str(int(value)) if isinstance(value, bool) else str(value)


# `python -m waldio autoload on`, and a program that imported sqlite3.
if "_waldio_autoload" in sys.modules and os.environ.get("WALDIO_AUTOLOAD") != "off":
    sys.modules["_waldio_autoload"].register(sys.modules[__name__])
