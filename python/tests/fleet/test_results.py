"""What joj measured, as tables: joj's own figures of the published results are found again; what is not whole is named."""

import collections
import gzip
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import zlib
from collections.abc import Callable

import pyarrow.parquet
from fleets import JOJ, FleetTest, call

ROOT = pathlib.Path(__file__).resolve().parents[3]
PUBLISHED = ROOT / "docs/results"
RECORDING = ROOT / "lab/recordings/sql.joj"
#: One of each kind.
BENCH = "2026-11-26-ext4-virtio-reach-default.json.gz"
STUDY = "2026-11-21-ext4-virtio-table2.json.gz"
CONTENDED = "2026-11-21-ext4-virtio-writers.json.gz"
LAB = "2026-11-28-lab-fast12-fig13-guest.json.gz"
OLD_LAB = "2026-11-22-lab-waldio-table2.json.gz"
SNAPSHOT = [
    {"database": "/a/app.db", "name": "this_connection", "value": "active", "unit": "", "source": "this connection"},
    {"database": "/a/app.db", "name": "commits", "value": 3, "unit": "", "source": "counted"},
    {"database": "/a/app.db", "name": "advice", "value": None, "unit": "", "source": "1, \"2\""},
]
CSV = 'database,name,value,unit,source\r\n/a/app.db,commits,4,,counted\r\n/a/app.db,advice,"x, ""y""",,\r\n'


def opened(path: pathlib.Path) -> dict:
    return json.loads(gzip.decompress(path.read_bytes()))


def load(place: pathlib.Path, **options: str):
    import joj

    return joj.results.load(place, **options)


def monitored(place: pathlib.Path) -> dict:
    """Samples of this machine, as JSON and CSV; the JSON."""
    for option, name in (("--json", "samples.json"), ("--csv", "samples.csv")):
        line = [JOJ, "monitor", "--for", "300ms", "--every", "100ms", option, place / name]
        subprocess.run(line, check=True, capture_output=True)
    return json.loads((place / "samples.json").read_text())


def with_header(path: pathlib.Path, change: Callable[[dict], None]) -> None:
    """A recording with another header, and with the right checksum of it."""
    data, metadata = RECORDING.read_bytes(), pyarrow.parquet.read_metadata(RECORDING).metadata
    old, header = metadata[b"joj_trace"], json.loads(metadata[b"joj_trace"])
    change(header)
    was = str(json.loads(metadata[b"joj_checksums"])["header"])
    # Places in the file stay, so all that is written has its length: of its header, and of the number.
    for number in range(10, 100):
        header["kernel"] = str(number)
        header["kernel"] += "x" * (len(old) - len(json.dumps(header, separators=(",", ":"))))
        told = json.dumps(header, separators=(",", ":")).encode()
        if len(told) == len(old) and len(str(zlib.crc32(told))) == len(was):
            break
    assert len(told) == len(old), len(told) - len(old)
    path.write_bytes(data.replace(old, told).replace(f'"header":{was}'.encode(), f'"header":{zlib.crc32(told)}'.encode()))


class ResultsTest(FleetTest):
    def published(self, *names: str) -> pathlib.Path:
        place = self.folder()
        for name in names:
            shutil.copy(PUBLISHED / name, place)
        return place

    def written(self, name: str, document: object) -> pathlib.Path:
        """A folder with this document alone."""
        place = self.folder()
        (place / name).write_text(document if isinstance(document, str) else json.dumps(document))
        return place


class Answers(ResultsTest):
    def test_each_published_result_loads_or_says_why_not(self) -> None:
        from joj.results.load import take_inventory

        inventory, _ = take_inventory(PUBLISHED)
        formats = {str(path): opened(path) for path in PUBLISHED.glob("*.json.gz")}
        known = {path for path, one in formats.items() if one.get("format") in ("joj-bench", "joj-lab-result")}
        self.assertEqual({file.path for file in inventory.files}, known)
        reasons = {problem.path: problem.reason for problem in inventory.problems}
        self.assertEqual(set(reasons), set(formats) - known)
        self.assertEqual({file.version for file in inventory.files}, {1, 2})
        self.assertIn("it is a `joj-lab-whatif`", reasons[str(next(PUBLISHED.glob("*-fig11-feed.json.gz")))])

    def test_medians_of_runs_are_those_that_joj_bench_tells(self) -> None:
        results = load(self.published(BENCH, CONTENDED))
        found = collections.defaultdict(list)
        for row in results.rows(results.bench_runs):
            found[pathlib.Path(row["file"]).name, row["key"]].append(row["per_s"])
        told = {}
        for name in (BENCH, CONTENDED):
            document = opened(PUBLISHED / name)
            for row in document["rows"] + document.get("contended", []):
                summary = row["summary"]
                estimate = summary.get("transactions_per_s") or summary["commits_per_s"]
                told[name, json.dumps(row["key"], separators=(",", ":"))] = estimate["median"]
        self.assertEqual(set(found), set(told))
        for key, per_s in found.items():
            self.assertAlmostEqual(statistics.median(per_s), told[key], delta=1e-9 * told[key], msg=key)

    def test_columns_of_a_run_are_those_of_the_file(self) -> None:
        results = load(self.published(CONTENDED))
        row = next(row for row in results.rows(results.bench_runs) if row["writers"] == 8 and row["round"] == 1)
        document = opened(PUBLISHED / CONTENDED)
        one = next(one for one in document["contended"] if json.loads(row["key"]) == one["key"])
        run = next(run for run in one["runs"] if run["round"] == 1)
        self.assertEqual((row["mode"], row["experiment"]), (one["key"]["side"], one["key"]["kind"]))
        self.assertEqual((row["kernel"], row["filesystem"]), (document["environment"]["kernel"], "ext4"))
        self.assertEqual((row["p99_ns"], row["device_flushes"]), (run["latency"]["p99_ns"], run["device"]["flushes"]))
        self.assertEqual(row["library_version"], document["builds"][0]["version"])

    def test_a_study_has_its_steps(self) -> None:
        results = load(self.published(STUDY))
        steps = collections.Counter((row["experiment"], row["step"]) for row in results.rows(results.bench_runs))
        expected = collections.Counter()
        for part, rows in opened(PUBLISHED / STUDY)["study"].items():
            for row in rows:
                for step, value in row.items():
                    if isinstance(value, dict) and value.get("runs"):
                        expected[part, step] += len(value["runs"])
        self.assertEqual(steps, expected)

    def test_cells_of_the_lab_are_there_also_those_that_failed(self) -> None:
        place = self.published(LAB, OLD_LAB)
        shutil.copy(ROOT / "fixtures/lab/made_up_result.json", place)
        results = load(place)
        rows = {(pathlib.Path(row["file"]).name, row["cell"]): row for row in results.rows(results.lab_cells)}
        failed = 0
        for name in (LAB, OLD_LAB, "made_up_result.json"):
            document = opened(place / name) if name.endswith(".gz") else json.loads((place / name).read_text())
            for number, one in enumerate(document["cells"]):
                row, cell = rows.pop((name, number)), one["cell"]
                self.assertEqual((row["device"], row["mode"]), (cell["device"], cell.get("mode", cell.get("side"))))
                self.assertEqual((row["recorder"], row["range_mib"]), ("none", cell.get("range_mib")))
                if "failed" in one["outcome"]:
                    failed += 1
                    self.assertEqual((row["failure"], row["elapsed_ns"]), (one["outcome"]["failed"], None))
                else:
                    run = one["outcome"]["measured"]["run"]
                    self.assertEqual((row["elapsed_ns"], row["transactions"]), (run["elapsed_ns"], run["transactions"]))
        self.assertEqual(rows, {})
        self.assertGreater(failed, 0)

    def test_samples_of_the_monitor_are_those_of_its_json_and_csv(self) -> None:
        place = self.folder()
        document = monitored(place)
        results = load(place)
        rows = [row for row in results.rows(results.monitor_samples) if row["file"].endswith(".json")]
        found = {(row["kind"], row["name"], row["quantity"], row["sample"]): row["value"] for row in rows}
        expected = {
            (one["kind"], one["name"], one["quantity"], sample): value
            for one in document["quantities"]
            for sample, value in enumerate(one["values"])
        }
        self.assertEqual(found, expected)
        self.assertGreater(len(expected), 20)
        csv = [row for row in results.rows(results.monitor_samples) if row["file"].endswith(".csv")]
        named = {(row["kind"], row["name"], row["quantity"], row["unit"]) for row in csv}
        self.assertIn(("cpu", "", "active", "%"), named)
        self.assertTrue(any(kind == "interrupt" and " " in name for kind, name, _, _ in named), named)
        from joj.results import summaries

        summed = results.rows(summaries.monitor(results))
        zeros = [(row["p50"], row["p99"]) for row in summed if row["max"] == 0]
        self.assertEqual(set(zeros), {(0.0, 0.0)})

    def test_what_waldio_said_is_there_from_json_and_csv(self) -> None:
        place = self.written("a.json", SNAPSHOT)
        (place / "b.csv.gz").write_bytes(gzip.compress(CSV.encode()))
        results = load(place)
        rows = {(pathlib.Path(row["file"]).name, row["name"]): row for row in results.rows(results.waldio_status)}
        self.assertEqual((rows["a.json", "commits"]["value"], rows["a.json", "commits"]["number"]), ("3", 3.0))
        self.assertEqual((rows["a.json", "advice"]["value"], rows["a.json", "advice"]["number"]), (None, None))
        self.assertEqual((rows["b.csv.gz", "commits"]["number"], rows["b.csv.gz", "advice"]["value"]), (4.0, 'x, "y"'))

    def test_calls_of_a_recording_are_there_by_their_words(self) -> None:
        place = self.folder()
        # Engines would take these for a pattern, or for an escape.
        path = place / "a [b]* %20+c.joj"
        shutil.copy(RECORDING, path)
        results = load(place)
        rows = results.rows(results.recorded_calls)
        text = (ROOT / "docs/trace_format.md").read_text()
        section = text[text.index("### `call_code`") : text.index("### `operation_code`")]
        words = {int(code): word for code, word in re.findall(r"^\| (\d+) \| `(\w+)` \|", section, re.MULTILINE)}
        own = pyarrow.parquet.read_table(RECORDING)
        codes = collections.Counter(own["call_code"].to_pylist())
        self.assertEqual(collections.Counter(row["call"] for row in rows), {words[code]: n for code, n in codes.items()})
        self.assertEqual({row["file"] for row in rows}, {str(path)})
        self.assertEqual(sum(row["duration_ns"] for row in rows), sum(own["duration_ns"].to_pylist()))
        (row,) = results.rows(results.recordings)
        self.assertEqual((row["rows"], row["source"], row["lost"]), (own.num_rows, "bpf", 0))

    def test_names_that_nobody_expects(self) -> None:
        place = self.folder()
        for name in ("a\\[1].joj", "\udcff.joj"):
            shutil.copy(RECORDING, place / name)
        results = load(place)
        self.assertEqual({row["file"] for row in results.rows(results.recorded_calls)}, {str(place / "a\\[1].joj")})
        told = [(problem.path, problem.reason) for problem in results.inventory.problems]
        self.assertEqual(told, [(str(place / "\udcff.joj"), "its path is no UTF-8: rename it")])

    def test_what_is_no_file_is_named_and_not_opened(self) -> None:
        place = self.folder()
        shutil.copy(RECORDING, place)
        for ending in (".json", ".csv.gz", ".joj"):
            os.mkfifo(place / f"pipe{ending}")
        results = load(place)
        self.assertEqual(len(results.inventory.files), 1)
        self.assertEqual([problem.reason for problem in results.inventory.problems], ["it is a pipe, and no file"] * 3)

    def test_each_column_is_described(self) -> None:
        from joj.results.columns import SCHEMAS

        text = (ROOT / "docs/result_tables.md").read_text()
        for name, schema in SCHEMAS.items():
            section = re.search(rf"^## `{name}`\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
            told = re.findall(r"`(\w+)`", "\n".join(re.findall(r"^\| (.*?) \|", section[1], re.MULTILINE)))
            self.assertEqual(sorted(told), sorted(schema.names), name)


class Damage(ResultsTest):
    def problem(self, place: pathlib.Path) -> str:
        """Why the one file below it does not count."""
        from joj.results.load import take_inventory

        inventory, _ = take_inventory(place)
        self.assertEqual((inventory.files, len(inventory.problems)), ([], 1))
        return inventory.problems[0].reason

    def test_a_file_that_is_cut_or_changed_is_named(self) -> None:
        packed = (PUBLISHED / LAB).read_bytes()
        plain = gzip.decompress(packed).decode()
        document = json.loads(plain)
        for name, data, told in (
            ("a.json.gz", packed[:-9], "damaged: its gzip is not whole"),
            ("a.json.gz", packed[:1000] + bytes([packed[1000] ^ 1]) + packed[1001:], "damaged: its gzip is not whole"),
            ("a.json", plain.rstrip()[:-1], "damaged: "),
            ("a.json", "", "damaged: it is empty"),
            ("a.json", b"\xff{}", "damaged: "),
            ("a.json", "[" * 100_000, "damaged: its JSON is nested too deep"),
            ("a.json", plain.replace('"elapsed_ns":', '"elapsed":'), "damaged: it has no 'elapsed_ns'"),
            ("a.json", plain.replace('"p50_ns":', '"p50_ns":1.5,"p50":'), "damaged: "),
            ("a.json", json.dumps(document | {"version": "2"}), "damaged: its version is '2'"),
            ("a.json", json.dumps(document | {"version": 0}), "damaged: its version is 0"),
            ("a.json", json.dumps(document | {"cells": 3}), "damaged: "),
            ("a.json", json.dumps(document | {"title": float("nan")}), "damaged: it has NaN"),
        ):
            place = self.folder()
            (place / name).write_bytes(data if isinstance(data, bytes) else data.encode())
            self.assertIn(told, self.problem(place), data[:60])

    def test_what_is_something_else_is_named(self) -> None:
        for name, document, told in (
            ("a.json", {"format": "joj-lab-part", "version": 1}, "`joj lab merge` makes a result"),
            ("a.json", {"format": "joj-crash", "version": 1}, "it is a `joj-crash`; this package loads joj-bench"),
            ("a.json", {"a": 1}, "it is no result of joj's"),
            ("a.json", [1], "it is no result of joj's"),
            ("a.json.zst", [1], "it is packed (.zst)"),
            ("a.tar", [1], "it is packed (.tar)"),
            ("a.JSON", [1], "its name does not end with .json or .csv"),
            ("a.csv", "1,2\n", "it is no CSV of joj's"),
            ("a.csv", CSV.partition("\n")[2], "it is no CSV of joj's"),
            ("a.csv", 'database,name,value,unit,source\n"a', "damaged: "),
            ("a.csv", "database,name,value,unit,source\na,b\n", "damaged: "),
            ("a.csv", "at_ms,span_ms,colour\n1,2,3\n", "damaged: its column `colour` is no quantity"),
            ("a.csv", "at_ms,span_ms,cpu active [%]\n1,2\n", "damaged: "),
        ):
            self.assertIn(told, self.problem(self.written(name, document)), document)

    def test_a_newer_file_is_refused_with_what_helps(self) -> None:
        from joj.errors import NewerFile

        changed = opened(PUBLISHED / LAB) | {"version": 3, "machine": {"joj": "9.1.0"}}
        self.assertRaisesRegex(NewerFile, "a.json is of version 3 of `joj-lab-result`.*package of joj 9.1.0, which wrote it",
                               load, self.written("a.json", changed))
        # It may say elsewhere who wrote it.
        newer = {"format": "joj-bench", "version": 3}
        self.assertRaisesRegex(NewerFile, "install the package of the joj that wrote it", load, self.written("a.json", newer))
        place = self.written("a.json", newer)
        result = call("results", place)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("is of version 3", result.stderr)

    def test_a_flipped_bit_in_a_recording_is_found(self) -> None:
        place = self.folder()
        path = place / "a.joj"
        whole = RECORDING.read_bytes()
        end = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
        header = whole.index(b'{"version"', end)
        for at in (0, 3, 4, end // 2, end - 1, header + 11, header + 400, len(whole) - 6, len(whole) - 1):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
            self.assertTrue(self.problem(place), f"byte {at}")
        for size in (0, 7, end, len(whole) - 1):
            path.write_bytes(whole[:size])
            self.assertTrue(self.problem(place), f"{size} bytes")

    def test_a_changed_end_of_a_recording_is_its_own_affair(self) -> None:
        place = self.folder()
        shutil.copy(RECORDING, place / "whole.joj")
        whole = RECORDING.read_bytes()
        end = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
        names = {whole.index(name, end) + 2 for name in (b"duration_ns", b"text_value", b"call_code", b"file_inode")}
        for number, at in enumerate(sorted({*range(end, len(whole) - 8, 41), *names})):
            # In front of the good one, or behind it.
            path = place / f"{'az'[number % 2]}.joj"
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 8]) + whole[at + 1 :])
            results = load(place)
            loaded = [file.path for file in results.inventory.files]
            self.assertEqual({row["file"] for row in results.rows(results.recorded_calls)}, set(loaded), f"byte {at}")
            problem = results.inventory.problems[0].reason
            # Where the change means nothing they are two copies.
            self.assertTrue(problem.startswith("the same content") or loaded == [str(place / "whole.joj")], f"byte {at}: {problem}")
            self.assertTrue(at not in names or problem.startswith("damaged: its columns"), f"byte {at}: {problem}")
            path.unlink()

    def test_numbers_that_a_recording_never_has_are_damage(self) -> None:
        place = self.folder()
        path = place / "a.joj"
        with_header(path, lambda header: None)
        self.assertEqual(load(place).inventory.problems, [])
        for value in (-1, "1", 1.5, True, []):
            for part, key in (((), "version"), ((), "started_unix_ns"), (("ending",), "events"), (("ending",), "lost"),
                              (("recording", "not_replayed"), "ioctl")):

                def change(header: dict, part=part, key=key, value=value) -> None:
                    for name in part:
                        header = header[name]
                    header[key] = value

                with_header(path, change)
                told = f"damaged: its header says {value!r} for `{key}`, and that is a number, 0 or more"
                self.assertEqual(self.problem(place), told)
        with_header(path, lambda header: header["recording"].update(names_hidden=-3))
        self.assertEqual(self.problem(place), "damaged: its header says -3 for `names_hidden`, and that is true or false")
        # It is not known where nobody counted.
        with_header(path, lambda header: header["ending"].update(lost=None))
        self.assertEqual(load(place).inventory.problems, [])

    def test_traces_and_tables_are_told_where_they_belong(self) -> None:
        place = self.folder()
        shutil.copy(ROOT / "fixtures/traces/ext4_wal.parquet", place)
        self.assertIn("`fleet export`", self.problem(place))
        place = self.copy(1)
        shutil.rmtree(place / "runs")
        self.assertIn("`fleet report` reads it", self.problem(place))

    def test_a_second_copy_and_a_part_do_not_count(self) -> None:
        place = self.published(LAB)
        (place / "again.json").write_bytes(gzip.decompress((PUBLISHED / LAB).read_bytes()))
        (place / "new.joj.part").write_bytes(b"PAR1")
        shutil.copy(RECORDING, place / "one.joj")
        shutil.copy(RECORDING, place / "two.joj")
        results = load(place)
        self.assertEqual([file.table for file in results.inventory.files], ["lab_cells", "recordings"])
        reasons = sorted(problem.reason for problem in results.inventory.problems)
        self.assertEqual([reason.partition(" ")[0] for reason in reasons], ["it", "the", "the"])
        self.assertEqual({problem.path for problem in results.inventory.problems},
                         {str(place / name) for name in ("again.json", "new.joj.part", "two.joj")})


class Command(ResultsTest):
    def place(self) -> pathlib.Path:
        place = self.published(BENCH, CONTENDED, LAB)
        (place / "status.json").write_text(json.dumps(SNAPSHOT))
        (place / "bad.json").write_text("{")
        (place / "worse.json").write_text("{")
        shutil.copy(RECORDING, place)
        monitored(place)
        return place

    def test_text_and_json_say_the_same(self) -> None:
        place = self.place()
        shown = call("results", place)
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        told = call("results", place, "--json", "-")
        said = json.loads(told.stdout)
        self.assertEqual({row["table"] for row in said["loaded"]},
                         {"bench_runs", "lab_cells", "monitor_samples", "waldio_status", "recordings"})
        self.assertEqual(len(said["problems"]), 2)
        self.assertIn(f"2 files or folders are left out:\n  {place}/bad.json and 1 more: damaged: ", shown.stdout)
        self.assertIn("left out", told.stderr)
        row = next(row for row in said["bench_runs"] if row["mode"] == "wal" and row["workload"] == "insert")
        self.assertIn(f"{row['per_s']:,.1f}", shown.stdout)
        (calls,) = (row for row in said["recordings"] if row["call"] == "pwrite")
        own = pyarrow.parquet.read_table(RECORDING).to_pylist()
        moved = sum(max(0, one["detail_value"]) for one in own if one["call_code"] == 9)
        self.assertEqual(calls["bytes"], moved)

    def test_it_says_what_is_wrong(self) -> None:
        empty, lost = self.folder(), self.written("a.json", "{")
        for arguments, told in [
            ([empty / "nowhere"], "is no directory"),
            ([empty], "has no result that can be loaded"),
            ([lost], f"{lost}/a.json: damaged: "),
        ]:
            result = call("results", *arguments)
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertIn(told, result.stderr)

    def test_one_file_is_enough(self) -> None:
        self.assertIn("1 file is loaded\n", call("results", PUBLISHED / LAB).stdout)
