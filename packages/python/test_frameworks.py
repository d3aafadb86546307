#!/usr/bin/env python3
"""Shows that a framework's connection that waldio does not take care of is an error, and that each of a pool has it; ends with a
count line.

    packages/python/test_frameworks.py      in the environment of tests/clients/run.sh sqlalchemy, which has them and the wheel

tests/clients kills the same frameworks and counts.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PYTHON = TARGET / "clients/frameworks/venv/bin/python"
# Not /tmp, which is often memory.
PLACE = os.environ.get("JOJ_TEST_DIR", "/var/tmp")

DJANGO = """
import django, sys, waldio
from django.conf import settings
def configured(**database):
    settings.configure(DATABASES={"default": {"ENGINE": "waldio.django", **database}})
    django.setup()
    from django.db import connection
    return connection
"""

PROMISES = {
    "each_connection_of_sqlalchemys_pool_has_waldio_and_full": """
        import waldio, waldio.sqlalchemy
        from sqlalchemy import text
        engine = waldio.sqlalchemy.create_engine("sqlite:///app.db", pool_size=5)
        connections = [engine.connect() for _ in range(5)]
        for connection in connections:
            assert connection.execute(text("PRAGMA waldio")).scalar().startswith("active: with synchronous=FULL")
        assert len({id(c.connection.dbapi_connection) for c in connections}) == 5
    """,
    "sqlalchemy_raises_where_waldio_is_not_active": """
        import waldio, waldio.sqlalchemy
        for url in ["sqlite://", "sqlite:///file:app.db?vfs=unix&uri=true", "sqlite:///file:app.db?waldio=off&uri=true"]:
            try:
                waldio.sqlalchemy.create_engine(url).connect()
            except Exception as error:
                assert "inactive" in str(error), (url, error)
            else:
                raise AssertionError(url)
    """,
    "sqlalchemys_durability_is_waldios": """
        import waldio.sqlalchemy
        from sqlalchemy import text
        engine = waldio.sqlalchemy.create_engine("sqlite:///app.db", durability="bounded")
        with engine.connect() as connection:
            assert "COMMIT does not wait" in connection.execute(text("PRAGMA waldio")).scalar()
    """,
    "django_has_it_in_each_thread": DJANGO
    + """
        import threading
        connection = configured(NAME="app.db", OPTIONS={"durability": "bounded", "timeout": 20})
        told = []
        def ask():
            with connection.cursor() as cursor:
                cursor.execute("PRAGMA waldio")
                told.append(cursor.fetchone()[0])
            connection.close()
        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert len(told) == 3 and all("COMMIT does not wait" in words for words in told), told
    """,
    "django_raises_where_waldio_is_not_active": DJANGO
    + """
        connection = configured(NAME="file:app.db?waldio=off", OPTIONS={"uri": True})
        try:
            connection.ensure_connection()
        except Exception as error:
            assert "inactive" in str(error), error
        else:
            raise AssertionError("nothing was raised")
    """,
    "djangos_tests_keep_their_database_in_memory": DJANGO
    + """
        connection = configured(NAME="app.db", TEST={"NAME": None})
        name = connection.creation.create_test_db(verbosity=0, autoclobber=True)
        assert "memory" in name, name
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        connection.creation.destroy_test_db("app.db", verbosity=0)
    """,
    "datasette_serves_what_it_only_reads": """
        import asyncio, pathlib, sqlite3
        from datasette.app import Datasette
        db = sqlite3.connect("app.db")
        db.executescript("CREATE TABLE t(a); INSERT INTO t VALUES (7)")
        pathlib.Path("plugins").mkdir()
        pathlib.Path("plugins/with_waldio.py").write_text("from waldio.datasette import prepare_connection")
        app = Datasette([], immutables=["app.db"], plugins_dir="plugins")
        async def ask():
            response = await app.client.get("/app/t.json?_shape=array")
            assert response.json()[0]["a"] == 7, response.text
        asyncio.run(ask())
        # Nothing was changed: its journal mode neither, as of a database that is served to be read only.
        db.execute("CREATE TABLE u(a)")
        assert db.execute("PRAGMA journal_mode").fetchone()[0] == "delete"
        reader = Datasette(["app.db"], plugins_dir="plugins")
        async def read():
            assert (await reader.client.get("/app/t.json?_shape=array")).json()[0]["a"] == 7
        asyncio.run(read())
        assert any(plugin["name"] == "with_waldio.py" for plugin in app._plugins(all=True))
    """,
}


class Frameworks(unittest.TestCase):
    pass


def promise(code):
    def test(self):
        if not PYTHON.exists():
            self.skipTest(f"{PYTHON} is not there: tests/clients/run.sh sqlalchemy makes it, from PyPI")
        with tempfile.TemporaryDirectory(dir=PLACE) as work:
            clean = {key: value for key, value in os.environ.items() if not key.startswith(("WALDIO_", "PYTHON"))}
            result = subprocess.run([PYTHON, "-c", code], cwd=work, env=clean, capture_output=True, text=True, timeout=60)
            self.assertEqual(result.returncode, 0, result.stderr)

    return test


for name, code in PROMISES.items():
    # The prelude stands at the margin, the rest does not.
    prelude, rest = (DJANGO, code[len(DJANGO) :]) if code.startswith(DJANGO) else ("", code)
    setattr(Frameworks, f"test_{name}", promise(prelude + textwrap.dedent(rest)))


if __name__ == "__main__":
    outcome = unittest.main(exit=False, verbosity=1).result
    failed = len(outcome.failures) + len(outcome.errors)
    for _, reason in outcome.skipped:
        print(f"SKIPPED frameworks: {reason}")
    for test, _ in outcome.failures + outcome.errors:
        print(f"FAILED frameworks: {test}")
    print(f"{outcome.testsRun - failed - len(outcome.skipped)} passed, {failed} failed, {len(outcome.skipped)} skipped")
    sys.exit(failed > 0)
