"""SQLAlchemy over aiosqlite as a client of waldio (the protocol is in ../driver.py)."""

import asyncio
import sys

import counted
import waldio.sqlalchemy
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

verb, database, library = sys.argv[1:]


async def main():
    create = waldio.sqlalchemy.create_async_engine if library else create_async_engine
    engine = create(f"sqlite+aiosqlite:///{database}")
    if verb == "insert":
        async with engine.begin() as connection:
            await connection.execute(text(counted.CREATE))
        while True:
            async with engine.begin() as connection:
                row = (await connection.execute(text(counted.INSERT))).lastrowid
            print("ack", row, flush=True)
    async with engine.connect() as connection:
        for name, sql in counted.QUESTIONS.items():
            result = await connection.execute(text(sql))
            counted.show(name, result.first() if result.returns_rows else None)
    await engine.dispose()


asyncio.run(main())
