#!/usr/bin/env python3
"""Runs programs under libwaldio-preload.so and shows that waldio is active in them, or that they are told why not; ends with a
count line.

    packages/preload/test_preload.py      with the library WALDIO_LIBRARY, or target/release/libwaldio.so

The programs know nothing of waldio: the sqlite3 shell, Python, and small ones in C that link SQLite in each way.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
LIBRARY = pathlib.Path(os.environ.get("WALDIO_LIBRARY", TARGET / "release/libwaldio.so")).resolve()
# Not /tmp, which is often memory.
PLACE = os.environ.get("JOJ_TEST_DIR", "/var/tmp")
ACTIVE = "active: with synchronous=FULL a COMMIT is on the disk when it returns"
OWN = "SQLite that waldio cannot reach"

#: A program that opens its argument as often as it is told, with a restart of SQLite between, and prints what waldio says.
OPENS = """
#include <sqlite3.h>
#include <stdio.h>
static int show(void *none, int count, char **values, char **names) { return (void)none, (void)count, (void)names, puts(values[0]), 0; }
int main(int count, char **arguments) {
    if (sqlite3_config(SQLITE_CONFIG_SERIALIZED) != SQLITE_OK) return 3;
    for (int i = 1; i < count; i++) {
        sqlite3 *db;
        if (sqlite3_open(arguments[i], &db) != SQLITE_OK) return 4;
        if (sqlite3_exec(db, "PRAGMA journal_mode=WAL; CREATE TABLE IF NOT EXISTS t(a); INSERT INTO t VALUES(1)", 0, 0, 0)) return 5;
        sqlite3_exec(db, "PRAGMA waldio", show, 0, 0);
        if (sqlite3_close(db) != SQLITE_OK || sqlite3_shutdown() != SQLITE_OK) return 6;
    }
    return 0;
}
"""
#: Opens a database by a library that needs another SQLite than the program.
PLUGIN = """
#include <sqlite3.h>
int plugin(const char *name) {
    sqlite3 *db;
    if (sqlite3_open(name, &db) != SQLITE_OK) return 4;
    if (sqlite3_exec(db, "PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES(1)", 0, 0, 0) != SQLITE_OK) return 5;
    return sqlite3_close(db);
}
"""
#: Opens a database by each of the libraries that it is given, before each its name.
HOST = """
#define _GNU_SOURCE
#include <dlfcn.h>
int main(int count, char **arguments) {
    for (int i = 1; i + 1 < count; i += 2) {
        void *library = dlopen(arguments[i], RTLD_NOW | RTLD_LOCAL);
        int (*plugin)(const char *) = library ? dlsym(library, "plugin") : 0;
        if (!plugin) return 9;
        int code = plugin(arguments[i + 1]);
        if (code) return code;
    }
    return 0;
}
"""


class Preloaded(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = pathlib.Path(tempfile.mkdtemp(dir=PLACE))
        cls.addClassCleanup(shutil.rmtree, cls.place)
        cls.preload = cls.place / "libwaldio-preload.so"
        subprocess.run([HERE / "build.sh", cls.preload], check=True)
        shutil.copy(LIBRARY, cls.place / "libwaldio.so")

    def setUp(self):
        self.work = pathlib.Path(tempfile.mkdtemp(dir=self.place))

    def run_in(self, *command, preload=None, **variables):
        """What it printed on both streams; the program itself must succeed."""
        clean = {key: value for key, value in os.environ.items() if not key.startswith("WALDIO_")}
        clean.update(variables, LD_PRELOAD=str(preload or self.preload))
        command = [str(word) for word in command]
        # LD_PRELOAD for the program alone: not for those that start it.
        result = subprocess.run(command, cwd=self.work, env=clean, capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, f"{command}: {result.stdout}{result.stderr}")
        return result.stdout, result.stderr

    def shell(self, name, sql, **options):
        if shutil.which("sqlite3") is None:
            self.skipTest("the sqlite3 shell is missing")
        return self.run_in("sqlite3", name, sql, **options)

    def compiled(self, source, name, *arguments):
        if subprocess.run(["cc", "-E", "-xc", "-"], input="#include <sqlite3.h>", capture_output=True, text=True).returncode:
            self.skipTest("sqlite3.h or a C compiler is missing (package libsqlite3-dev)")
        (self.work / f"{name}.c").write_text(source)
        subprocess.run(["cc", "-o", name, f"{name}.c", *arguments], cwd=self.work, check=True)
        return self.work / name

    WAL = "PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES (7); PRAGMA waldio"

    def test_the_shell_has_it(self):
        out, said = self.shell("app.db", self.WAL)
        self.assertEqual((out, said), (f"wal\n{ACTIVE}\n", ""))
        out, said = self.shell("app.db", "SELECT a FROM t; PRAGMA waldio", WALDIO_PRELOAD="verbose")
        self.assertEqual(out, f"7\n{ACTIVE}\n")
        self.assertRegex(said, r"^waldio-preload: waldio is loaded into /.*libsqlite3\.so.*\n$")

    def test_python_has_it_also_after_it_changed_its_directory(self):
        program = textwrap.dedent(
            """
            import os, sqlite3
            os.chdir("/")
            db = sqlite3.connect(os.environ["DATABASE"])
            for sql in ["PRAGMA journal_mode=WAL", "CREATE TABLE t(a)"]:
                db.execute(sql)
            print(db.execute("PRAGMA waldio").fetchone()[0])
            # What opens one without a log, then ends: nothing is left to say.
            sqlite3.connect(":memory:").execute("CREATE TABLE t(a)")
            """
        )
        relative = os.path.relpath(self.preload, self.work)
        for number, python in enumerate(["/usr/bin/python3", sys.executable]):
            if os.path.exists(python):
                database = str(self.work / f"{number}.db")
                out, said = self.run_in(python, "-c", program, preload=relative, DATABASE=database)
                self.assertEqual((out, said), (f"{ACTIVE}\n", ""), python)

    def test_sqlite_can_be_configured_before_and_restarted(self):
        program = self.compiled(OPENS, "opens", "-lsqlite3")
        out, said = self.run_in(program, "a.db", "b.db", "a.db")
        self.assertEqual((out, said), (f"{ACTIVE}\n" * 3, ""))

    def test_a_database_that_goes_past_it_is_named(self):
        self.shell("app.db", self.WAL)
        for parameters in ["vfs=unix", "waldio=off"]:
            out, said = self.shell(f"file:app.db?{parameters}", "SELECT a FROM t")
            self.assertEqual(out, "7\n")
            self.assertRegex(said, "^waldio-preload: waldio is not active on /.*/app.db: .*\n$", parameters)

    def test_a_rollback_journal_is_told_at_the_close(self):
        out, said = self.shell("app.db", "CREATE TABLE t(a); INSERT INTO t VALUES (7); SELECT a FROM t")
        self.assertEqual(out, "7\n")
        self.assertRegex(said, "^waldio-preload: waldio is not active on /.*/app.db: .*rollback journal.*\n$")

    def test_where_it_cannot_be_loaded_the_program_goes_on_and_is_told(self):
        out, said = self.shell("app.db", "CREATE TABLE t(a); SELECT count(*) FROM t", WALDIO_PERSIST="flsh")
        self.assertEqual(out, "0\n")
        self.assertRegex(said, "^waldio-preload: waldio is not active: .*auto, flush or fua.*\n$")
        alone = self.work / "libwaldio-preload.so"
        shutil.copy(self.preload, alone)
        out, said = self.shell("app.db", "SELECT count(*) FROM t", preload=alone)
        self.assertEqual(out, "0\n")
        self.assertRegex(said, "^waldio-preload: waldio is not active: .*libwaldio.so.*\n$")

    def test_a_sqlite_inside_the_program_is_noticed(self):
        program = self.compiled(OPENS, "own", "-static-libgcc", "-l:libsqlite3.a", "-lm", "-ldl", "-lpthread", "-lz")
        out, said = self.run_in(program, "a.db")
        self.assertEqual(out, "")
        self.assertRegex(said, f"^waldio-preload: waldio is not active on .*/a.db-wal: .*{OWN}.*\n$")
        # It does not go on for ever.
        out, said = self.run_in(program, *[f"{number}.db" for number in range(20)])
        self.assertEqual(len(said.splitlines()), 8, said)
        self.assertIn("no more of these", said.splitlines()[-1])

    def test_a_second_sqlite_stays_itself(self):
        """Each call has to reach the library that its caller would have reached."""
        self.compiled(PLUGIN, "first.so", "-shared", "-fPIC", "-lsqlite3")
        system = subprocess.run(["ldd", "first.so"], cwd=self.work, capture_output=True, text=True, check=True).stdout
        path = next(line.split()[2] for line in system.splitlines() if "libsqlite3" in line)
        other = pathlib.Path(path).read_bytes().replace(b"libsqlite3.so.0", b"libsqlite9.so.0")
        (self.work / "libsqlite9.so.0").write_bytes(other)
        self.compiled(PLUGIN, "second.so", "-shared", "-fPIC", "./libsqlite9.so.0", "-Wl,-rpath,$ORIGIN")
        host = self.compiled(HOST, "host", "-ldl")
        _, said = self.run_in(host, "./first.so", "first.db", "./second.so", "second.db")
        self.assertRegex(said, rf"^(waldio-preload: .*second SQLite.*\n)waldio-preload: .*/second.db-wal: .*{OWN}.*\n$")
        self.assertEqual(self.shell("second.db", "SELECT a FROM t")[0], "1\n")
        # A program that has SQLite itself: the loader gives that to the library, whatever it was linked with.
        host = self.compiled(HOST, "linked", "-Wl,--no-as-needed", "-lsqlite3", "-ldl")
        _, said = self.run_in(host, "./second.so", "third.db", WALDIO_PRELOAD="verbose")
        self.assertRegex(said, r"^waldio-preload: waldio is loaded into /.*libsqlite3.so.0\n$")

    def test_a_library_that_is_bound_to_itself_has_it(self):
        """As PHP loads its extensions: with RTLD_DEEPBIND their calls go past us."""
        host = self.compiled(HOST.replace("RTLD_LOCAL", "RTLD_DEEPBIND"), "host", "-ldl")
        asks = "SELECT count(*) FROM pragma_module_list WHERE name = 'waldio_status'"
        plugin = PLUGIN.replace("CREATE TABLE t(a); INSERT INTO t VALUES(1)", f"CREATE TABLE t AS {asks}")
        self.assertIn(asks, plugin)
        self.compiled(plugin, "asks.so", "-shared", "-fPIC", "-lsqlite3")
        _, said = self.run_in(host, "./asks.so", "app.db", WALDIO_PRELOAD="verbose")
        self.assertRegex(said, r"^waldio-preload: waldio is loaded into /.*libsqlite3.so.0\n$")
        self.assertEqual(self.shell("app.db", "SELECT * FROM t")[0], "1\n")

    def test_a_library_is_found_where_the_program_says(self):
        """A bare name is looked for where the caller's own header says, which may not become ours."""
        self.compiled("int plugin(const char *name) { return name[0] != 'x'; }", "libhere.so", "-shared", "-fPIC")
        host = self.compiled(HOST, "host", "-ldl", "-Wl,-rpath,$ORIGIN")
        self.run_in(host, "libhere.so", "x")

    def test_other_programs_notice_nothing(self):
        self.shell("app.db", self.WAL)
        (self.work / "app.db-wal").touch()
        for command in [["cp", "app.db-wal", "copy-wal"], ["ls"], ["sh", "-c", "echo a > b; cat b"], ["touch", "c-wal"]]:
            self.assertEqual(self.run_in(*command)[1], "")


if __name__ == "__main__":
    if not LIBRARY.is_file():
        sys.exit(f"{LIBRARY} is not there: make extension")
    outcome = unittest.main(exit=False, verbosity=1).result
    failed = len(outcome.failures) + len(outcome.errors)
    for _, reason in outcome.skipped:
        print(f"SKIPPED preload: {reason}")
    for test, _ in outcome.failures + outcome.errors:
        print(f"FAILED preload: {test}")
    print(f"{outcome.testsRun - failed - len(outcome.skipped)} passed, {failed} failed, {len(outcome.skipped)} skipped")
    sys.exit(failed > 0)
