"""Exports traces: several processes of joj at a time, here or on Spark's workers."""

import json
import os
import re
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from joj.errors import JojError
from joj.exporting import one
from joj.exporting.traces import Tasks, tasks
from joj.files import Problem, absolute, check_named
from joj.rows import Row

#: Folders of what a killed export left.
LEFT_OVER = re.compile(r"[0-9a-f]{32}\.part")
#: How long joj has to end at Ctrl-C.
END_SECONDS = 5.0
#: Is told how many traces are done, of how many, and how many of them failed.
Progress = Callable[[int, int, int], None]


@dataclass(frozen=True)
class Exported:
    """What became of each trace."""

    #: `source`, `labels`, `state`, `trace_id`, `reason` of each trace.
    rows: list[Row]
    #: What was found beside traces and does not count.
    problems: list[Problem]

    def count(self, *states: str) -> int:
        """How many traces are in one of these states."""
        return sum(row["state"] in states for row in self.rows)

    def failed(self) -> list[Row]:
        """The traces that are not exported."""
        return [row for row in self.rows if row["state"] in (one.FAILED, one.FAILED_BEFORE)]


def export(
    traces: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    jobs: int | None = None,
    joj: str = "joj",
    labels: Mapping[str, str] | None = None,
    label_from_path: str | None = None,
    retry: bool = False,
    spark: Any = None,
    progress: Progress | None = None,
) -> Exported:
    """Exports saved traces as tables below `out` (docs/fleet_export.md).

    `traces`: files, and folders in which files are called `.parquet`. `jobs`: processes of joj at a time; without it, one for each
    processor, or with `spark` its default parallelism. `label_from_path`: for example
    `{device}/{device_id}/*.parquet`. `retry`: what failed before is tried again. `spark`: a session, whose workers see traces and `out`
    under the same paths, and have joj and pyarrow.

    A trace that cannot be exported is a row with its reason, and raises nothing. Ctrl-C ends all processes, and what is whole stays.
    """
    check_named(out)
    place = Path(absolute(out))
    found = tasks(traces, place, labels or {}, label_from_path)
    if not found.tasks:
        raise JojError("there is no trace: name files, or folders with files called .parquet")
    if jobs is not None and jobs < 1:
        raise JojError(f"{jobs} processes export nothing; take 1 or more")
    with _locked(place):
        how = one.Place(joj, str(place), retry)
        words = [json.dumps(asdict(task)) for task in found.tasks]
        told = _local(how, words, jobs or os.cpu_count() or 1) if spark is None else _on_spark(spark, how, words, jobs)
        return Exported(_collected(told, found, progress), found.problems)


def _collected(told: Iterable[str], found: Tasks, progress: Progress | None) -> list[Row]:
    rows: list[Row] = []
    states = Counter[str]()
    for text in told:
        row = json.loads(text)
        if row["state"] == one.NO_JOJ:
            raise JojError(f"{row['reason']}; name it with `joj=`, or `--joj`")
        rows.append(row)
        states[row["state"]] += 1
        if progress:
            progress(len(rows), len(found.tasks), states[one.FAILED] + states[one.FAILED_BEFORE])
    return sorted(rows, key=lambda row: row["source"])


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    """The directory for this export alone, with its folders, and without what a killed one left."""
    # Here: only Linux has it, and who asks a fleet does not need it.
    import fcntl

    try:
        for kind in (*one.TABLES, "exported", "failures"):
            (out / kind).mkdir(parents=True, exist_ok=True)
        file = open(out / "export.lock", "w", encoding="ascii")
    except OSError as error:
        raise JojError(f"cannot make {error.filename}: {error.strerror}; name another directory") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise JojError(f"another export writes to {out}: wait for its end") from error
        for left in out.iterdir():
            if LEFT_OVER.fullmatch(left.name):
                shutil.rmtree(left, ignore_errors=True)
        yield


class _Processes:
    """The processes that run, so that they can be ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[subprocess.Popen[bytes]] = []
        self._is_ended = False

    def started(self, process: "subprocess.Popen[bytes]") -> None:
        with self._lock:
            self._running = [*(other for other in self._running if other.poll() is None), process]
            if self._is_ended:
                process.terminate()

    def end(self) -> None:
        with self._lock:
            self._is_ended = True
            for process in self._running:
                process.terminate()
        for process in self._running:
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def _local(place: one.Place, words: Sequence[str], jobs: int) -> Iterator[str]:
    processes = _Processes()

    def run(task: str) -> str:
        return one.export_one(place, task, processes.started)

    with ThreadPoolExecutor(max_workers=min(jobs, len(words))) as pool:
        futures = [pool.submit(run, task) for task in words]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BaseException:
            for future in futures:
                future.cancel()
            processes.end()
            raise


def _on_spark(session: Any, place: one.Place, words: Sequence[str], jobs: int | None) -> Iterator[str]:
    from pyspark.cloudpickle import register_pickle_by_value, unregister_pickle_by_value

    frame = session.createDataFrame([(word,) for word in words], "task string")
    frame = frame.repartition(min(jobs or session.sparkContext.defaultParallelism, len(words)))
    # Workers have no package of ours.
    register_pickle_by_value(one)
    try:
        # Not an iterator: it would have one part computed after the other.
        yield from (row.told for row in frame.mapInArrow(_worker(place), "told string").collect())
    finally:
        unregister_pickle_by_value(one)


def _worker(place: one.Place) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """What a worker does with its traces."""
    export_one = one.export_one

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow

        for batch in batches:
            for task in batch.column(0).to_pylist():
                told = pyarrow.array([export_one(place, task)], pyarrow.string())
                yield pyarrow.RecordBatch.from_arrays([told], ["told"])

    return run
