"""Many traces become tables: those that `joj trace` makes of each, once; what fails is a row; Ctrl-C leaves what is whole."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import unittest
import unittest.mock

import duckdb
from fleets import JOJ, FleetTest, call, load, work

ROOT = pathlib.Path(__file__).resolve().parents[3]
TRACES = sorted((ROOT / "fixtures/traces").glob("*.parquet"))
PATTERN = "{device}/{device_id}-*.parquet"
#: A program in place of joj. `$3` is the trace. It says when it begins and ends, and sleeps before joj does the work.
FAKE = """#!/bin/sh
sleep "$(cat {place}/sleep)" & sleep=$!
trap 'kill $sleep; echo "-" >> {place}/log; exit 130' INT TERM
echo "+" >> {place}/log
wait $sleep
{joj} "$@"
code=$?
echo "-" >> {place}/log
exit $code
"""


def export(*traces: object, **options):
    import joj

    return joj.export(traces, **{"joj": str(JOJ), "jobs": 2, **options})


def end_group(process: int) -> None:
    """Of a test that failed: otherwise nobody is there."""
    try:
        os.killpg(process, signal.SIGKILL)
    except ProcessLookupError:
        pass


class ExportTest(FleetTest):
    def traces(self, count: int = 4) -> pathlib.Path:
        """Recorded traces in folders that say whose they are."""
        place = self.folder()
        for number, trace in enumerate(TRACES[:count]):
            folder = place / f"model {number % 2}"
            folder.mkdir(exist_ok=True)
            shutil.copy(trace, folder / f"unit{number}-{trace.name}")
        return place

    def fake(self, sleep: str) -> tuple[pathlib.Path, pathlib.Path]:
        """A program in place of joj, and its folder."""
        place = self.folder()
        (place / "sleep").write_text(sleep)
        program = place / "joj"
        program.write_text(FAKE.format(place=place, joj=JOJ))
        program.chmod(0o755)
        return program, place

    def failures(self, out: pathlib.Path) -> dict[str, str]:
        """The table of failures, as others read it."""
        rows = duckdb.sql(f"SELECT source, reason FROM read_json('{out}/failures/*.json')").fetchall()
        return {pathlib.Path(source).name: reason for source, reason in rows}


class Export(ExportTest):
    def test_the_tables_are_those_that_joj_trace_makes(self) -> None:
        place, out, alone = self.traces(len(TRACES)), self.folder() / "out", self.folder() / "alone"
        exported = export(place, out=out, label_from_path=PATTERN, labels={"app_version": "1.0"})
        self.assertEqual((exported.count("exported"), exported.failed()), (len(TRACES), []))
        for row in exported.rows:
            words = [word for key, value in row["labels"].items() for word in ("--label", f"{key}={value}")]
            line = [JOJ, "trace", "--read", row["source"], "--export", f"parquet={alone}", *words]
            subprocess.run(line, check=True, capture_output=True)
        for table in ("commits", "runs"):
            made = {path.name: path.read_bytes() for path in (out / table).iterdir()}
            self.assertEqual(made, {path.name: path.read_bytes() for path in (alone / table).iterdir()})
        fleet = load(out)
        self.assertEqual(fleet.inventory.problems, [])
        labels = {tuple(sorted(trace.labels.items())) for trace in fleet.inventory.traces}
        self.assertIn((("app_version", "1.0"), ("device", "model 1"), ("device_id", "unit3")), labels)
        self.assertEqual(sorted(path.name for path in out.iterdir()), ["commits", "export.lock", "exported", "failures", "runs"])

    def test_what_is_exported_is_not_made_again(self) -> None:
        place, out = self.traces(3), self.folder() / "out"
        export(place, out=out)
        program, folder = self.fake("0")
        again = export(place, out=out, joj=str(program))
        self.assertEqual((again.count("there"), (folder / "log").exists()), (3, False))
        # One table of two is gone; a source is new; one was touched.
        next((out / "runs").iterdir()).unlink()
        shutil.copy(TRACES[3], place / "new.parquet")
        again = export(place, out=out, joj=str(program))
        self.assertEqual((again.count("there"), again.count("exported")), (2, 2))
        self.assertEqual((folder / "log").read_text().count("+"), 2)
        os.utime(place / "new.parquet", ns=(1, 1))
        self.assertEqual(export(place, out=out).count("exported"), 1)

    def test_what_is_no_file_is_a_row_and_joj_does_not_wait_for_it(self) -> None:
        place, out = self.traces(1), self.folder() / "out"
        os.mkfifo(place / "pipe.parquet")
        exported = export(place, out=out)
        self.assertEqual(exported.count("exported"), 1)
        self.assertIn("it is no file, but a pipe", self.failures(out)["pipe.parquet"])

    def test_what_fails_is_a_row_and_is_tried_again_on_demand(self) -> None:
        place, out = self.traces(3), self.folder() / "out"
        whole = TRACES[3].read_bytes()
        (place / "cut.parquet").write_bytes(whole[:-20])
        (place / "empty.parquet").write_bytes(b"")
        shutil.copy(ROOT / "lab/recordings/sql.joj", place / "calls.parquet")
        exported = export(place, place / "nowhere", out=out)
        self.assertEqual(exported.count("exported"), 3)
        reasons = {pathlib.Path(row["source"]).name: row["reason"] for row in exported.failed()}
        self.assertEqual(set(reasons), {"cut.parquet", "empty.parquet", "calls.parquet", "nowhere"})
        self.assertIn("recording", reasons["calls.parquet"])
        self.assertIn("No such file", reasons["nowhere"])
        self.assertEqual(self.failures(out), reasons)
        program, folder = self.fake("0")
        again = export(place, out=out, joj=str(program))
        self.assertEqual((again.count("failed before"), again.count("there")), (3, 3))
        self.assertEqual({row["reason"] for row in again.failed()}, set(reasons.values()) - {reasons["nowhere"]})
        self.assertFalse((folder / "log").exists())
        self.assertEqual(export(place, out=out, joj=str(program), retry=True).count("failed"), 3)
        # Who mends one need not ask for it.
        (place / "cut.parquet").write_bytes(whole)
        self.assertEqual(export(place, out=out).count("exported"), 1)
        self.assertEqual(set(self.failures(out)), {"empty.parquet", "calls.parquet", "nowhere"})

    def test_a_trace_has_one_set_of_labels(self) -> None:
        place, out = self.traces(1), self.folder() / "out"
        export(place, out=out, labels={"device": "A"})
        before = {path: path.read_bytes() for path in out.glob("*/*.parquet")}
        (row,) = export(place, out=out, labels={"device": "B"}).failed()
        self.assertIn('the same trace is there with the labels {"device": "A"}', row["reason"])
        self.assertEqual(before, {path: path.read_bytes() for path in out.glob("*/*.parquet")})
        (row,) = export(place, out=out, labels={"kernel": "x"}).failed()
        self.assertIn("--label kernel= would hide a column", row["reason"])
        # A damaged one may go.
        for path in before:
            path.write_bytes(path.read_bytes()[:-1])
        self.assertEqual(export(place, out=out, labels={"device": "B"}, retry=True).count("exported"), 1)

    def test_labels_come_from_paths(self) -> None:
        from joj import JojError
        from joj.exporting.traces import tasks

        def labels(pattern: str, path: str) -> dict | None:
            (task,) = tasks([path], pathlib.Path("/out"), {}, pattern).tasks
            return None if task.reason else task.labels

        self.assertEqual(labels("{a}.parquet", "/x/y.parquet"), {"a": "y"})
        self.assertEqual(labels("{a}/*/{b}_{c}.parquet", "/x/y/z/1_2_3.parquet"), {"a": "y", "b": "1_2", "c": "3"})
        self.assertEqual(labels("/x/{a}", "/x/y"), {"a": "y"})
        self.assertEqual(labels("x.[{a}", "/x.[y"), {"a": "y"})
        for pattern, path in (("{a}.parquet", "/x/y"), ("/y/{a}", "/x/y"), ("a{a}", "/a"), ("x.{a}", "/xyz"), ("{a}/{b}/{c}", "/x/y")):
            self.assertIsNone(labels(pattern, path), pattern)
        for pattern, told in (("*.parquet", "names no label"), ("{a}/{a}", "a is named twice")):
            self.assertRaisesRegex(JojError, told, labels, pattern, "/x")
        place, out = self.traces(1), self.folder() / "out"
        (row,) = export(place, out=out, label_from_path="{device}.trace").failed()
        self.assertEqual(row["reason"], "its path is not as `{device}.trace` says")

    def test_a_note_that_is_none_is_made_again(self) -> None:
        place, out = self.traces(1), self.folder() / "out"
        (place / "empty.parquet").write_bytes(b"")
        export(place, out=out)
        for kind, word, state in (("exported", "trace_id", "exported"), ("failures", "reason", "failed")):
            (note,) = (out / kind).iterdir()
            whole = json.loads(note.read_text())
            changed = [json.dumps(whole | {word: value}) for value in (None, 5, [])]
            del whole[word]
            for text in (*changed, json.dumps(whole), "null", "[]", "", "[" * 100_000):
                note.write_text(text)
                self.assertEqual(export(place, out=out).count(state), 1, (kind, text[:40]))

    def test_a_program_that_is_not_joj_is_a_failure(self) -> None:
        place, program = self.traces(1), self.folder() / "other"
        for made in ("commits runs", "commits/a commits/b runs", "commits/a.parquet runs/b.parquet"):
            program.write_text(f"#!/bin/bash\nfor word; do [[ $word == parquet=* ]] && cd ${{word#*=}}; done\nmkdir -p {made}\n")
            program.chmod(0o755)
            (row,) = export(place, out=self.folder() / "out", joj=str(program)).failed()
            self.assertIn("wrote no table of commits with one of runs: is it joj?", row["reason"])

    def test_what_is_below_the_tables_is_no_trace(self) -> None:
        place = self.traces(2)
        out = place / "out"
        (place / "now.parquet.part").write_bytes(b"")
        (place / "then.parquet.gz").write_bytes(b"")
        export(place, out=out)
        again = export(place, out=out)
        self.assertEqual((len(again.rows), again.count("there")), (2, 2))
        self.assertEqual([problem.path for problem in again.problems], [str(place / name) for name in ("now.parquet.part", "then.parquet.gz")])

    def test_names_that_are_no_text_are_names(self) -> None:
        place, out = self.folder(), self.folder() / "out"
        name = os.fsdecode(b"-\xff \n*.parquet")
        shutil.copy(TRACES[0], place / name)
        self.assertEqual(export(place, out=out).count("exported"), 1)
        self.assertEqual(export(place, out=out).rows[0]["source"], str(place / name))


class Processes(ExportTest):
    def test_there_are_as_many_as_were_asked_for(self) -> None:
        place, out = self.traces(9), self.folder() / "out"
        program, folder = self.fake("0.3")
        self.assertEqual(export(place, out=out, joj=str(program), jobs=3).count("exported"), 9)
        running = most = 0
        for line in (folder / "log").read_text().split():
            running += 1 if line == "+" else -1
            most = max(most, running)
        self.assertEqual((most, running), (3, 0))

    def test_ctrl_c_ends_all_and_leaves_what_is_whole(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            place, out = self.traces(4), self.folder() / "out"
            export(*sorted(place.glob("*/unit[01]-*")), out=out)
            program, folder = self.fake("600")
            line = [sys.executable, "-m", "joj", "fleet", "export", place, "--out", out, "--jobs", "2", "--joj", program]
            # A group of its own: only Python gets the signal.
            export_process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0)
            self.addCleanup(end_group, export_process.pid)
            end = time.monotonic() + 60
            while not (folder / "log").exists() or (folder / "log").read_text().count("+") < 2:
                self.assertLess(time.monotonic(), end, "both programs run")
                time.sleep(0.05)
            export_process.send_signal(number)
            told, said = export_process.communicate(timeout=60)
            self.assertEqual((export_process.returncode, told, said), (130, "", "joj: stopped\n"))
            self.assertEqual((folder / "log").read_text().count("-"), 2, "both programs have ended")
            self.assertEqual([path.name for path in out.iterdir() if path.suffix == ".part"], [])
            self.assertEqual((len(load(out).inventory.traces), list((out / "failures").iterdir())), (2, []))
            rest = export(place, out=out)
            self.assertEqual((rest.count("there"), rest.count("exported")), (2, 2))

    def test_what_a_killed_export_leaves_is_named_and_goes(self) -> None:
        place, out = self.traces(1), self.folder() / "out"
        export(place, out=out)
        left = out / ("0" * 32 + ".part")
        shutil.copytree(out / "commits", left / "commits")
        found = load(out).inventory
        self.assertEqual((len(found.traces), [problem.path for problem in found.problems]), (1, [str(left)]))
        export(place, out=out)
        self.assertFalse(left.exists())

    def test_a_second_export_waits_not_and_says_so(self) -> None:
        import fcntl

        from joj import JojError

        place, out = self.traces(1), self.folder()
        with open(out / "export.lock", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.assertRaisesRegex(JojError, "another export writes to", export, place, out=out)

    def test_a_note_that_cannot_be_written_leaves_nothing(self) -> None:
        from joj.exporting import one

        out = self.folder()
        (out / "failures").mkdir()
        with unittest.mock.patch.object(one.json, "dump", side_effect=OSError(28, "No space left on device")):
            self.assertRaises(OSError, one._write_note, one.Place("joj", str(out), False), "failures", one.Source("/a", {}), {})
        self.assertEqual(list((out / "failures").iterdir()), [])

    def test_without_joj_nothing_fails_but_all(self) -> None:
        from joj import JojError

        out = self.folder()
        self.assertRaisesRegex(JojError, "cannot run /no/joj: No such file.*--joj", export, self.traces(2), out=out, joj="/no/joj")
        self.assertEqual(list((out / "failures").iterdir()), [])


class Command(ExportTest):
    def test_it_says_what_became_of_each(self) -> None:
        place, out = self.traces(2), self.folder() / "out"
        (place / "bad\x1b.parquet").write_bytes(b"")
        arguments = [place, "--out", out, "--joj", JOJ, "--jobs", "2", "--label", "app=x"]
        shown = call("export", *arguments)
        self.assertEqual((shown.returncode, shown.stderr), (1, ""))
        self.assertIn("3 traces: 2 exported now, 0 were there, 1 failed\n", shown.stdout)
        self.assertIn("bad\\u{1b}.parquet: ", shown.stdout)
        told = call("export", *arguments, "--json", "-")
        said = json.loads(told.stdout)
        self.assertEqual(said["counts"], {"traces": 3, "exported": 0, "there": 2, "failed": 1})
        self.assertEqual({row["state"] for row in said["traces"]}, {"there", "failed before"})
        self.assertIn("--retry tries again", told.stderr)
        (place / "bad\x1b.parquet").unlink()
        self.assertEqual(call("export", *arguments).returncode, 0)

    def test_it_says_what_is_wrong(self) -> None:
        place = self.traces(1)
        for arguments, code, told in [
            ([place], 2, "--out"),
            ([place, "--out", work() / "x", "--jobs", "0"], 2, "is no number of processes"),
            ([place, "--out", work() / "x", "--label", "x"], 2, "is no label; write KEY=VALUE"),
            ([place, "--out", work() / "x", "--label", "a=1", "--label", "a=2"], 1, "a label is named twice"),
            ([self.folder(), "--out", work() / "x"], 1, "there is no trace"),
            ([place, "--out", "/dev/null/x"], 1, "cannot make /dev/null/x"),
        ]:
            result = call("export", *arguments)
            self.assertEqual((result.returncode, result.stdout), (code, ""), arguments)
            self.assertIn(told, result.stderr)


@unittest.skipUnless(shutil.which("java"), "Spark needs a JDK (package default-jdk-headless), and there is no java")
class OnSpark(ExportTest):
    def test_workers_make_the_same_tables(self) -> None:
        from joj import JojError
        from joj.session import spark_session

        os.environ["PYSPARK_PYTHON"] = sys.executable
        session = spark_session("local[2]")
        place, out, here = self.traces(len(TRACES)), self.folder() / "out", self.folder() / "here"
        (place / "model 0/unit9-cut.parquet").write_bytes(b"PAR1")
        program, folder = self.fake("0.5")
        made = export(place, out=out, label_from_path=PATTERN, spark=session, joj=str(program))
        export(place, out=here, label_from_path=PATTERN)
        self.assertEqual((made.count("exported"), made.count("failed")), (len(TRACES), 1))
        for table in ("commits", "runs"):
            self.assertEqual({path.name: path.read_bytes() for path in (out / table).iterdir()},
                             {path.name: path.read_bytes() for path in (here / table).iterdir()})
        log = (folder / "log").read_text().split()
        self.assertIn(["+", "+"], [log[at : at + 2] for at in range(len(log))], "two at a time")
        again = export(place, out=out, label_from_path=PATTERN, spark=session)
        self.assertEqual((again.count("there"), again.count("failed before")), (len(TRACES), 1))
        self.assertRaisesRegex(JojError, "cannot run /no/joj", export, place, out=self.folder(), spark=session, joj="/no/joj")


if "JOJ_SOAK_SECONDS" not in os.environ:
    # It takes Spark a minute.
    del OnSpark


class Workers(ExportTest):
    def test_they_need_no_package_of_ours(self) -> None:
        try:
            from pyspark import cloudpickle
        except ImportError:
            self.skipTest("there is no Spark")
        from joj.exporting import one
        from joj.exporting.run import _worker

        place, out, file = self.traces(1), self.folder() / "out", self.folder() / "worker"
        for kind in ("runs", "commits", "exported", "failures"):
            (out / kind).mkdir(parents=True)
        cloudpickle.register_pickle_by_value(one)
        self.addCleanup(cloudpickle.unregister_pickle_by_value, one)
        file.write_bytes(cloudpickle.dumps(_worker(one.Place(str(JOJ), str(out), False))))
        (source,) = place.glob("*/*")
        task = json.dumps({"source": str(source), "labels": {}, "reason": None})
        script = (
            "import json, pickle, sys; sys.modules['joj'] = None; import pyarrow as pa; "
            f"run = pickle.load(open({str(file)!r}, 'rb')); "
            f"batch, = run([pa.RecordBatch.from_pydict({{'task': [{task!r}]}})]); print(json.loads(batch.column(0)[0].as_py())['state'])"
        )
        ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        self.assertEqual((ended.returncode, ended.stdout), (0, "exported\n"), ended.stderr)
