"""Finds the tables below a directory, and checks each file before anything is asked of it.

A trace counts where both of its files are whole. A file that is not is named with the reason, and its trace is left out.
"""

import json
import os
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from joj.errors import JojError, NewerFile
from joj.version import TABLES_VERSION

HEADER_KEY = b"joj_table"
CHECKSUMS_KEY = b"joj_checksums"
#: Tables of a trace.
TABLES = ("commits", "runs")
#: What is read at once.
PIECE_BYTES = 4 << 20


@dataclass(frozen=True)
class Problem:
    """A file that is left out, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class Trace:
    """A whole trace: what its files' headers say."""

    trace_id: str
    labels: dict[str, str]
    kernel: str
    span_ns: int
    lost: int | None
    files: dict[str, str]
    rows: dict[str, int]


@dataclass
class Inventory:
    """What lies below a directory."""

    traces: list[Trace] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    #: Traces of which something was found, and that are left out.
    left_out: int = 0

    def paths(self, table: str) -> list[str]:
        """The whole files of a table."""
        return [trace.files[table] for trace in self.traces]


class Damaged(Exception):
    """Why a file is not whole."""


def take_inventory(directory: str | os.PathLike[str], check: str = "full") -> Inventory:
    """Looks at every file below the directory. `check`: `full` reads all bytes, `footer` only the end of each file."""
    if "://" in str(directory):
        raise JojError(f"{directory}: this version reads directories alone; mount the bucket, or copy it")
    root = Path(directory)
    if not root.is_dir():
        raise JojError(f"{root} is no directory; name that of `joj trace --export parquet=DIR`")
    inventory = Inventory()
    paths = sorted(_tables_below(root, inventory.problems))
    with ThreadPoolExecutor(max_workers=min(16, 2 * (os.cpu_count() or 1))) as pool:
        heads = list(pool.map(lambda path: _look(path, check == "full"), paths))
    found: dict[str, dict[str, tuple[str, dict[str, Any]]]] = {}
    for path, head in zip(paths, heads, strict=True):
        if isinstance(head, Problem):
            inventory.problems.append(head)
            found.setdefault(Path(path).stem, {})
            continue
        of_trace = found.setdefault(head["trace_id"], {})
        if head["table"] in of_trace:
            inventory.problems.append(Problem(path, f"the same trace as {of_trace[head['table']][0]}"))
        else:
            of_trace[head["table"]] = (path, head)
    for trace_id, of_trace in found.items():
        _add(inventory, trace_id, of_trace)
    return inventory


def _add(inventory: Inventory, trace_id: str, of_trace: dict[str, tuple[str, dict[str, Any]]]) -> None:
    if set(of_trace) == set(TABLES):
        head = of_trace["commits"][1]
        inventory.traces.append(
            Trace(
                trace_id=trace_id,
                labels=head["labels"],
                kernel=head["kernel"],
                span_ns=head["span_ns"],
                lost=head["lost"],
                files={table: path for table, (path, _) in of_trace.items()},
                rows={table: head["rows"] for table, (_, head) in of_trace.items()},
            )
        )
        return
    inventory.left_out += 1
    for path, head in of_trace.values():
        other = next(table for table in TABLES if table != head["table"])
        inventory.problems.append(Problem(path, f"its trace has no whole file of {other}"))


def _tables_below(root: Path, problems: list[Problem]) -> Iterator[str]:
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith(".parquet"):
                yield path
            elif name.endswith(".parquet.part"):
                problems.append(Problem(path, "it is being written, or whoever wrote it was interrupted"))


def _look(path: str, is_full: bool) -> dict[str, Any] | Problem:
    """The header of a file, or why it is left out."""
    try:
        with open(path, "rb") as file:
            return _checked(path, file, is_full)
    except (OSError, Damaged, ValueError, KeyError) as error:
        return Problem(path, f"damaged: {error}")


def _checked(path: str, file: BinaryIO, is_full: bool) -> dict[str, Any]:
    from pyarrow import ArrowException
    from pyarrow.parquet import read_metadata

    try:
        metadata = read_metadata(file)
    except ArrowException as error:
        raise Damaged(f"its end cannot be read ({error})") from error
    entries = metadata.metadata or {}
    if HEADER_KEY not in entries:
        what = "a saved trace; `joj trace --read` exports it" if b"joj_trace" in entries else "no table of joj's"
        raise Damaged(f"it is {what}")
    header: dict[str, Any] = json.loads(entries[HEADER_KEY])
    if header["version"] > TABLES_VERSION:
        raise NewerFile(
            f"{path} is of version {header['version']} of the tables, and this package reads up to {TABLES_VERSION}: "
            "python3 -m pip install --upgrade joj"
        )
    checksums = json.loads(entries[CHECKSUMS_KEY])
    if zlib.crc32(entries[HEADER_KEY]) != checksums["header"]:
        raise Damaged("its header is not what was written")
    if metadata.num_rows != header["rows"]:
        raise Damaged(f"it has {metadata.num_rows} rows, and {header['rows']} were written")
    if header["table"] not in TABLES:
        raise Damaged(f"it is a table called {header['table']}")
    _check_places(metadata, checksums["groups"])
    if is_full:
        _check_groups(file, checksums["groups"])
    return header


def _check_places(metadata: Any, groups: list[tuple[int, int]]) -> None:
    """No checksum covers the end of a file: what it says of the columns must fit what the checksums cover."""
    if metadata.num_row_groups != len(groups):
        raise Damaged(f"it has {metadata.num_row_groups} row groups, and {len(groups)} were written")
    # Behind the four bytes that a Parquet file begins with.
    at = 4
    for number, (end, _) in enumerate(groups):
        group = metadata.row_group(number)
        for column in range(group.num_columns):
            chunk = group.column(column)
            begin = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
            if begin != at or chunk.num_values != group.num_rows or chunk.compression != "SNAPPY":
                raise Damaged(f"its end says something else of column {column + 1} in row group {number}")
            at += chunk.total_compressed_size
        if at != end:
            raise Damaged(f"its end says something else of row group {number}")


def _check_groups(file: BinaryIO, groups: list[tuple[int, int]]) -> None:
    file.seek(0)
    at = 0
    for number, (end, checksum) in enumerate(groups):
        found = 0
        while at < end:
            piece = file.read(min(PIECE_BYTES, end - at))
            if not piece:
                raise Damaged(f"it ends in row group {number}")
            found = zlib.crc32(piece, found)
            at += len(piece)
        if found != checksum:
            raise Damaged(f"row group {number} is not what was written")
