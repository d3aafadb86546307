"""A plan of the lab on Spark's workers.

An emulated machine would take minutes: in place of joj stands a program that measures nothing, and has the real joj merge. Its parts
are made of fixtures/lab/made_up_result.json.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from fleets import JOJ, PLACE

ROOT = pathlib.Path(__file__).resolve().parents[3]
WORKERS = 4
#: In place of joj. `$BEHAVIOUR` is what goes wrong.
FAKE = r'''#!{python}
import json, os, pathlib, sys, time

words, work = sys.argv[1:], pathlib.Path("{work}")
made_up = json.loads(pathlib.Path("{made_up}").read_text())
if words[:2] == ["lab", "merge"]:
    os.execv("{joj}", ["{joj}", *words])
plan, options = words[2], dict(zip(words[3::1], words[4::1]))
if "--dry-run" in words:
    print("cell\n" * len(made_up["cells"]), end="")
    sys.exit(0)
number, count = map(int, options["--shard"].split("/"))
(work / f"began-{{number}}").write_text(json.dumps([words, os.getppid()]))
behaviour = (work / "behaviour").read_text()
if behaviour == "together":
    # Goes on when all are here: one worker alone would wait in vain.
    end = time.monotonic() + 60
    while len(list(work.glob("began-*"))) < count and time.monotonic() < end:
        time.sleep(0.05)
    if len(list(work.glob("began-*"))) < count:
        sys.exit("not all workers were here at the same time")
if behaviour == "failing" and number == 2:
    sys.exit("joj lab: no QEMU here; install it")
cells = made_up["cells"]
own = range(number - 1, len(cells), count)
if behaviour == "doubled":
    number, own = 1, range(0, len(cells), count)
title = pathlib.Path(plan).read_text() if pathlib.Path(plan).is_file() else plan
part = {{
    "format": "joj-lab-part", "version": 2, "shard": number, "shards": count, "title": title,
    "machine": made_up["machine"], "made_from": {{}}, "cells": [cell["cell"] for cell in cells],
    "outcomes": [{{"index": index, "outcome": cells[index]["outcome"]}} for index in own],
}}
text = json.dumps(part)[:-1] + ", "
checksum = 0xcbf29ce484222325
for byte in text.encode():
    checksum = (checksum ^ byte) * 0x100000001b3 % 2**64
pathlib.Path(options["--json"]).write_text(f'{{text}}"checksum": "{{checksum:016x}}"}}}}')
sys.exit(any("failed" in one["outcome"] for one in part["outcomes"]))
'''


@unittest.skipUnless(shutil.which("java"), "Spark needs a JDK (package default-jdk-headless), and there is no java")
class Shards(unittest.TestCase):
    """Four workers of one machine."""

    @classmethod
    def setUpClass(cls) -> None:
        from pyspark.sql import SparkSession

        # Workers of Spark take the python3 of the PATH, unless they are told.
        os.environ["PYSPARK_PYTHON"] = sys.executable
        builder = SparkSession.builder.master(f"local[{WORKERS}]").appName("joj").config("spark.ui.enabled", "false")
        cls.spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
        cls.spark.sparkContext.setLogLevel("OFF")
        cls.addClassCleanup(cls.spark.stop)

    def setUp(self) -> None:
        self.work = pathlib.Path(tempfile.mkdtemp(dir=PLACE))
        self.addCleanup(shutil.rmtree, self.work)
        self.joj = self.work / "joj"
        made_up = ROOT / "fixtures/lab/made_up_result.json"
        self.joj.write_text(FAKE.format(python=sys.executable, work=self.work, joj=JOJ, made_up=made_up))
        self.joj.chmod(0o755)
        self.behave("well")

    def behave(self, behaviour: str) -> None:
        (self.work / "behaviour").write_text(behaviour)
        for file in self.work.glob("began-*"):
            file.unlink()

    def lab(self, plan="smoke", **options):
        import joj

        return joj.lab(plan, self.spark, **{"joj": str(self.joj), **options})

    def began(self) -> dict[int, tuple[list[str], int]]:
        """What each shard was told, and the worker's process."""
        return {int(file.name.split("-")[1]): json.loads(file.read_text()) for file in self.work.glob("began-*")}

    def test_four_workers_at_once_give_the_bytes_of_one_run(self) -> None:
        whole, shared = self.work / "whole.json", self.work / "shared.json"
        self.lab(shards=1, json_file=whole)
        self.behave("together")
        result = self.lab(shards=WORKERS, json_file=shared)
        self.assertEqual(shared.read_bytes(), whole.read_bytes())
        self.assertEqual(result, json.loads(whole.read_text()))
        self.assertEqual((result["format"], len(result["cells"])), ("joj-lab-result", 8))
        self.assertIn("failed", {key for cell in result["cells"] for key in cell["outcome"]}, "joj's exit code was 1")
        began = self.began()
        self.assertEqual(set(began), {1, 2, 3, 4})
        self.assertEqual(len({worker for _, worker in began.values()}), WORKERS, "each in a worker of its own")

    def test_without_a_number_each_cell_is_a_shard(self) -> None:
        self.assertEqual(len(self.lab()["cells"]), 8)
        self.assertEqual(len(self.began()), 8)

    def test_a_plan_of_the_drivers_comes_to_the_workers_and_options_too(self) -> None:
        plan = self.work / "plan.toml"
        plan.write_text("the driver's plan")
        result = self.lab(plan, shards=2, jobs=3, only=["f2fs", "WAL"], options=["--cell-seconds", "9"])
        self.assertEqual(result["title"], "the driver's plan")
        words, _ = self.began()[2]
        self.assertNotEqual(words[2], str(plan), "a copy of the worker's own")
        self.assertEqual(words[3:11], ["--jobs", "3", "--only", "f2fs", "--only", "WAL", "--cell-seconds", "9"])
        self.assertFalse(pathlib.Path(words[2]).exists(), "it is gone")

    def test_what_fails_is_an_error_with_its_words(self) -> None:
        from joj import JojError

        self.behave("failing")
        with self.assertRaisesRegex(JojError, r"1 of 4 shards have no part:\nshard 2/4 on .*: joj ended with exit code 1: .*no QEMU"):
            self.lab(shards=4)
        self.behave("doubled")
        with self.assertRaisesRegex(JojError, r"are both shard 1/2"):
            self.lab(shards=2)
        with self.assertRaisesRegex(JojError, r"on .*: cannot run /no/joj"):
            self.lab(shards=2, joj="/no/joj")
        with self.assertRaisesRegex(JojError, r"cannot run /no/joj: .*name it with `joj=`"):
            self.lab(joj="/no/joj")
        with self.assertRaisesRegex(JojError, r"0 shards of no run"):
            self.lab(shards=0)

    def test_a_worker_needs_no_package_of_ours(self) -> None:
        from pyspark.cloudpickle import dumps

        from joj.shards import _worker

        file = self.work / "worker"
        file.write_bytes(dumps(_worker(str(self.joj), ["smoke"], None, 1)))
        script = (
            "import pickle, sys; sys.modules['joj'] = None; import pyarrow as pa; "
            f"run = pickle.load(open({str(file)!r}, 'rb')); "
            "batch, = run([pa.RecordBatch.from_pydict({'id': [1]})]); print(batch.column(2), batch.num_rows)"
        )
        ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        self.assertEqual(ended.returncode, 0, ended.stderr)
