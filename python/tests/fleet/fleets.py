"""Made fleets with known answers, and how a test asks them."""

import contextlib
import functools
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

JOJ = pathlib.Path(os.environ["JOJ"])
# Not /tmp, which is often memory.
PLACE = os.environ.get("JOJ_TEST_DIR", "/var/tmp")
BY = ["device", "app_version"]


@functools.cache
def work() -> pathlib.Path:
    """A directory for all tests of this process."""
    made = pathlib.Path(tempfile.mkdtemp(dir=PLACE))
    return made


@functools.cache
def planted() -> pathlib.Path:
    """A fleet with a regression and damaged files."""
    return generate("planted", "--fleet", "160", "--damaged", "6", "--seed", "7")


@functools.cache
def even(seed: int = 8) -> pathlib.Path:
    """A fleet with neither."""
    return generate(f"even-{seed}", "--fleet", "80", "--regression", "1", "--seed", str(seed))


def generate(name: str, *options: str) -> pathlib.Path:
    place = work() / name
    command = [JOJ, "trace-generate", "--out", place, "--commits", "200", *options]
    subprocess.run(command, check=True, capture_output=True)
    return place


def answers(place: pathlib.Path) -> dict:
    return json.loads((place / "answers.json").read_text())


def load(place: pathlib.Path, **options: str):
    import joj

    return joj.load(place, **options)


def command(*arguments: object) -> subprocess.CompletedProcess:
    """`python -m joj fleet report`, in this process."""
    return call("report", *arguments)


def call(*arguments: object) -> subprocess.CompletedProcess:
    """`python -m joj fleet`, in this process."""
    from joj.__main__ import main

    told, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(said):
        try:
            code = main(["fleet", *map(str, arguments)])
        except SystemExit as end:
            code = end.code
    return subprocess.CompletedProcess(arguments, code, told.getvalue(), said.getvalue())


def process(*arguments: object, **environment: str) -> subprocess.CompletedProcess:
    """The same as people call it, where the process itself matters."""
    line = [sys.executable, "-m", "joj", "fleet", "report", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, cwd=work(), env={**os.environ, **environment})


class FleetTest(unittest.TestCase):
    """With directories of a test's own."""

    def folder(self) -> pathlib.Path:
        place = pathlib.Path(tempfile.mkdtemp(dir=work()))
        self.addCleanup(shutil.rmtree, place)
        return place

    def copy(self, traces: int = 1, place: pathlib.Path | None = None) -> pathlib.Path:
        """Whole traces of the fleet without damaged files, alone: two of each device, one of each version."""
        place = place or self.folder() / "copy"
        for table in ("commits", "runs"):
            (place / table).mkdir(parents=True)
        for name in names()[:traces]:
            for table in ("commits", "runs"):
                shutil.copy(even() / table / name, place / table)
        return place

    def refused(self, *arguments: object, code: int = 1) -> str:
        """What the command says where there is no answer: one message, and no traceback."""
        result = command(*arguments)
        self.assertEqual((result.returncode, result.stdout), (code, ""), arguments)
        return result.stderr


@functools.cache
def names() -> list[str]:
    """The file names of the even fleet's traces, by device and version."""
    from joj.files import take_inventory

    traces = take_inventory(even()).traces
    order = sorted(traces, key=lambda trace: (trace.labels.get("device_id", "~"), trace.labels.get("app_version", "")))
    return [pathlib.Path(trace.files["commits"]).name for trace in order]
