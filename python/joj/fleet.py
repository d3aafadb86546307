"""The tables of whole traces, on an engine."""

import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from ibis.expr.types import Table

from joj.engines import Engine, connect, why, why_not_taken
from joj.errors import JojError
from joj.files import Inventory, inventory_of, known_check, take_inventory
from joj.integrity import TABLES, why_not_whole
from joj.objects import Progress, fetch, is_url, reach
from joj.row_check import FACTS, unreadable, wrong_files
from joj.rows import Row, rows_of

#: Columns with one value for a whole trace, in both tables.
TRACE_COLUMNS = ("trace_id", "device", "device_id", "kernel", "sqlite_build")
#: Other columns of commits that may be grouped by.
COMMIT_COLUMNS = ("application", "filesystem", "file_path", "journal_mode", "sync_mode", "kind")
#: What questions look at, and labels: those of the header are to be those of the rows.
ASKED = {
    "commits": (
        *FACTS,
        *COMMIT_COLUMNS,
        *("sqlite_work", "written_bytes", "journal_of_journal_bytes", "flushes", "fsyncs", "duration_ns"),
    ),
    "runs": (
        *FACTS,
        *("sqlite_work", "operation", "issued_ns", "completed_ns", "byte_length", "file_path", "file_type"),
    ),
}
#: A table whose files have fewer rows, on average, is read once. With 4,700 a report takes as long either way.
SMALL_FILE_ROWS = 5_000
#: In front of a label's name while it is a column beside those of the tables: none of these begins so.
LABEL_PREFIX = "label_"
#: What only a commit knows, of a run that belongs to none.
NO_COMMIT = "(no commit)"


@dataclass(frozen=True)
class Fleet:
    """Two tables, and what is known of their traces."""

    #: A row for each commit, checkpoint and recovery (docs/trace_tables.md), read from the files whenever it is asked.
    commits: Table
    #: A row for each run of each request.
    runs: Table
    inventory: Inventory
    engine: Engine

    @cached_property
    def asked(self) -> dict[str, Table]:
        """The columns of both tables that questions look at. The engine reads small files once, and keeps these of their rows."""
        with _what_stops(self.engine, self.inventory):
            return {name: self._kept(name, table) for name, table in (("commits", self.commits), ("runs", self.runs))}

    def _kept(self, name: str, table: Table) -> Table:
        asked = table.select(*ASKED[name])
        rows = self.inventory.rows(name)
        is_small = rows < SMALL_FILE_ROWS * len(self.inventory.traces)
        return self.engine.gather(f"kept_{name}", asked, rows) if is_small else asked

    def labels(self) -> list[str]:
        """Keys of labels that a trace has."""
        return sorted({key for trace in self.inventory.traces for key in trace.labels})

    def days(self) -> float:
        """The time of all traces together."""
        return sum(trace.span_ns for trace in self.inventory.traces) / 86_400e9

    def days_by_model(self) -> Table:
        """The time of the traces of each model, together."""
        spans: dict[str, int] = {}
        for trace in self.inventory.traces:
            model, _ = trace.device()
            spans[model] = spans.get(model, 0) + trace.span_ns
        days = [span / 86_400e9 for span in spans.values()]
        with _what_stops(self.engine, self.inventory):
            return self.engine.values("days", {"device": list(spans), "days": days})

    def check_keys(self, keys: Sequence[str]) -> list[str]:
        """The keys, each once. Raises where something cannot be grouped by."""
        known = [*TRACE_COLUMNS, *COMMIT_COLUMNS]
        known += [label for label in self.labels() if label not in known]
        keys = list(dict.fromkeys(keys))
        for key in keys:
            if key not in known:
                raise JojError(f"`{key}` is no column and no label; group by some of {', '.join(known)}")
        by_lower: dict[str, str] = {}
        for key in filter(_is_label, keys):
            other = by_lower.setdefault(key.lower(), key)
            if other != key:
                raise JojError(f"`{other}` and `{key}` are one name to an engine; group by one of them")
        return keys

    def commits_by(self, keys: Sequence[str]) -> Table:
        """What is asked of commits, with a column for each key: `key_columns` says which."""
        return self._labelled(self.asked["commits"], self.check_keys(keys))

    def runs_by(self, keys: Sequence[str]) -> Table:
        """What is asked of runs, with a column for each key. What only a commit knows comes from the commit that a run belongs to."""
        keys = self.check_keys(keys)
        runs = self._labelled(self.asked["runs"], keys)
        of_commit = [key for key in keys if key in COMMIT_COLUMNS]
        if not of_commit:
            return runs
        commits = self.asked["commits"].select("trace_id", "sqlite_work", *of_commit)
        runs = runs.drop(*(key for key in of_commit if key in runs.columns))
        joined = runs.left_join(commits, ["trace_id", "sqlite_work"])
        return joined.mutate(**{key: joined[key].fill_null(NO_COMMIT) for key in of_commit})

    def _labelled(self, table: Table, keys: Sequence[str]) -> Table:
        labels = [key for key in keys if _is_label(key)]
        if not labels:
            return table
        columns: dict[str, list[str]] = {"trace_id": [trace.trace_id for trace in self.inventory.traces]}
        for label in labels:
            columns[LABEL_PREFIX + label] = [trace.labels.get(label, "") for trace in self.inventory.traces]
        with _what_stops(self.engine, self.inventory):
            return table.inner_join(self.engine.values("labels", columns), "trace_id")

    def rows(self, table: Table) -> list[Row]:
        """What an Ibis table of this fleet says."""
        with _what_stops(self.engine, self.inventory):
            return rows_of(self.engine.fetch(table))

    def check_rows(self) -> None:
        """Raises where the engine does not read the rows that were checked."""
        for name, table in self.asked.items():
            expected = self.inventory.rows(name)
            found = self.rows(table.aggregate(rows=table.count()))[0]["rows"]
            if found != expected:
                by_trace = table.group_by("trace_id").agg(rows=table.count())
                counts = {row["trace_id"]: row["rows"] for row in self.rows(by_trace)}
                wrong = [trace for trace in self.inventory.traces if counts.get(trace.trace_id, 0) != trace.rows[name]]
                place = wrong[0].files[name] if wrong else "one of the files"
                raise JojError(
                    f"{self.engine.name} reads {found} rows of {name}, and the files have {expected}: "
                    f"{self.inventory.named(place)} was changed meanwhile, or its path is read as another one; "
                    "export or rename it"
                )


class _Stopped(JojError):
    """An engine stopped, and no file was changed."""


@contextmanager
def _what_stops(engine: Engine, inventory: Inventory) -> Iterator[None]:
    """Where the engine stops, says why: a file was changed since it was checked, or not all of its bytes were."""
    try:
        yield
    except engine.errors as error:
        for path in (path for table in TABLES for path in inventory.paths(table)):
            reason = why_not_whole(path, is_full=True)
            if isinstance(reason, str):
                mend = "it was changed after the check: ask again" if inventory.is_full else "`--check full` leaves it out"
                told = f"{engine.name} stopped at {path}: {reason}; {mend}"
                raise JojError(inventory.named(told)) from error
        raise _Stopped(inventory.named(engine.named(f"{engine.name} stopped: {why(error)}"))) from error


def _is_label(key: str) -> bool:
    return key not in TRACE_COLUMNS and key not in COMMIT_COLUMNS


def key_columns(keys: Sequence[str]) -> list[str]:
    """The columns of the keys in `commits_by` and `runs_by`."""
    return [LABEL_PREFIX + key if _is_label(key) else key for key in dict.fromkeys(keys)]


def with_names(table: Table, keys: Sequence[str]) -> Table:
    """An answer with its labels called as people call them, but for one that is called like another column."""
    for key in filter(_is_label, dict.fromkeys(keys)):
        if key.lower() not in (column.lower() for column in table.columns):
            table = table.rename({key: LABEL_PREFIX + key})
    return table


def load(
    directory: str | os.PathLike[str],
    engine: str = "duckdb",
    check: str = "full",
    progress: Callable[[Progress], None] | None = None,
    **options: Any,
) -> Fleet:
    """The tables below a directory or a URL, in whatever folders, on `duckdb` or `spark`.

    Files that are not whole are in `Fleet.inventory.problems`. A file of a newer version raises `NewerFile`. The objects below a URL
    are fetched, and `progress` is told how far that is. Options are those of the engine: `memory` and `threads` of DuckDB, `master`
    of Spark.
    """
    known_check(check)
    objects = computes = None
    if is_url(directory):
        directory, objects = reach(str(directory), progress)
    if objects is None:
        inventory = take_inventory(directory, check, partial(why_not_taken, engine))
    else:
        if engine == "spark":
            raise JojError(
                f"{directory}: Spark's workers do not see what is fetched to this machine; "
                "mount it or copy it to a folder that all workers see, or take the engine duckdb"
            )
        # First: what is wrong here is not to be found after all was fetched.
        computes = connect(engine, **options)
        fetched = fetch(objects, progress)
        # The bytes are here: a check of all of them costs little, and finds what was changed while it was fetched.
        inventory = inventory_of(fetched.paths, fetched.problems, is_full=True, named=fetched.named)
    while True:
        if not inventory.traces:
            told = "".join(f"\n{problem.path}: {problem.reason}" for problem in inventory.problems[:5])
            raise JojError(f"{directory} has no whole trace; `joj trace --export parquet=DIR` writes one{told}")
        computes = computes or connect(engine, **options)
        fleet, reasons = _opened(inventory, computes)
        if fleet:
            # Nobody asks for them any more, and of ten thousand traces they are some 20 MB.
            inventory.headers.clear()
            return fleet
        inventory = inventory.without(reasons)


def _opened(inventory: Inventory, engine: Engine) -> tuple[Fleet | None, dict[str, str]]:
    """The tables of these traces. Where a file has rows that joj does not write, or stops the engine: None, and which and why."""
    try:
        with _what_stops(engine, inventory):
            commits, runs = (engine.read(table, inventory.paths(table)) for table in TABLES)
        for table in (commits, runs):
            # Who has a table alone reads the files as well.
            weakref.finalize(table.op(), lambda _: None, inventory.named)
        fleet = Fleet(commits=commits, runs=runs, inventory=inventory, engine=engine)
        fleet.check_rows()
        with _what_stops(engine, inventory):
            reasons = wrong_files(engine, inventory, fleet.asked) if inventory.is_full else {}
    except _Stopped:
        with _what_stops(engine, inventory):
            reasons = unreadable(engine, inventory, ASKED)
        if not reasons:
            raise
    return (None, reasons) if reasons else (fleet, {})
