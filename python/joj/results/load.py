"""The results below a directory, as tables on an engine."""

import os
import stat
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow
from ibis.expr.types import Table

from joj.engines import Engine, connect, why, why_not_taken
from joj.errors import JojError
from joj.files import Problem, absolute, files_below, known_check, mode_of, why_not_looked_at
from joj.results import documents, recordings
from joj.results.columns import SCHEMAS
from joj.row_check import stopping
from joj.rows import Row, rows_of
from joj.temporary import is_utf8


@dataclass(frozen=True)
class LoadedFile:
    """A file that counts."""

    path: str
    #: The table that its rows are in: of a recording `recordings`.
    table: str
    #: None where its format has none.
    version: int | None
    rows: int


@dataclass
class ResultFiles:
    """What lies below a directory."""

    files: list[LoadedFile] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True)
class Results:
    """The tables (docs/result_tables.md), and which files they are of."""

    #: A row for each run of `joj bench`.
    bench_runs: Table
    #: A row for each cell of `joj lab`.
    lab_cells: Table
    #: A row for each sample of each quantity of `joj monitor`.
    monitor_samples: Table
    #: A row for each row of a snapshot of waldio_status.
    waldio_status: Table
    #: A row for each recording.
    recordings: Table
    #: A row for each call of a recording.
    recorded_calls: Table
    inventory: ResultFiles
    engine: Engine

    def rows(self, table: Table) -> list[Row]:
        """What an Ibis table of these says."""
        try:
            return rows_of(self.engine.fetch(table))
        except self.engine.errors as error:
            raise JojError(self._why(error)) from error

    def _why(self, error: Exception) -> str:
        """Why an engine stopped. It reads recordings alone from files."""
        for file in self.inventory.files:
            if file.table == "recordings":
                found = documents.read(file.path, is_full=True)
                if isinstance(found, str):
                    return f"{self.engine.name} stopped at {file.path}: {found}; load the directory again"
        told = str(error).strip().splitlines() or [type(error).__name__]
        return self.engine.named(f"{self.engine.name} stopped: {told[0]}")


def load(directory: str | os.PathLike[str], engine: str = "duckdb", check: str = "full", **options: Any) -> Results:
    """The results below a directory, in whatever folders, or of one file, on `duckdb` or `spark`.

    Files that do not count are in `Results.inventory.problems`. A file of a newer version raises `NewerFile`. `check`: `full` reads
    all bytes of a recording, `footer` its end. Options are those of the engine: `memory` and `threads` of DuckDB, `master` of Spark.
    """
    inventory, parts = take_inventory(directory, check, engine)
    if not inventory.files:
        told = "".join(f"\n{problem.path}: {problem.reason}" for problem in inventory.problems[:5])
        raise JojError(f"{directory} has no result that can be loaded; docs/result_tables.md says what is{told}")
    computes = connect(engine, **options)
    try:
        _leave_out(computes, inventory, parts)
        tables = {name: computes.keep(name, _joined(name, parts)) for name in SCHEMAS if name != "recorded_calls"}
        tables["recorded_calls"] = _calls(computes, inventory)
    except computes.errors as error:
        told = str(error).strip().splitlines() or [type(error).__name__]
        raise JojError(computes.named(f"{engine} cannot take the results: {told[0]}")) from error
    return Results(**tables, inventory=inventory, engine=computes)


def _leave_out(engine: Engine, inventory: ResultFiles, parts: list[tuple[str, pyarrow.Table]]) -> None:
    """A changed bit in the end of a recording may leave it whole for one library, and stop an engine."""
    paths = [file.path for file in inventory.files if file.table == "recordings"]
    for path, error in stopping(engine, "recorded_calls", paths, ["event_type"]) if paths else ():
        inventory.problems.append(Problem(path, f"damaged: {engine.name} cannot read it: {engine.named(why(error))}"))
        inventory.files[:] = [file for file in inventory.files if file.path != path]
        parts[:] = [(name, rows) for name, rows in parts if name != "recordings" or rows["file"].to_pylist() != [path]]


def _joined(name: str, parts: list[tuple[str, pyarrow.Table]]) -> pyarrow.Table:
    own = [rows for table, rows in parts if table == name]
    return pyarrow.concat_tables([SCHEMAS[name].empty_table(), *own]).combine_chunks()


def _calls(engine: Engine, inventory: ResultFiles) -> Table:
    paths = [file.path for file in inventory.files if file.table == "recordings"]
    if not paths:
        return engine.keep("recorded_calls", SCHEMAS["recorded_calls"].empty_table())
    return recordings.calls(engine.read_with_file("recorded_calls", paths))


def take_inventory(
    directory: str | os.PathLike[str], check: str = "full", engine: str = "duckdb"
) -> tuple[ResultFiles, list[tuple[str, pyarrow.Table]]]:
    """Which files count, and the rows of each by table."""
    known_check(check)
    mode = mode_of(directory)
    inventory = ResultFiles()
    parts: list[tuple[str, pyarrow.Table]] = []
    seen: dict[bytes, str] = {}
    for path in _paths(Path(absolute(directory)), mode, inventory):
        found = _why_not_taken(path, engine) or documents.read(path, check == "full")
        if isinstance(found, str):
            inventory.problems.append(Problem(path, found))
        elif found.identity in seen:
            inventory.problems.append(Problem(path, f"the same content as {seen[found.identity]}"))
        else:
            seen[found.identity] = path
            inventory.files.append(LoadedFile(path, found.table, found.version, found.rows.num_rows))
            parts.append((found.table, found.rows))
    return inventory, parts


def _why_not_taken(path: str, engine: str) -> str | None:
    if not is_utf8(path):
        # Each row has it.
        return "its path is no UTF-8: rename it"
    # Others the engine does not read itself.
    return why_not_taken(engine, path) if path.endswith(documents.RECORDINGS) else None


def _paths(root: Path, mode: int, inventory: ResultFiles) -> list[str]:
    if stat.S_ISREG(mode):
        return [str(root)]
    if not stat.S_ISDIR(mode):
        raise JojError(f"{root} is no directory; name one with results of joj")

    def problem(path: str, reason: str) -> None:
        inventory.problems.append(Problem(path, reason))

    paths = sorted(files_below(root, problem))
    for path in paths:
        if not documents.is_looked_at(path) and (reason := why_not_looked_at(path, documents.ENDINGS)):
            problem(path, reason)
    return [path for path in paths if documents.is_looked_at(path)]


def counts(inventory: ResultFiles) -> list[Row]:
    """How many files and rows each table has."""
    files, rows = Counter[str](), Counter[str]()
    for file in inventory.files:
        files[file.table] += 1
        rows[file.table] += file.rows
    return [{"table": name, "files": files[name], "rows": rows[name]} for name in SCHEMAS if files[name]]
