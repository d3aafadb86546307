#!/usr/bin/env python3
"""Installs the wheel into fresh environments from its file, and shows that what it promises holds there; ends with a count line.

    packages/python/test_wheel.py      with the library WALDIO_LIBRARY, or target/release/libwaldio.so

Each Python that is here has its own: Debian's loads extensions, pyenv's does not and is helped.
"""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
LIBRARY = pathlib.Path(os.environ.get("WALDIO_LIBRARY", TARGET / "release/libwaldio.so")).resolve()
# Not /tmp, which is often memory.
PLACE = os.environ.get("JOJ_TEST_DIR", "/var/tmp")

sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))
import build_wheel  # noqa: E402
import stand_in  # noqa: E402

PRELUDE = """
import os, sqlite3, waldio
def refused(error, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except error as found:
        return str(found)
    raise AssertionError(f"nothing was raised: {arguments} {options}")
"""

PROMISES = {
    "connect_gives_a_connection_whose_commits_go_through_waldio": """
        with waldio.connect("app.db") as db:
            assert waldio.state(db).startswith("active: with synchronous=FULL"), waldio.state(db)
            db.execute("CREATE TABLE t(a)")
            db.execute("INSERT INTO t VALUES (1)")
        assert db.execute("PRAGMA synchronous").fetchone()[0] == 2
        rows = db.execute("SELECT value FROM waldio_status WHERE name = 'commits'").fetchall()
        assert rows == [(2,)], rows
        db.close()
        again = waldio.connect("app.db", timeout=1.5)
        assert waldio.state(again).startswith("active:"), "a database that has WAL mode already"
        assert again.execute("SELECT a FROM t").fetchall() == [(1,)]
    """,
    "options_reach_waldio_and_sqlite3": """
        db = waldio.connect("a b%20&c?.db", durability="bounded", log_bytes=1 << 20, group_commit=False, isolation_level=None)
        asked = [db.execute(f"PRAGMA waldio_{name}").fetchone()[0] for name in ("durability", "log_bytes", "group_commit")]
        assert asked == ["bounded", "1048576", "0"], asked
        assert db.isolation_level is None and os.path.exists("a b%20&c?.db")
        assert "COMMIT does not wait" in waldio.state(db)
        refused(sqlite3.OperationalError, waldio.connect, "b.db", durability="always")
        refused(TypeError, waldio.connect, "b.db", no_such_option=1)
    """,
    "connect_raises_where_waldio_is_not_active": """
        for name, uri, reason in [
            (":memory:", False, "inactive"),
            ("file:a.db?vfs=unix", True, "goes past waldio"),
            ("file:a.db?waldio=off", True, "goes past waldio"),
        ]:
            told = refused(waldio.NotActiveError, waldio.connect, name, uri=uri)
            assert reason in told, told
        waldio.connect("file:a.db?cache=private", uri=True).close()
        # A rollback journal that a reader keeps.
        plain = sqlite3.connect("file:locked.db?vfs=unix", uri=True, isolation_level=None)
        plain.execute("CREATE TABLE t(a)")
        plain.execute("BEGIN EXCLUSIVE")
        refused(sqlite3.OperationalError, waldio.connect, "locked.db", timeout=0.1)
    """,
    "after_register_what_is_opened_has_waldio": """
        early = sqlite3.connect("early.db")
        waldio.register()
        waldio.register()
        late = sqlite3.connect("late.db")
        late.execute("PRAGMA journal_mode=WAL")
        late.execute("CREATE TABLE t(a)")
        assert waldio.state(late).startswith("active:"), waldio.state(late)
        assert waldio.state(early).startswith("inactive:"), waldio.state(early)
    """,
    "load_is_for_a_connection_in_memory": """
        if hasattr(sqlite3.Connection, "enable_load_extension"):
            early = sqlite3.connect("early.db")
            assert "not active on this connection" in refused(sqlite3.OperationalError, waldio.load, early)
            refused(sqlite3.OperationalError, early.execute, "SELECT load_extension('x')")
            waldio.load(sqlite3.connect(":memory:"))
            late = sqlite3.connect("late.db")
            late.execute("PRAGMA journal_mode=WAL")
            late.execute("CREATE TABLE t(a)")
            assert waldio.state(late).startswith("active:")
        else:
            assert "register()" in refused(waldio.NotActiveError, waldio.load, sqlite3.connect(":memory:"))
    """,
    "with_autoload_every_program_has_it": """
        import subprocess, sys
        def python(*arguments, **variables):
            result = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env={**os.environ, **variables})
            assert result.returncode == 0, result.stderr
            return result.stdout.strip(), result.stderr.strip()
        program = (
            "import sqlite3; db = sqlite3.connect('app.db'); db.execute('PRAGMA journal_mode=WAL'); "
            "db.execute('CREATE TABLE IF NOT EXISTS t(a)'); print(*db.execute('PRAGMA waldio'))"
        )
        assert python("-m", "waldio", "autoload", "state") == ("off", "")
        assert python("-c", program) == ("", "")
        told, _ = python("-m", "waldio", "autoload", "on")
        try:
            assert told.startswith("on: "), told
            out, said = python("-c", program)
            assert out.startswith("('active:") and said == "", (out, said)
            assert python("-c", program, WALDIO_AUTOLOAD="off") == ("", "")
            for first in ["import waldio", "from waldio import connect", "import sqlite3, waldio"]:
                out, said = python("-c", f"{first}; {program}")
                assert out.startswith("('active:") and said == "", (first, out, said)
            # The program goes on, and is told.
            out, said = python("-c", program, WALDIO_PERSIST="flsh")
            assert out == "" and "not active in this program" in said and "auto, flush or fua" in said, (out, said)
            # Who does not import sqlite3 pays nothing.
            out, _ = python("-c", "import sys; print('waldio' in sys.modules, '_sqlite3' in sys.modules)")
            assert out == "False False", out
            out, _ = python("-c", "import sqlite3, inspect; print(inspect.getsource(sqlite3)[:1], sqlite3.__loader__.__class__.__name__)")
            assert out.endswith("SourceFileLoader"), out
            # The package has gone, and the file that asks for it has not.
            os.rename(os.path.join(os.path.dirname(told[4:]), "_waldio_autoload.py"), "kept")
            try:
                _, said = python("-B", "-c", "pass")
                assert "waldio is not installed any more" in said, said
            finally:
                os.rename("kept", os.path.join(os.path.dirname(told[4:]), "_waldio_autoload.py"))
        finally:
            assert python("-m", "waldio", "autoload", "off") == ("off", "")
        assert python("-c", program) == ("", "")
    """,
    "settle_is_for_connections_that_others_open": """
        waldio.register()
        db = sqlite3.connect("app.db")
        waldio.settle(db.cursor(), "bounded")
        assert "COMMIT does not wait" in waldio.state(db)
        waldio.settle(sqlite3.connect("full.db").cursor())
        assert "memory" in refused(waldio.NotActiveError, waldio.settle, sqlite3.connect(":memory:").cursor(), "full", "memory")
        refused(sqlite3.OperationalError, waldio.settle, db.cursor(), "always")
        refused(ValueError, waldio.settle, db.cursor(), "full; DROP TABLE t")
    """,
    "a_wrong_variable_is_an_error": """
        os.environ["WALDIO_PERSIST"] = "flsh"
        assert "auto, flush or fua" in refused(sqlite3.OperationalError, waldio.register)
        del os.environ["WALDIO_PERSIST"]
        waldio.connect("app.db").close()
    """,
    "the_package_says_its_version_and_where_its_library_is": f"""
        assert waldio.__version__ == {build_wheel.version()!r}, waldio.__version__
        assert os.path.isfile(waldio.loadable_path()) and waldio.loadable_path().endswith(".so")
        assert os.path.exists(os.path.join(os.path.dirname(waldio.__file__), "py.typed"))
    """,
}


def pythons():
    """Programs that differ, by the SQLite that they have and whether it may load extensions."""
    found = {}
    for name in ["/usr/bin/python3", sys.executable, "python3"]:
        path = shutil.which(name)
        if path:
            found.setdefault(os.path.realpath(path), path)
    return list(found.values())


class Wheel(unittest.TestCase):
    """The file itself."""

    def setUp(self):
        self.work = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(dir=PLACE)))

    def enterContext(self, context):  # Python 3.11 has it.
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        return stack.enter_context(context)

    def test_two_builds_are_the_same(self):
        one, other = (build_wheel.build(LIBRARY, self.work / name) for name in "ab")
        self.assertEqual(one.name, other.name)
        self.assertEqual(one.read_bytes(), other.read_bytes())

    def test_the_tag_is_what_the_library_needs(self):
        wheel = build_wheel.build(LIBRARY, self.work)
        tag = re.fullmatch(r"waldio-[\d.]+-py3-none-manylinux_(\d+)_(\d+)_(x86_64|aarch64)\.whl", wheel.name)
        self.assertIsNotNone(tag, wheel.name)
        with zipfile.ZipFile(wheel) as archive:
            library = archive.read("waldio/libwaldio.so")
        asked = max((int(major), int(minor)) for major, minor in re.findall(rb"GLIBC_(\d+)\.(\d+)", library))
        self.assertEqual((int(tag[1]), int(tag[2])), asked)
        self.assertEqual(library[4], 2, "64 bits")
        self.assertEqual(library[18], {"x86_64": 62, "aarch64": 183}[tag[3]])

    def test_a_library_for_musl_has_its_tag_and_needs_nothing_else(self):
        wheel = build_wheel.build(stand_in.musl_library(self.work / "musl"), self.work)
        self.assertRegex(wheel.name, r"^waldio-[\d.]+-py3-none-musllinux_1_2_(x86_64|aarch64)\.whl$")
        for name, more in [("unwinder", "-lgcc_s"), ("glibc", "-l:libc.so.6")]:
            with self.assertRaises(SystemExit, msg=name):
                build_wheel.build(stand_in.musl_library(self.work / name, more), self.work)

    def test_what_is_no_library_of_that_kind_is_refused(self):
        for name, content in [("text.so", b"text"), ("narrow.so", b"\x7fELF\x01\x01" + bytes(60))]:
            path = self.work / name
            path.write_bytes(content)
            with self.assertRaises(SystemExit):
                build_wheel.build(path, self.work)


def promise(python, name, code):
    """A test that runs code in the environment of one Python."""

    def test(self):
        if python in self.reasons:
            self.skipTest(self.reasons[python])
        with tempfile.TemporaryDirectory(dir=PLACE) as work:
            program = PRELUDE + textwrap.dedent(code)
            clean = {key: value for key, value in os.environ.items() if not key.startswith(("WALDIO_", "PYTHON"))}
            result = subprocess.run(
                [self.environments[python], "-c", program], cwd=work, env=clean, capture_output=True, text=True, timeout=60
            )
            self.assertEqual(result.returncode, 0, f"{python}: {result.stderr}")

    test.__name__ = f"test_{name}"
    return test


class Installed(unittest.TestCase):
    """The package in an environment of its own."""

    environments: dict = {}
    reasons: dict = {}

    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.mkdtemp(dir=PLACE)
        cls.addClassCleanup(shutil.rmtree, cls.work)
        wheel = build_wheel.build(LIBRARY, pathlib.Path(cls.work))
        for number, python in enumerate(pythons()):
            place = pathlib.Path(cls.work, str(number))
            made = subprocess.run([python, "-m", "venv", place], capture_output=True, text=True)
            if made.returncode != 0:
                cls.reasons[python] = f"{python} makes no environment: {made.stdout.strip()}"
                continue
            pip = [place / "bin/python", "-m", "pip", "--disable-pip-version-check", "install", "--no-index", wheel]
            subprocess.run(pip, check=True, capture_output=True)
            cls.environments[python] = place / "bin/python"


for number, python in enumerate(pythons()):
    for name, code in PROMISES.items():
        setattr(Installed, f"test_{name}_{number}", promise(python, name, code))


if __name__ == "__main__":
    if not LIBRARY.is_file():
        sys.exit(f"{LIBRARY} is not there: make extension")
    # As `make packages` has it: packing its debug information takes seconds.
    small = tempfile.TemporaryDirectory(dir=PLACE)
    subprocess.run(["strip", "-o", f"{small.name}/libwaldio.so", LIBRARY], check=True)
    LIBRARY = pathlib.Path(small.name, "libwaldio.so")
    outcome = unittest.main(exit=False, verbosity=1).result
    failed = len(outcome.failures) + len(outcome.errors)
    for _, reason in outcome.skipped:
        print(f"SKIPPED wheel: {reason}")
    for test, _ in outcome.failures + outcome.errors:
        print(f"FAILED wheel: {test}")
    print(f"{outcome.testsRun - failed - len(outcome.skipped)} passed, {failed} failed, {len(outcome.skipped)} skipped")
    sys.exit(failed > 0)
