"""What is done with one trace, on a thread here or on a worker of Spark.

    OUT/NUMBER.part/        what joj writes, until both tables are whole
    OUT/runs, OUT/commits   the tables: a rename each, the runs first
    OUT/exported/KEY.json   the note of a source that is exported: not made again while source and labels stay the same
    OUT/failures/KEY.json   the note of one that failed, with its reason: tried again where it changed, or on demand

Workers get this module as it stands, and no other one of the package: it uses the standard library and pyarrow alone.
"""

import hashlib
import json
import os
import shutil
import stat
import subprocess
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: States of a trace: exported now, exported before, failed now, failed before, given up at Ctrl-C, no program to export it with.
EXPORTED, THERE, FAILED, FAILED_BEFORE, STOPPED, NO_JOJ = "exported", "there", "failed", "failed before", "stopped", "no joj"
#: The tables of a trace, in the order in which they get their names: who finds commits finds their runs.
TABLES = ("runs", "commits")
#: What a note says besides its source.
SAYS = {"exported": "trace_id", "failures": "reason"}
#: How joj ends at Ctrl-C and when it is told to end; the latter two where it had no time for that.
STOPPED_CODES = (130, -2, -15)
#: What of joj's words is kept.
SAID_BYTES = 4000


class Failed(Exception):
    """Why a trace is not exported."""


class Stopped(Exception):
    """It was given up."""


class NoProgram(Exception):
    """Why joj cannot be run."""


@dataclass(frozen=True)
class Place:
    """How and where to."""

    joj: str
    out: str
    is_retry: bool


@dataclass
class Source:
    """A trace, and what its notes have of it."""

    path: str
    labels: dict[str, str]
    size: int | None = None
    mtime_ns: int | None = None

    def noted(self) -> dict[str, Any]:
        return {"source": self.path, "size": self.size, "mtime_ns": self.mtime_ns, "labels": self.labels}


#: Is told of each process that is started.
Watch = Callable[["subprocess.Popen[bytes]"], None]


def export_one(place: Place, task: str, watch: Watch | None = None) -> str:
    """Exports a trace: a `Task` as JSON gives a row as JSON, ASCII alone."""
    told = json.loads(task)
    source = Source(told["source"], told["labels"])
    row = {"source": source.path, "labels": source.labels, "state": FAILED, "trace_id": None, "reason": None}
    try:
        if told["reason"]:
            raise Failed(told["reason"])
        row.update(_make(place, source, watch))
    except Stopped:
        row.update(state=STOPPED)
    except NoProgram as error:
        row.update(state=NO_JOJ, reason=str(error))
    except (Failed, OSError) as error:
        reason = str(error) if isinstance(error, Failed) else f"{error.filename or source.path}: {error.strerror}"
        row.update(reason=reason)
        try:
            _write_note(place, "failures", source, {"format": "joj-not-exported", "version": 1, "reason": reason})
        except OSError as other:
            row.update(reason=f"{reason}; and that cannot be noted: {other.strerror}")
    return json.dumps(row)


def _make(place: Place, source: Source, watch: Watch | None) -> dict[str, Any]:
    status = os.stat(source.path)
    if not stat.S_ISREG(status.st_mode):
        # joj would wait at a pipe.
        raise Failed("it is no file, but a pipe, a socket, a folder or a device")
    source.size, source.mtime_ns = status.st_size, status.st_mtime_ns
    exported, failed = _note(place, "exported", source), _note(place, "failures", source)
    if exported and all(os.path.exists(_table(place, kind, exported["trace_id"])) for kind in TABLES):
        return {"state": THERE, "trace_id": exported["trace_id"]}
    if failed and not place.is_retry:
        return {"state": FAILED_BEFORE, "reason": failed["reason"]}
    work = os.path.join(place.out, uuid.uuid4().hex + ".part")
    os.mkdir(work)
    try:
        _run(place, source, work, watch)
        names = [os.listdir(os.path.join(work, kind)) for kind in TABLES]
        if len(names[0]) != 1 or names[0] != names[1]:
            raise Failed(f"{place.joj} wrote no table of commits with one of runs: is it joj?")
        name = names[0][0]
        trace_id = name.removesuffix(".parquet")
        _check_labels(place, source, trace_id)
        for kind in TABLES:
            os.replace(os.path.join(work, kind, name), _table(place, kind, trace_id))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    _write_note(place, "exported", source, {"format": "joj-exported", "version": 1, "trace_id": trace_id})
    if os.path.exists(_note_path(place, "failures", source)):
        os.unlink(_note_path(place, "failures", source))
    return {"state": EXPORTED, "trace_id": trace_id}


def _run(place: Place, source: Source, work: str, watch: Watch | None) -> None:
    """Has joj write both tables below `work`."""
    words = [word for key, value in source.labels.items() for word in ("--label", f"{key}={value}")]
    command = [place.joj, "trace", "--read", source.path, "--export", f"parquet={work}", *words]
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    except OSError as error:
        raise NoProgram(f"cannot run {place.joj}: {error.strerror}") from error
    with process:
        if watch:
            watch(process)
        said = process.communicate()[1][-SAID_BYTES:].decode(errors="replace").strip()
    if process.returncode in STOPPED_CODES:
        raise Stopped
    if process.returncode < 0:
        raise Failed(f"joj was ended by signal {-process.returncode}")
    if process.returncode > 0:
        raise Failed(_reason(said) or f"joj ended with exit code {process.returncode}")


def _reason(said: str) -> str:
    """Of what joj said, the error: behind one in its command line there is a hint."""
    lines = said.splitlines()
    errors = [line for line in lines if line.startswith(("joj: ", "error: "))] or lines or [""]
    return errors[-1].removeprefix("joj: ").removeprefix("error: ")


def _check_labels(place: Place, source: Source, trace_id: str) -> None:
    """Ends an export that would put itself in place of the same trace with other labels, as joj does."""
    from pyarrow.parquet import read_metadata

    try:
        entries = read_metadata(_table(place, "commits", trace_id)).metadata or {}
        labels = json.loads(entries[b"joj_table"])["labels"]
    except Exception:
        # It is not there, or not whole: then it may go.
        return
    if labels != source.labels:
        raise Failed(
            f"the same trace is there with the labels {json.dumps(labels)}: one of the two is wrong, or it is of another "
            "device; export it into another directory"
        )


def _table(place: Place, kind: str, trace_id: str) -> str:
    return os.path.join(place.out, kind, trace_id + ".parquet")


def _note_path(place: Place, kind: str, source: Source) -> str:
    key = hashlib.sha256(os.fsencode(source.path)).hexdigest()[:32]
    return os.path.join(place.out, kind, key + ".json")


def _note(place: Place, kind: str, source: Source) -> dict[str, Any] | None:
    """What was noted of this source, if source and labels are still the same."""
    try:
        with open(_note_path(place, kind, source), encoding="ascii") as file:
            found: dict[str, Any] = json.load(file)
        is_whole = isinstance(found[SAYS[kind]], str)
        return found if is_whole and all(found[name] == value for name, value in source.noted().items()) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _write_note(place: Place, kind: str, source: Source, says: dict[str, Any]) -> None:
    path = _note_path(place, kind, source)
    part = f"{path}.{uuid.uuid4().hex}.part"
    with open(part, "w", encoding="ascii") as file:
        try:
            json.dump({**says, **source.noted()}, file)
            file.flush()
        except OSError:
            os.unlink(part)
            raise
    os.replace(part, path)
