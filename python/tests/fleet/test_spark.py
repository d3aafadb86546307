"""Spark says what DuckDB says."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest
from collections.abc import Iterator

import table_files
import test_results
from fleets import BY, FleetTest, even, load, names, planted
from test_answers import check_quantiles, check_sums
from test_foreign import FOREIGN_PACKING, FOREIGN_ROWS, no_text, with_value


@unittest.skipUnless(shutil.which("java"), "Spark needs a JDK (package default-jdk-headless), and there is no java")
class Spark(FleetTest):
    def spark(self, place):
        return load(place, engine="spark", master="local[2]")

    def test_it_says_the_same(self) -> None:
        from joj import comparison, outliers, questions

        # Of each the questions take Spark a minute: `make soak` asks both.
        for place in (planted(), even())[: 2 if "JOJ_SOAK_SECONDS" in os.environ else 1]:
            duckdb, spark = load(place), self.spark(place)
            check_sums(self, spark, place)
            check_quantiles(self, spark, duckdb)
            for question in (questions.files, questions.wal_instead, questions.modes, questions.applications):
                self.assertEqual(duckdb.rows(question(duckdb)), spark.rows(question(spark)), question.__name__)
            for keys in (["app_version"], ["application"], ["journal_mode", *BY]):
                self.assertEqual(exact(duckdb, keys), exact(spark, keys), keys)
            one, two = (comparison.compare(fleet, "app_version", "1.0", "2.0") for fleet in (duckdb, spark))
            for mine, its in zip(one, two, strict=True):
                self.assertEqual((mine.metric, mine.devices, mine.verdict), (its.metric, its.devices, its.verdict))
                # Sums are equal; quantiles of 200 values differ by some of them.
                self.assertAlmostEqual(mine.ratio, its.ratio, delta=0.03 if "p50" in mine.metric else 1e-9, msg=mine.metric)
            one, two = (sorted(row.device_id for row in outliers.outliers(fleet)) for fleet in (duckdb, spark))
            self.assertEqual(one, two)

    def test_two_fleets_of_one_session_answer_for_themselves(self) -> None:
        from joj import questions

        one, other = self.spark(self.copy(1)), self.spark(self.copy(3))
        counts = [sum(row["commits"] for row in fleet.rows(questions.per_commit(fleet))) for fleet in (one, other, one)]
        self.assertEqual(counts, [200, 600, 200])

    def test_a_fleet_that_changed_is_another_one(self) -> None:
        from joj import questions

        place = self.copy(1)
        before = self.spark(place)
        sums = [before.rows(questions.per_commit(before))[0]["written_bytes"]]
        path = next((place / "commits").iterdir())
        rows, _ = table_files.read(path)
        table_files.change(path, {}, {"written_bytes": [1] * rows.num_rows})
        after = self.spark(place)
        sums += [fleet.rows(questions.per_commit(fleet))[0]["written_bytes"] for fleet in (before, after)]
        self.assertEqual((sums[0] > 200, sums[1:]), (True, [sums[0], 200]))

    def test_what_stops_a_report_is_told_in_a_line_and_leaves_nothing(self) -> None:
        place = self.copy(2)
        # While the JVM starts, while Spark starts in it, while it computes.
        for number, shown, seconds in [
            (signal.SIGTERM, "joj-fleet-*", 0.3),
            (signal.SIGINT, "joj-fleet-*/blockmgr-*", 0),
            (signal.SIGTERM, "joj-fleet-*/blockmgr-*", 0.5),
            (signal.SIGTERM, "joj-fleet-*/blockmgr-*", 5),
            (signal.SIGINT, "joj-fleet-*/blockmgr-*", 6),
        ]:
            temporary = self.folder()
            line = [sys.executable, "-m", "joj", "fleet", "report", str(place), "--engine", "spark", "--master", "local[2]"]
            environment = os.environ | {"TMPDIR": str(temporary)}
            report = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
            while report.poll() is None and not [*temporary.glob(shown)]:
                time.sleep(0.02)
            time.sleep(seconds)
            report.send_signal(number)
            told, said = report.communicate()
            lines = [line for line in said.splitlines() if not re.search("WARN|^Using Spark's|^Setting default|^To adjust", line)]
            self.assertEqual((report.returncode, told, lines), (130, "", ["joj: stopped"]), (number, shown, seconds))
            self.assertEqual([*temporary.iterdir()], [])
            self.assertEqual([line for line in command_lines() if os.fsencode(temporary) in line], [])

    def test_results_are_the_same(self) -> None:
        import joj
        from joj.results import report

        place = self.folder()
        # Medians take Spark a minute: `make soak` asks for them.
        is_soak = "JOJ_SOAK_SECONDS" in os.environ
        for name in (test_results.BENCH, test_results.CONTENDED, test_results.LAB) if is_soak else ():
            shutil.copy(test_results.PUBLISHED / name, place)
        shutil.copy(test_results.RECORDING, place / "a [b]* %20+c.joj")
        (place / "status.json").write_text(json.dumps(test_results.SNAPSHOT))
        options = {"engine": "spark", "master": "local[2]"}
        duckdb, spark = joj.results.load(place), joj.results.load(place, **options)
        one, two = report.make(duckdb).as_json(), report.make(spark).as_json()
        self.assertEqual((one["loaded"], one["problems"]), (two["loaded"], two["problems"]))
        for name in ("bench_runs", "lab_cells", "waldio_status"):
            for mine, its in zip(one.get(name, []), two.get(name, []), strict=True):
                self.assertEqual(rounded(mine), rounded(its), name)
        for mine, its in zip(one["recordings"], two["recordings"], strict=True):
            # Quantiles are approximate.
            self.assertEqual(exactly(mine), exactly(its))
        files = [{row["file"] for row in results.rows(results.recorded_calls.select("file").distinct())} for results in (duckdb, spark)]
        self.assertEqual(files[0], files[1])

    def test_paths_are_no_patterns(self) -> None:
        from joj import questions

        for name, beside in (("a*", "ab"), ("a?", "ab"), ("[ab]", "a"), ("{a,b}", "a"), ("a b%20", "ab"), ("_a", "b")):
            place = self.folder()
            self.copy(1, place / name)
            self.copy(1, place / beside)
            fleet = self.spark(place)
            self.assertEqual(fleet.rows(questions.per_commit(fleet))[0]["commits"], 200, name)

    def test_what_joj_does_not_write_is_left_out_as_on_duckdb(self) -> None:
        from joj import questions

        place = self.copy(6)
        changes = [(rows_with("DEVICE"), {}), (rows_with("device"), {})]
        changes += [(lambda rows: rows, packing) for packing in FOREIGN_PACKING.values()]
        # The last has a column of a later joj.
        for name, (change, packing) in zip(names()[:6], [*changes, (rows_with("later"), {})], strict=True):
            path = place / "commits" / name
            rows, header = table_files.read(path)
            table_files.write(path, change(rows), header, **packing)
        duckdb, spark = load(place), self.spark(place)
        self.assertEqual((len(spark.inventory.traces), spark.inventory.left_out), (1, 5))
        self.assertEqual(spark.inventory.problems, duckdb.inventory.problems)
        self.assertEqual(exact(spark, ["device"]), exact(duckdb, ["device"]))
        self.assertEqual(spark.rows(questions.per_commit(spark))[0]["commits"], 200)

    def test_rows_that_joj_does_not_write_are_left_out_as_on_duckdb(self) -> None:
        place = self.copy(9)
        foreign = [("commits", *FOREIGN_ROWS["commits"][number]) for number in (0, 6)] + [("runs", *one) for one in FOREIGN_ROWS["runs"][4:8]]
        for number, (table, column, value, _) in enumerate(foreign):
            with_value(place / table / names()[number], column, value)
        no_text(place / "runs" / names()[6], "file_path")
        table_files.spoil(place / "commits" / names()[7])
        # Spark's paths are URIs without `..`.
        duckdb, spark = load(place / ".." / "copy"), self.spark(place / ".." / "copy")
        self.assertEqual((len(spark.inventory.traces), spark.inventory.left_out), (1, 8))
        one, two = ([(problem.path, problem.reason.partition("cannot read it")[0].replace("spark", "duckdb"))
                     for problem in fleet.inventory.problems if names()[6] not in problem.path] for fleet in (duckdb, spark))
        self.assertEqual(one, two)
        told = [problem.reason for problem in spark.inventory.problems if names()[6] in problem.path]
        self.assertIn("damaged: a `file_path` of its rows is no UTF-8", told)
        self.assertEqual(exact(spark, ["device"]), exact(duckdb, ["device"]))

    def test_files_that_it_passes_over_are_refused(self) -> None:
        from joj import JojError

        place = self.copy(1)
        path = next((place / "runs").iterdir())
        path.rename(path.with_name("_hidden.parquet"))
        self.assertRaisesRegex(JojError, "Spark passes over files .*rename it", self.spark, place)


def rows_with(name: str):
    """What adds a column of this name to a table."""
    return lambda rows: rows.append_column(name, rows["device"])


def command_lines() -> Iterator[bytes]:
    """Of all processes."""
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield path.read_bytes()


def rounded(row: dict) -> dict:
    """Without the last digits of doubles: engines divide in another order."""
    return {name: float(f"{value:.9g}") if isinstance(value, float) else value for name, value in row.items()}


def exactly(row: dict) -> dict:
    """What both engines compute exactly."""
    return {name: value for name, value in row.items() if not name.startswith("p")}


def exact(fleet, keys: list[str]) -> list[tuple]:
    """What both engines compute exactly."""
    from joj import questions

    told = []
    for row in fleet.rows(questions.per_commit(fleet, keys)):
        told.append(tuple(value for name, value in row.items() if "_p" not in name))
    for row in fleet.rows(questions.flushes(fleet, keys)):
        told.append(tuple(value for name, value in row.items() if "_p" not in name))
    return told
