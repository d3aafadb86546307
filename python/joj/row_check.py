"""Whether rows are what joj writes, and those of their file's header: asked of the engine, in one query of each table.

Checksums do not tell (joj.headers). A row that joj never writes makes its file a damaged one, as a header does.
"""

import json
import os
import reprlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from ibis.expr.types import Column, Table, Value

from joj.engines import Engine, why
from joj.errors import JojError
from joj.files import Inventory, Trace
from joj.integrity import TABLES
from joj.rows import Row, rows_of

#: What a header says of each row, by its column.
FACTS = ("trace_id", "device", "device_id", "kernel", "sqlite_build", "labels")
#: Columns that questions look at: numbers, which are 0 or more or NULL.
NUMBERS = {
    "commits": ("sqlite_work", "written_bytes", "journal_of_journal_bytes", "flushes", "fsyncs", "duration_ns"),
    "runs": ("sqlite_work", "issued_ns", "completed_ns", "byte_length"),
}
#: Words, and which there are.
WORDS: dict[str, dict[str, tuple[str, ...]]] = {
    "commits": {
        "kind": ("commit", "checkpoint", "recovery"),
        "journal_mode": ("wal", "delete", "truncate", "persist", "rollback"),
        "sync_mode": ("full", "normal", "none", ""),
    },
    "runs": {"operation": ("read", "write", "flush", "discard", "write-zeroes", "other")},
}
#: Other texts.
TEXTS = {"commits": ("application", "filesystem", "file_path"), "runs": ("file_path", "file_type")}
#: What the machine lacks says nothing of a file.
NO_ROOM = ("Out of Memory", "OutOfMemory", "No space left")

#: Paths of files, and why each is not what joj writes.
Reasons = dict[str, str]


@dataclass(frozen=True)
class Wrong:
    """What no row says that joj writes."""

    condition: Any
    #: What is said of a file that has such a row, in front of and behind an example.
    told: tuple[str, str]
    #: The column that gives the example.
    example: Column | None = None


def _wrongs(engine: Engine, name: str, table: Table) -> list[Wrong]:
    found = [
        Wrong(table[column] < 0, ("its rows say ", f" for `{column}`, and that is a number, 0 or more"), table[column])
        for column in NUMBERS[name]
    ]
    for column, words in WORDS[name].items():
        told = f" for `{column}`, and that is one of {', '.join(word or 'empty' for word in words)}"
        found.append(Wrong(~table[column].isin(words), ("its rows say ", told), table[column]))
    if name == "runs":
        found.append(Wrong(table.completed_ns < table.issued_ns, ("a request of its rows was complete before it was issued", "")))
    if engine.is_text:
        # DuckDB reads no other text.
        texts = TEXTS[name]
        found += [Wrong(~engine.is_text(table[column]), (f"a `{column}` of its rows is no UTF-8", "")) for column in texts]
    return found


def wrong_files(engine: Engine, inventory: Inventory, asked: dict[str, Table]) -> Reasons:
    """Files with rows that joj does not write. `asked`: both tables, as questions have them."""
    found: Reasons = {}
    for name in TABLES:
        if _is_right(engine, inventory, name, asked[name]):
            continue
        of_table = _by_file(engine, inventory, name)
        if not of_table:
            raise JojError(f"{engine.name} reads other rows of {name} each time: the files are being changed; ask again when they are not")
        found |= of_table
    return found


def _is_right(engine: Engine, inventory: Inventory, name: str, table: Table) -> bool:
    """Whether each row is one of joj's, and each trace has as many as its header says, with its facts."""
    is_wrong = reduce(or_, (wrong.condition for wrong in _wrongs(engine, name, table)))
    said = table.group_by(list(FACTS)).agg(rows=table.count(), wrong=is_wrong.cast("int64").sum(), **_applications(inventory, name, table))
    traces = {trace.trace_id: trace for trace in inventory.traces if trace.rows[name]}
    rows = rows_of(engine.fetch(said))
    return len(rows) == len(traces) and all(
        not row["wrong"]
        and row["trace_id"] in traces
        and row["rows"] == traces[row["trace_id"]].rows[name]
        and _other_fact(row, traces[row["trace_id"]]) is None
        for row in rows
    )


def _by_file(engine: Engine, inventory: Inventory, name: str) -> Reasons:
    """The same of each file: which, and why."""
    table = engine.read_with_file(name, inventory.paths(name))
    wrongs = _wrongs(engine, name, table)
    asked: dict[str, Value] = {}
    for number, wrong in enumerate(wrongs):
        asked[f"wrong_{number}"] = wrong.condition.cast("int64").sum()
        if wrong.example is not None:
            asked[f"example_{number}"] = wrong.example.min(where=wrong.condition)
    said = table.group_by(["file", *FACTS]).agg(**asked, **_applications(inventory, name, table))
    # Spark's paths are without `..`.
    traces = {os.path.normpath(os.path.join(os.getcwd(), trace.files[name])): trace for trace in inventory.traces}
    found: Reasons = {}
    for row in rows_of(engine.fetch(said)):
        trace = traces.get(os.path.normpath(row["file"]))
        if trace is None:
            raise JojError(inventory.named(f"{engine.name} calls a file {row['file']}, and no file was called so: rename its folder"))
        reasons = (
            wrong.told[0] + (reprlib.repr(row[f"example_{number}"]) if wrong.example is not None else "") + wrong.told[1]
            for number, wrong in enumerate(wrongs)
            if row[f"wrong_{number}"]
        )
        if reason := next(reasons, None) or _other_fact(row, trace):
            found[trace.files[name]] = f"damaged: {reason}"
    return found


def _applications(inventory: Inventory, name: str, table: Table) -> dict[str, Value]:
    """The first and the last application of rows, where a label says which all have."""
    if name != "commits" or not any(trace.labels.get("application") for trace in inventory.traces):
        return {}
    return {"application": table.application.min(), "last_application": table.application.max()}


def _other_fact(row: Row, trace: Trace) -> str | None:
    """What rows say that their header does not."""
    application = trace.labels.get("application")
    facts = {
        **{key: trace.labels.get(key, "") for key in ("device", "device_id", "sqlite_build")},
        **{"trace_id": trace.trace_id, "kernel": trace.kernel},
        "labels": json.dumps(trace.labels, separators=(",", ":"), ensure_ascii=False, sort_keys=True),
    }
    said = [(key, row[key], value) for key, value in facts.items()]
    if application:
        said += [("application", row[key], application) for key in ("application", "last_application") if key in row]
    for key, found, expected in said:
        if found != expected:
            return f"its rows say {reprlib.repr(found)} for `{key}`, and its header says {reprlib.repr(expected)}"
    return None


def unreadable(engine: Engine, inventory: Inventory, asked: dict[str, tuple[str, ...]]) -> Reasons:
    """Files at which the engine stops, where it reads others. `asked`: the columns that questions look at."""
    found: Reasons = {}
    for name in TABLES:
        for path, error in stopping(engine, name, inventory.paths(name), asked[name]):
            found[path] = f"damaged: {engine.name} cannot read it: {engine.named(why(error))}"
    return found


def stopping(engine: Engine, name: str, paths: Sequence[str], columns: Sequence[str]) -> Iterator[tuple[str, Exception]]:
    """The files at which the engine stops when it reads these columns, and why."""
    try:
        table = engine.read(name, paths)
        engine.fetch(table.aggregate(**{column: table[column].max() for column in columns}))
    except engine.errors as error:
        if any(words in str(error) for words in NO_ROOM):
            raise
        if len(paths) > 1:
            middle = len(paths) // 2
            yield from stopping(engine, name, paths[:middle], columns)
            yield from stopping(engine, name, paths[middle:], columns)
            return
        # An engine that has ended reads nothing.
        engine.fetch(engine.values("alive", {"number": [1]}))
        yield paths[0], error
