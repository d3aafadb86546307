"""SQLAlchemy with waldio, over sqlite3 or aiosqlite.

    from waldio.sqlalchemy import create_engine
    engine = create_engine("sqlite:///app.db")

Every connection of the engine, the first one included, is in WAL mode with synchronous=FULL; one that waldio does not take care of
raises NotActiveError where it would be opened.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy
from sqlalchemy import event
from sqlalchemy.engine import Engine

import waldio

__all__ = ["configure", "create_async_engine", "create_engine"]


def create_engine(url: Any, *, durability: str = "full", **options: Any) -> Engine:
    """As sqlalchemy.create_engine. `durability`: as for waldio.connect."""
    return configure(sqlalchemy.create_engine(url, **options), durability)


def create_async_engine(url: Any, *, durability: str = "full", **options: Any) -> Any:
    """As sqlalchemy.ext.asyncio.create_async_engine, for `sqlite+aiosqlite:///app.db`."""
    from sqlalchemy.ext import asyncio

    engine = asyncio.create_async_engine(url, **options)
    configure(engine.sync_engine, durability)
    return engine


def configure(engine: Engine, durability: str = "full") -> Engine:
    """The same for an engine that somebody else made, before its first connection (of an AsyncEngine: its `sync_engine`)."""
    # At the event it is too late for the connection that is open then.
    waldio.register()

    @event.listens_for(engine, "connect")
    def _on_connect(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        try:
            waldio.settle(cursor, durability, str(engine.url.database))
        finally:
            cursor.close()

    return engine
