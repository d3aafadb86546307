#!/usr/bin/env python3
"""Makes the debs, the tarballs and the bills of materials, and shows that what is in them works; ends with a count line.

    packages/system/test_archives.py [test|soak]

Of the library WALDIO_LIBRARY, or target/release/libwaldio.so, and of a joj below target. What target/packages holds is looked at as
well, and with `soak` its wheels by auditwheel, from PyPI. Nothing is installed: debs are unpacked.
"""

import gzip
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
LIBRARY = pathlib.Path(os.environ.get("WALDIO_LIBRARY", TARGET / "release/libwaldio.so")).resolve()
# Not /tmp, which is often memory.
PLACE = os.environ.get("JOJ_TEST_DIR", "/var/tmp")
LEVEL = sys.argv.pop(1) if sys.argv[1:2] in (["test"], ["soak"]) else "test"

sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent)]
import build_archives  # noqa: E402
import build_sbom  # noqa: E402
import stand_in  # noqa: E402

VERSION = build_archives.build_wheel.version()
QUICK = ("-Zgzip", "-z1")
ELF = {"amd64": 62, "arm64": 183}
#: Loads the library of its first argument, and says what it is in a database of the second.
LOADS = """
#include <sqlite3.h>
#include <stdio.h>
static int show(void *none, int count, char **values, char **names) { return (void)none, (void)count, (void)names, puts(values[0]), 0; }
int main(int count, char **arguments) {
    sqlite3 *db;
    char *message = NULL;
    if (count != 3 || sqlite3_open(":memory:", &db) || sqlite3_enable_load_extension(db, 1)) return 3;
    if (sqlite3_load_extension(db, arguments[1], NULL, &message)) return puts(message), 4;
    if (sqlite3_open(arguments[2], &db)) return 5;
    if (sqlite3_exec(db, "PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES (1); PRAGMA waldio", show, NULL, &message))
        return puts(message), 6;
    return sqlite3_close(db);
}
"""


class Archives(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = pathlib.Path(tempfile.mkdtemp(dir=PLACE))
        cls.addClassCleanup(shutil.rmtree, cls.work)
        if shutil.which("dpkg-deb") is None:
            raise unittest.SkipTest("dpkg-deb is missing (package dpkg)")
        library, preload = cls.work / "libwaldio.so", cls.work / "libwaldio-preload.so"
        subprocess.run(["strip", "-o", library, LIBRARY], check=True)
        subprocess.run([ROOT / "packages/preload/build.sh", preload], check=True)
        library.with_name("libwaldio.so.debug").write_bytes(b"debug information")
        cls.binaries = [library, preload]
        cls.made = build_archives.build("waldio", cls.work / "made", cls.binaries, QUICK)
        cls.architecture = build_archives.machine(library)

    def unpacked(self, deb):
        place = pathlib.Path(tempfile.mkdtemp(dir=self.work))
        subprocess.run(["dpkg-deb", "--extract", deb, place], check=True)
        return place

    def field(self, deb, name):
        return subprocess.run(["dpkg-deb", "--field", deb, name], capture_output=True, text=True, check=True).stdout.strip()

    def test_the_deb_of_waldio_loads_from_where_it_installs(self):
        deb = self.made[-1]
        self.assertEqual(deb.name, f"waldio_{VERSION}_{self.architecture}.deb")
        self.assertEqual(self.field(deb, "Architecture"), self.architecture)
        self.assertRegex(self.field(deb, "Depends"), r"^libc6 \(>= 2\.\d+\)(, libgcc-s1)?$")
        place = self.unpacked(deb) / "usr/lib/waldio"
        for name in ("libwaldio.so", "libwaldio-preload.so"):
            self.assertEqual((place / name).stat().st_mode & 0o777, 0o644)
        if shutil.which("sqlite3") is None:
            self.skipTest("the sqlite3 shell is missing")
        sql = "PRAGMA journal_mode=WAL; CREATE TABLE t(a); PRAGMA waldio"
        loads = ["sqlite3", "-cmd", f".load {place}/libwaldio", "-cmd", ".open app.db", ":memory:", sql]
        for command, variables in [(loads, {}), (["sqlite3", "b.db", sql], {"LD_PRELOAD": f"{place}/libwaldio-preload.so"})]:
            clean = {key: value for key, value in os.environ.items() if not key.startswith("WALDIO_")}
            told = subprocess.run(command, cwd=place, env=clean | variables, capture_output=True, text=True)
            self.assertRegex(told.stdout, "(?m)^active: ", told.stderr)

    def test_the_tarball_holds_what_the_deb_does(self):
        place = self.unpacked(self.made[-1]) / "usr"
        installed = {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}
        folder = f"waldio-{VERSION}-linux-{self.architecture}"
        with tarfile.open(self.made[0]) as archive:
            packed = {entry.name.removeprefix(f"{folder}/"): archive.extractfile(entry).read() for entry in archive}
        self.assertEqual({name: data for name, data in packed.items() if not name.startswith("LICENSE-")}, installed)
        self.assertIn("LICENSE-MIT", packed)
        with tarfile.open(self.made[1]) as archive:
            self.assertEqual(archive.getnames(), [f"{folder}-debug/libwaldio.so.debug"])

    def test_for_musl_there_is_a_tarball_alone(self):
        (made,) = build_archives.build("waldio", self.work / "musl", [stand_in.musl_library(self.work / "linked")], QUICK)
        folder = f"waldio-{VERSION}-linux-{self.architecture}-musl"
        self.assertEqual(made.name, f"{folder}.tar.gz")
        with tarfile.open(made) as archive:
            libraries = [name for name in archive.getnames() if name.endswith(".so")]
        self.assertEqual(libraries, [f"{folder}/lib/waldio/libwaldio.so"])

    def test_two_builds_are_the_same_bytes(self):
        again = build_archives.build("waldio", self.work / "again", self.binaries, QUICK)
        self.assertEqual([path.read_bytes() for path in self.made], [path.read_bytes() for path in again])

    def test_jojs_deb_has_its_pages_and_completions(self):
        programs = [path for path in (TARGET / "release/joj", TARGET / "debug/joj") if path.is_file()]
        if not programs:
            self.skipTest("no joj is built below target")
        program = self.work / "joj"
        subprocess.run(["strip", "-o", program, programs[0]], check=True)
        made = build_archives.build("joj", self.work / "made", [program], QUICK)
        with tarfile.open(made[0]) as archive:
            programs = [entry.name.split("/", 1)[1] for entry in archive if entry.mode & 0o111]
        self.assertEqual(programs, ["bin/joj"])
        deb = made[-1]
        self.assertRegex(self.field(deb, "Depends"), r"^libc6 \(>= 2\.\d+\), libelf1 \| libelf1t64, libgcc-s1, zlib1g$")
        place = self.unpacked(deb) / "usr"
        told = subprocess.run([place / "bin/joj", "--version"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(told, f"joj {VERSION}\n")
        pages = {path.name for path in (place / "share/man/man1").iterdir()}
        self.assertLessEqual({"joj.1.gz", "joj-bench.1.gz", "joj-trace.1.gz"}, pages)
        self.assertIn(b".TH", gzip.decompress((place / "share/man/man1/joj-bench.1.gz").read_bytes()))
        for path in ("bash-completion/completions/joj", "zsh/vendor-completions/_joj", "fish/vendor_completions.d/joj.fish"):
            self.assertIn("whatif", (place / "share" / path).read_text(encoding="utf-8"))

    def test_what_would_not_load_is_refused(self):
        text, narrow = self.work / "text.so", self.work / "narrow.so"
        text.write_bytes(b"text")
        narrow.write_bytes(b"\x7fELF\x01\x01" + bytes(60))
        for file in (text, narrow):
            with self.assertRaises(SystemExit):
                build_archives.machine(file)
        newest, build_archives.GLIBC_MAX = build_archives.GLIBC_MAX, (2, 16)
        try:
            with self.assertRaises(SystemExit):
                build_archives.needed_glibc(self.binaries[0])
        finally:
            build_archives.GLIBC_MAX = newest


class Bills(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory(dir=PLACE) as work:
            paths = build_sbom.build(pathlib.Path(work), ["waldio", "joj"])
            cls.bills = {path.name.split("-")[0]: json.loads(path.read_text()) for path in paths}

    def test_they_name_what_is_linked_and_nothing_else(self):
        names = {name: {component["name"] for component in bill["components"]} for name, bill in self.bills.items()}
        self.assertEqual(names["waldio"], {"bitflags", "blockio", "linux-raw-sys", "rustix"})
        self.assertLessEqual({"joj-analysis", "joj-device", "parquet", "sqlite"}, names["joj"])
        self.assertFalse({"syn", "serde_derive", "shuttle", "waldio"} & names["joj"])

    def test_each_has_a_version_a_licence_and_where_it_comes_from(self):
        for bill in self.bills.values():
            self.assertEqual((bill["bomFormat"], bill["specVersion"]), ("CycloneDX", "1.5"))
            self.assertEqual(bill["metadata"]["component"]["version"], VERSION)
            ours = {"blockio", "joj", "joj-analysis", "joj-device", "sqlite"}
            for component in bill["components"]:
                self.assertTrue(component["licenses"], component)
                self.assertRegex(component["purl"], r"^pkg:(cargo|generic)/[^@]+@\d")
                if component["name"] not in ours:
                    self.assertRegex(component["hashes"][0]["content"], "^[0-9a-f]{64}$")

    def test_each_dependency_is_a_component(self):
        for bill in self.bills.values():
            known = {component["bom-ref"] for component in [*bill["components"], bill["metadata"]["component"]]}
            self.assertEqual(len(known), len(bill["components"]) + 1)
            for entry in bill["dependencies"]:
                self.assertLessEqual({entry["ref"], *entry["dependsOn"]}, known)
            needed = {name for entry in bill["dependencies"] for name in entry["dependsOn"]}
            self.assertEqual(needed | {bill["metadata"]["component"]["bom-ref"]}, known, "something that nobody needs")


class Made(unittest.TestCase):
    """What `make packages` left below target/packages, if it ran."""

    PACKAGES = TARGET / "packages"

    def setUp(self):
        if not (self.PACKAGES / "SHA256SUMS").exists():
            self.skipTest("make packages did not run here")

    def test_the_checksums_are_of_all_files(self):
        lines = (self.PACKAGES / "SHA256SUMS").read_text().splitlines()
        sums = {line.split("  ")[1]: line.split("  ")[0] for line in lines}
        files = {path.name for path in self.PACKAGES.iterdir() if path.is_file()} - {"SHA256SUMS"}
        self.assertEqual(set(sums), files)
        for name, expected in sums.items():
            self.assertEqual(hashlib.sha256((self.PACKAGES / name).read_bytes()).hexdigest(), expected, name)

    def test_each_library_is_for_the_machine_that_its_package_names(self):
        """An aarch64 package with a 32-bit library inside installs, and fails with its first user."""
        found = 0
        with tempfile.TemporaryDirectory(dir=PLACE) as work:
            for path in sorted(self.PACKAGES.iterdir()):
                place = pathlib.Path(work, path.name)
                if path.suffix == ".deb":
                    subprocess.run(["dpkg-deb", "--extract", path, place], check=True)
                elif path.suffix in (".whl", ".tgz") or path.name.endswith(".tar.gz") and "debug" not in path.name:
                    shutil.unpack_archive(path, place, "zip" if path.suffix == ".whl" else "gztar")
                for library in [*place.rglob("*.so"), *place.rglob("bin/joj")]:
                    # One package may hold several: the Go module.
                    machine = "arm64" if re.search("aarch64|arm64", f"{path.name} {library.name}") else "amd64"
                    head = library.read_bytes()[:20]
                    self.assertEqual((head[4], int.from_bytes(head[18:20], "little")), (2, ELF[machine]), path.name)
                    build_archives.needed_glibc(library)
                    self.assertEqual(build_archives.build_wheel.libc(library), "musl" if "musl" in path.name else "glibc", path.name)
                    found += 1
        self.assertGreater(found, 3)

    def aarch64(self):
        """Its compiler, and the command in front of its programs."""
        if LEVEL != "soak":
            self.skipTest("programs of aarch64 run in make soak only")
        compiler, emulator = shutil.which("aarch64-linux-gnu-gcc"), shutil.which("qemu-aarch64")
        if not (compiler and emulator):
            self.skipTest("no compiler for aarch64, or no qemu-aarch64 (package qemu-user)")
        # A library that is not there is looked for in this system: libelf, musl's loader.
        return compiler, [emulator, "-L", "/usr/aarch64-linux-gnu"]

    def test_the_libraries_for_aarch64_commit(self):
        """On an emulated processor, with a SQLite compiled for it: by glibc and by musl."""
        compiler, emulator = self.aarch64()
        specs = "/usr/lib/aarch64-linux-musl/musl-gcc.specs"
        home = pathlib.Path(os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo"))
        source = next(home.glob("registry/src/*/libsqlite3-sys-*/sqlite3/sqlite3.c")).parent
        wheels = {"manylinux": [], "musllinux": [f"-specs={specs}"]}
        for kind, options in wheels.items():
            wheel = next(self.PACKAGES.glob(f"waldio-*{kind}*_aarch64.whl"), None)
            if wheel is None:
                self.skipTest(f"make packages made no {kind} wheel for aarch64")
            if options and not pathlib.Path(specs).exists():
                self.skipTest("no musl for aarch64 (dpkg --add-architecture arm64, package musl-dev:arm64)")
            with self.subTest(kind), tempfile.TemporaryDirectory(dir=PLACE) as work:
                shutil.unpack_archive(wheel, work, "zip")
                pathlib.Path(work, "loads.c").write_text(LOADS)
                command = [compiler, *options, "-o", "loads", f"-I{source}", "loads.c", source / "sqlite3.c", "-ldl", "-lpthread", "-lm"]
                subprocess.run(command, cwd=work, check=True)
                command = [*emulator, "./loads", "./waldio/libwaldio.so", "app.db"]
                told = subprocess.run(command, cwd=work, capture_output=True, text=True)
                self.assertRegex(told.stdout, "^wal\nactive: ", told.stderr)

    def test_joj_for_aarch64_runs(self):
        """On an emulated processor: it says of a recorded trace what it says here."""
        _, emulator = self.aarch64()
        archive = next(self.PACKAGES.glob("joj-*-linux-arm64.tar.gz"), None)
        if archive is None:
            self.skipTest("make packages made no joj for aarch64")
        traces = ROOT / "fixtures/traces"
        with tempfile.TemporaryDirectory(dir=PLACE) as work:
            shutil.unpack_archive(archive, work)
            joj = [*emulator, next(pathlib.Path(work).glob("*/bin/joj"))]
            told = subprocess.run([*joj, "--version"], capture_output=True, text=True)
            self.assertEqual(told.stdout, f"joj {VERSION}\n", told.stderr)
            command = [*joj, "trace", "--read", traces / "ext4_wal.parquet", "--steps=2"]
            told = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(told.stdout, (traces / "ext4_wal.txt").read_text(encoding="utf-8"), told.stderr)

    def test_auditwheel_says_the_same_of_the_wheels(self):
        if LEVEL != "soak":
            self.skipTest("auditwheel comes from PyPI: make soak")
        place = TARGET / "auditwheel"
        made = subprocess.run([sys.executable, "-m", "venv", place], capture_output=True, text=True)
        pip = [place / "bin/pip", "install", "-q", "auditwheel"]
        if made.returncode != 0 or subprocess.run(pip, capture_output=True).returncode != 0:
            self.skipTest("auditwheel cannot be fetched here")
        # joj's wheel has no library inside.
        wheels = list(self.PACKAGES.glob("waldio-*.whl"))
        self.assertTrue(wheels)
        for wheel in wheels:
            tag = wheel.stem.split("-")[-1]
            # By itself it asks the musl of this system where its libraries are, and stops at two of them.
            libraries = ["--ldpaths", self.PACKAGES] if "musl" in tag else []
            command = [place / "bin/auditwheel", "show", *libraries, wheel]
            told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            self.assertIn(f'consistent with the following platform tag: "{tag}"', " ".join(told.split()))


if __name__ == "__main__":
    if not LIBRARY.is_file():
        sys.exit(f"{LIBRARY} is not there: make extension")
    outcome = unittest.main(exit=False, verbosity=1).result
    failed = len(outcome.failures) + len(outcome.errors)
    for _, reason in outcome.skipped:
        print(f"SKIPPED archives: {reason}")
    for test, _ in outcome.failures + outcome.errors:
        print(f"FAILED archives: {test}")
    print(f"{outcome.testsRun - failed - len(outcome.skipped)} passed, {failed} failed, {len(outcome.skipped)} skipped")
    sys.exit(failed > 0)
