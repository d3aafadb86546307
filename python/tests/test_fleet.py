#!/usr/bin/python3
"""Fleets with known answers, asked through the package as people install it; ends with a count line.

    python/tests/test_fleet.py      with the joj of JOJ, or target/debug/joj

Its environment is below target: from PyPI, with Spark where a JDK is there. Every answer stands in answers.json, which
`joj trace-generate --fleet` writes beside the tables.
"""

import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
JOJ = pathlib.Path(os.environ.get("JOJ", TARGET / "debug/joj"))
ENVIRONMENT = TARGET / "fleet-environment"
# Not /tmp, which is often memory.
PLACE = os.environ.get("JOJ_TEST_DIR", "/var/tmp")
#: As tried; newer ones of the same major versions should do.
DUCKDB = ["ibis-framework[duckdb]==12.0.0", "duckdb==2.0.1", "pyarrow==26.0.1"]
SPARK = ["ibis-framework[pyspark]==12.0.0", "pyspark==4.0.5"]
BY = ["device", "app_version"]
#: How far the rank of a quantile may be off: docs/fleet.md says so.
RANK_ERROR = 0.01

sys.dont_write_bytecode = True


def install() -> str | None:
    """Makes the environment where it is not there, and installs the wheel. Returns why not."""
    sys.path.insert(0, str(HERE.parent))
    import build_wheel

    python = ENVIRONMENT / "bin/python"
    wanted = DUCKDB + (SPARK if shutil.which("java") else [])
    stamp = ENVIRONMENT / "installed"
    if not stamp.exists() or stamp.read_text() != " ".join(wanted):
        shutil.rmtree(ENVIRONMENT, ignore_errors=True)
        for command in ([sys.executable, "-m", "venv", ENVIRONMENT], pip(python, *wanted)):
            made = subprocess.run(command, capture_output=True, text=True)
            if made.returncode != 0:
                return f"no environment with DuckDB: {(made.stdout + made.stderr).strip().splitlines()[-1]}"
        stamp.write_text(" ".join(wanted))
    with tempfile.TemporaryDirectory(dir=PLACE) as work:
        wheel = build_wheel.build(pathlib.Path(work))
        subprocess.run(pip(python, "--no-index", "--no-deps", "--force-reinstall", wheel), check=True, capture_output=True)
    return None


def pip(python: pathlib.Path, *arguments: object) -> list[str]:
    return [str(one) for one in (python, "-m", "pip", "--disable-pip-version-check", "install", *arguments)]


class Fleets(unittest.TestCase):
    """Two fleets: with a planted regression and damaged files, and with neither."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.work = pathlib.Path(tempfile.mkdtemp(dir=PLACE))
        cls.addClassCleanup(shutil.rmtree, cls.work)
        cls.planted = cls.generate("planted", "--fleet", "120", "--damaged", "6", "--seed", "7")
        cls.even = cls.generate("even", "--fleet", "80", "--regression", "1", "--seed", "8")

    @classmethod
    def generate(cls, name: str, *options: str) -> pathlib.Path:
        place = cls.work / name
        command = [JOJ, "trace-generate", "--out", place, "--commits", "200", *options]
        subprocess.run(command, check=True, capture_output=True)
        return place

    def answers(self, place: pathlib.Path) -> dict:
        return json.loads((place / "answers.json").read_text())

    def load(self, place: pathlib.Path, **options: str):
        import joj

        return joj.load(place, **options)

    def command(self, *arguments: object) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "joj", "fleet", "report", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, cwd=self.work)

    def copy(self, name: str) -> pathlib.Path:
        """A whole trace of the fleet without damaged files, alone."""
        place = self.work / name
        for table in ("commits", "runs"):
            (place / table).mkdir(parents=True)
            path = sorted((self.even / table).iterdir())[0]
            shutil.copy(path, place / table)
        return place

    def check_sums(self, fleet, place: pathlib.Path) -> None:
        from joj import questions

        answers = self.answers(place)
        found = {f"{row['device']} {row['app_version']}": row for row in rows(questions.per_commit(fleet, BY))}
        for row in rows(questions.flushes(fleet, BY)):
            found[f"{row['device']} {row['app_version']}"].update(row)
        self.assertEqual(set(found), set(answers["groups"]))
        for name, sums in answers["groups"].items():
            row = found[name]
            exact = {key: row[key] for key in ("traces", "commits", "written_bytes", "flushes", "flush_ns")}
            self.assertEqual(exact, {key: sums[key] for key in exact}, name)
            joj_bytes = round(row["joj_kib_per_commit"] * 1024 * row["commits"])
            self.assertEqual(joj_bytes, sums["journal_of_journal_bytes"], name)
            self.assertEqual(round(row["fsync_share"] * row["commits"]), sums["fsync_commits"], name)
        whole = answers["whole"]
        modes = {f"{row['journal_mode']} {row['sync_mode']}": row["commits"] for row in rows(questions.modes(fleet))}
        self.assertEqual(modes, whole["modes"])
        by_name = {row["application"]: row["commits"] for row in rows(questions.applications(fleet))}
        self.assertEqual(by_name, whole["applications"])
        self.assertEqual(len(fleet.inventory.traces), whole["traces"])

    def check_quantiles(self, fleet, commits) -> None:
        """Each one lies between the exact ones of a rank that is a little lower and a little higher."""
        from joj import questions

        for row in rows(questions.per_commit(fleet, BY)):
            key = [row[name] for name in BY]
            values = sorted(commits[tuple(key)])
            for rank, column in ((0.5, "commit_p50_ms"), (0.99, "commit_p99_ms")):
                low, high = (values[place(len(values), rank + way * RANK_ERROR)] / 1e6 for way in (-1, 1))
                self.assertTrue(low <= row[column] <= high, f"{key}: {low} <= {column} {row[column]} <= {high}")

    def durations(self, fleet) -> dict[tuple[str, str], list[int]]:
        found: dict[tuple[str, str], list[int]] = {}
        table = fleet.commits_by(BY).select(*BY, "duration_ns")
        for row in rows(table):
            found.setdefault((row["device"], row["app_version"]), []).append(row["duration_ns"])
        return found

    def test_counts_and_sums_are_exact_and_quantiles_within_their_error(self) -> None:
        fleet = self.load(self.planted)
        self.check_sums(fleet, self.planted)
        self.check_quantiles(fleet, self.durations(fleet))

    def test_spark_says_the_same(self) -> None:
        if not shutil.which("java"):
            self.skipTest("Spark needs a JDK (package openjdk-17-jre-headless), and there is no java")
        from joj import questions, units

        duckdb, spark = self.load(self.planted), self.load(self.planted, engine="spark", master="local[2]")
        self.check_sums(spark, self.planted)
        self.check_quantiles(spark, self.durations(duckdb))
        for question in (questions.files, questions.wal_instead):
            self.assertEqual(rows(question(duckdb)), rows(question(spark)), question.__name__)
        one, two = (units.compare(fleet, "app_version", "1.0", "2.0") for fleet in (duckdb, spark))
        self.assertEqual([row.verdict for row in one], [row.verdict for row in two])

    def test_the_planted_regression_is_found_with_its_size_and_no_other(self) -> None:
        from joj import units

        expected = {"flushes_per_commit": 1.0}
        for row in units.compare(self.load(self.planted), "app_version", "1.0", "2.0"):
            factor = expected.get(row.metric, 1.25)
            self.assertEqual(row.verdict, "none" if factor == 1 else "regression", row)
            self.assertTrue(row.low <= row.ratio <= row.high and abs(row.ratio / factor - 1) < 0.1, row)
        for row in units.compare(self.load(self.even), "app_version", "1.0", "2.0"):
            self.assertEqual(row.verdict, "none", row)

    def test_the_slow_devices_are_the_outliers(self) -> None:
        from joj import units

        for place in (self.planted, self.even):
            found = {row.device_id for row in units.outliers(self.load(place))}
            self.assertEqual(found, set(self.answers(place)["outliers"]), place)

    def test_damaged_files_are_named_and_counted(self) -> None:
        answers = self.answers(self.planted)
        inventory = self.load(self.planted).inventory
        named = {problem.path for problem in inventory.problems if problem.reason.startswith("damaged")}
        self.assertEqual(named, set(answers["damaged"]))
        self.assertEqual((inventory.left_out, len(inventory.problems)), (6, 12))
        told = self.command(self.planted).stdout
        self.assertIn("12 files are left out, and with them 6 traces", told)
        for path in answers["damaged"]:
            self.assertIn(f"{path}: damaged: ", told)

    def test_any_flipped_bit_and_any_cut_is_found(self) -> None:
        from joj.files import take_inventory

        place = self.copy("flipped")
        path = next((place / "commits").iterdir())
        whole, seed = path.read_bytes(), random.Random(5)
        (length,) = (int.from_bytes(whole[-8:-4], "little"),)
        for _ in range(300):
            # Of the end, what names columns and encodings is the engine's to read: below it all must be found.
            at = seed.randrange(4, len(whole) - 8 - length)
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << seed.randrange(8)]) + whole[at + 1 :])
            self.assertEqual(take_inventory(place).left_out, 1, f"byte {at}")
        for at in (0, 3, 100, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:at])
            self.assertEqual(take_inventory(place).left_out, 1, f"cut at {at}")
        path.write_bytes(whole)
        self.assertEqual(take_inventory(place).left_out, 0)

    def test_a_newer_file_is_refused_with_the_command_that_helps(self) -> None:
        import pyarrow.parquet

        place = self.copy("newer")
        path = next((place / "runs").iterdir())
        table = pyarrow.parquet.read_table(path)
        header = json.loads(table.schema.metadata[b"joj_table"])
        newer = {**table.schema.metadata, b"joj_table": json.dumps({**header, "version": 2})}
        pyarrow.parquet.write_table(table.replace_schema_metadata(newer), path)
        result = self.command(place)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn(f"{path} is of version 2 of the tables", result.stderr)
        self.assertIn("python3 -m pip install --upgrade joj", result.stderr)

    def test_folders_are_the_users_and_a_second_copy_of_a_trace_does_not_count(self) -> None:
        place = self.copy("folders")
        (place / "device=wrong/day=1").mkdir(parents=True)
        (place / "runs").rename(place / "device=wrong/day=1/runs")
        fleet = self.load(place)
        self.assertEqual((len(fleet.inventory.traces), fleet.inventory.problems), (1, []))
        from joj import questions

        self.assertNotEqual(rows(questions.flushes(fleet))[0]["device"], "wrong")
        shutil.copytree(place / "commits", place / "again")
        inventory = self.load(place).inventory
        self.assertEqual(len(inventory.traces), 1)
        self.assertIn("the same trace as", inventory.problems[0].reason)

    def test_the_command_says_what_is_wrong(self) -> None:
        for arguments, told in [
            ([self.work / "nowhere"], "is no directory"),
            ([HERE], "has no whole trace; `joj trace --export parquet=DIR` writes one"),
            ([self.even, "--group-by", "colour"], "`colour` is no column and no label"),
            ([self.even, "--compare", "app_version=1.0,9.9"], "no trace has app_version=9.9; there are 1.0, 2.0"),
            (["s3://bucket/fleet"], "this version reads directories alone"),
        ]:
            result = self.command(*arguments)
            self.assertEqual((result.returncode, result.stdout), (1, ""), arguments)
            self.assertIn(told, result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertEqual(self.command(self.even, "--compare", "app_version").returncode, 2)

    def test_text_json_and_page_say_the_same(self) -> None:
        page, answers = self.work / "fleet.html", self.work / "fleet.json"
        keys = ["--group-by", "device,app_version", "--compare", "app_version=1.0,2.0"]
        result = self.command(self.planted, *keys, "--html", page, "--json", answers)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        said = json.loads(answers.read_text())
        self.assertEqual(said["totals"]["traces"], 114)
        self.assertEqual(said["comparison"][0]["verdict"], "regression")
        for text in (result.stdout, page.read_text()):
            self.assertIn("car-a", text)
            self.assertIn(f"{said['per_commit'][0]['kib_per_commit']:.3f}", text)
            self.assertIn("12 files are left out", text)

    def test_two_wheels_are_the_same(self) -> None:
        import build_wheel

        one, other = (build_wheel.build(self.work / name) for name in "ab")
        self.assertEqual((one.name, one.read_bytes()), (other.name, other.read_bytes()))


def rows(table) -> list[dict]:
    return table.to_pyarrow().to_pylist()


def place(count: int, rank: float) -> int:
    return max(0, min(count - 1, round(rank * count)))


if __name__ == "__main__":
    if not JOJ.is_file():
        sys.exit(f"{JOJ} is not there: cargo build -p joj")
    if os.environ.get("JOJ_FLEET_TESTS") != "inside":
        reason = install()
        if reason:
            print(f"SKIPPED fleet: {reason}\n0 passed, 0 failed, 1 skipped")
            sys.exit(0)
        python = str(ENVIRONMENT / "bin/python")
        clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        os.execve(python, [python, *sys.argv], {**clean, "JOJ_FLEET_TESTS": "inside"})
    # Behind the installed package: of this folder build_wheel alone.
    sys.path.append(str(HERE.parent))
    outcome = unittest.main(exit=False, verbosity=1, warnings="ignore").result
    failed = len(outcome.failures) + len(outcome.errors)
    for _, reason in outcome.skipped:
        print(f"SKIPPED fleet: {reason}")
    for test, _ in outcome.failures + outcome.errors:
        print(f"FAILED fleet: {test}")
    print(f"{outcome.testsRun - failed - len(outcome.skipped)} passed, {failed} failed, {len(outcome.skipped)} skipped")
    sys.exit(failed > 0)
