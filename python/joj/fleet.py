"""The tables of whole traces, on an engine."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ibis
from ibis.expr.types import Table

from joj.engines import connect
from joj.errors import JojError
from joj.files import Inventory, take_inventory

#: Columns with one value for a whole trace, in both tables.
OF_TRACE = ("trace_id", "device", "device_id", "kernel", "sqlite_build")
#: Other columns of commits that may be grouped by.
OF_COMMIT = ("application", "filesystem", "file_path", "journal_mode", "sync_mode", "kind")


@dataclass(frozen=True)
class Fleet:
    """Two tables, and what is known of their traces."""

    #: A row for each commit, checkpoint and recovery (docs/trace_tables.md).
    commits: Table
    #: A row for each run of each request.
    runs: Table
    inventory: Inventory

    def labels(self) -> list[str]:
        """Keys of labels that a trace has."""
        return sorted({key for trace in self.inventory.traces for key in trace.labels})

    def days(self) -> float:
        """The time of all traces together."""
        return sum(trace.span_ns for trace in self.inventory.traces) / 86_400e9

    def check_keys(self, keys: Sequence[str]) -> None:
        """Raises where something cannot be grouped by."""
        known = [*OF_TRACE, *OF_COMMIT, *(label for label in self.labels() if label not in OF_TRACE)]
        for key in keys:
            if key not in known:
                raise JojError(f"`{key}` is no column and no label; group by some of {', '.join(known)}")

    def commits_by(self, keys: Sequence[str]) -> Table:
        """Commits, with a column for each key."""
        self.check_keys(keys)
        return self._labelled(self.commits, keys)

    def runs_by(self, keys: Sequence[str]) -> Table:
        """Runs, with a column for each key; what only a commit knows comes from the commit that a run belongs to."""
        self.check_keys(keys)
        of_commit = [key for key in keys if key in OF_COMMIT]
        runs = self._labelled(self.runs, keys)
        if not of_commit:
            return runs
        commits = self.commits.select("trace_id", "sqlite_work", *of_commit)
        return runs.drop(*(key for key in of_commit if key in runs.columns)).inner_join(
            commits, ["trace_id", "sqlite_work"]
        )

    def _labelled(self, table: Table, keys: Sequence[str]) -> Table:
        labels = [key for key in keys if key not in OF_TRACE and key not in OF_COMMIT]
        if not labels:
            return table
        columns: dict[str, list[str]] = {"trace_id": [trace.trace_id for trace in self.inventory.traces]}
        for label in labels:
            columns[label] = [trace.labels.get(label, "") for trace in self.inventory.traces]
        return table.inner_join(ibis.memtable(columns), "trace_id")


def load(directory: str | os.PathLike[str], engine: str = "duckdb", check: str = "full", **options: Any) -> Fleet:
    """The tables below a directory, in whatever folders, on `duckdb` or `spark`.

    Files that are not whole are in `Fleet.inventory.problems`. A file of a newer version raises `NewerFile`.
    Options are those of the engine: `memory` and `threads` of DuckDB, `master` of Spark.
    """
    inventory = take_inventory(directory, check)
    if not inventory.traces:
        told = "".join(f"\n{problem.path}: {problem.reason}" for problem in inventory.problems[:5])
        raise JojError(f"{directory} has no whole trace; `joj trace --export parquet=DIR` writes one{told}")
    read = connect(engine, **options)
    commits, runs = (read(table, inventory.paths(table)) for table in ("commits", "runs"))
    return Fleet(commits=commits, runs=runs, inventory=inventory)
