"""SQLAlchemy with a pool of threads as a client of waldio (the protocol is in ../driver.py)."""

import sys

import counted
import sqlalchemy
import waldio.sqlalchemy
from sqlalchemy import text

verb, database, library = sys.argv[1:]
create = waldio.sqlalchemy.create_engine if library else sqlalchemy.create_engine
engine = create(f"sqlite:///{database}", pool_size=4)
if verb == "insert":
    with engine.begin() as connection:
        connection.execute(text(counted.CREATE))
    while True:
        with engine.begin() as connection:
            row = connection.execute(text(counted.INSERT)).lastrowid
        print("ack", row, flush=True)
with engine.connect() as connection:
    for name, sql in counted.QUESTIONS.items():
        result = connection.execute(text(sql))
        counted.show(name, result.first() if result.returns_rows else None)
engine.dispose()
