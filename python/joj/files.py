"""Finds the tables below a directory: which traces are whole, and which files do not count, and why.

A trace counts where both of its files are whole and of one export.
"""

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from joj.errors import JojError, NewerFile
from joj.headers import Header
from joj.integrity import TABLES, why_not_whole

#: Why a file that has no name yet does not count.
UNFINISHED = "it is being written, or whoever wrote it was interrupted"
#: How a file is called, also one that is being written: by its trace.
NAME = re.compile(r"([0-9a-f]{16})\.parquet(\..*)?")


@dataclass(frozen=True)
class Problem:
    """A file or folder that is left out, and why."""

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

    def device(self) -> tuple[str, str]:
        """The model and the device. A trace without `device_id` is one of its own."""
        return self.labels.get("device", ""), self.labels.get("device_id") or self.trace_id


@dataclass
class Inventory:
    """What lies below a directory, or a URL."""

    traces: list[Trace] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    #: Traces of which something was found, and that are left out.
    left_out: int = 0
    #: Gives a message with each path in it called as the user knows it: the copy of an object by the object's URL.
    named: Callable[[str], str] = str
    #: Whether all bytes were read.
    is_full: bool = True
    #: The whole files and their headers, and what was left out at once.
    headers: dict[str, Header] = field(default_factory=dict)
    left_out_first: list[Problem] = field(default_factory=list)

    def paths(self, table: str) -> list[str]:
        """The whole files of a table."""
        return [trace.files[table] for trace in self.traces]

    def rows(self, table: str) -> int:
        """How many rows they have, as their headers say."""
        return sum(trace.rows[table] for trace in self.traces)

    def without(self, reasons: dict[str, str]) -> "Inventory":
        """The same where these files are not whole, by path and reason."""
        problems = [Problem(path, reason) for path, reason in sorted(reasons.items())]
        headers = {path: header for path, header in self.headers.items() if path not in reasons}
        return _inventory(headers, [*self.left_out_first, *problems], self.is_full, self.named)


#: The whole files that were found of a trace: their paths, in order, and headers.
Found = list[tuple[str, Header]]


def known_check(check: str) -> None:
    """Raises where there is no such check."""
    if check not in ("full", "footer"):
        raise JojError(f"there is no check `{check}`; take full or footer")


def take_inventory(
    directory: str | os.PathLike[str], check: str = "full", why_not_taken: Callable[[str], str | None] = lambda _: None
) -> Inventory:
    """Looks at every file below the directory. `check`: `full` reads all bytes, `footer` only the end of each file.

    `why_not_taken`: why an engine does not take a file of this name.
    """
    known_check(check)
    root = Path(directory)
    if not stat.S_ISDIR(mode_of(directory)):
        raise JojError(f"{root} is no directory; name that of `joj trace --export parquet=DIR`")
    problems: list[Problem] = []
    paths = []
    for path in sorted(_tables_below(root, lambda path, reason: problems.append(Problem(path, reason)))):
        if reason := why_not_taken(path):
            problems.append(Problem(path, reason))
        else:
            paths.append(path)
    return inventory_of(paths, problems, check == "full")


def inventory_of(
    paths: Sequence[str], problems: Sequence[Problem], is_full: bool, named: Callable[[str], str] = str
) -> Inventory:
    """Looks at these files. `problems` are those of others; `named` is that of the inventory."""
    try:
        with ThreadPoolExecutor(max_workers=min(16, 2 * (os.cpu_count() or 1))) as pool:
            headers = list(pool.map(lambda path: why_not_whole(path, is_full), paths))
    except NewerFile as error:
        raise NewerFile(named(str(error))) from error
    read = list(zip(paths, headers, strict=True))
    damaged = [Problem(path, header) for path, header in read if isinstance(header, str)]
    whole = {path: header for path, header in read if not isinstance(header, str)}
    return _inventory(whole, [*problems, *damaged], is_full, named)


def _inventory(headers: dict[str, Header], problems: Sequence[Problem], is_full: bool, named: Callable[[str], str]) -> Inventory:
    inventory = Inventory(named=named, is_full=is_full, headers=headers, left_out_first=list(problems))
    found: dict[str, Found] = {}
    for one in problems:
        path = named(one.path)
        inventory.problems.append(Problem(path, named(one.reason)))
        if name := NAME.fullmatch(os.path.basename(path)):
            # Of this trace something is there.
            found.setdefault(name[1], [])
    for path, header in headers.items():
        found.setdefault(header["trace_id"], []).append((path, header))
    for trace_id, of_trace in found.items():
        _add(inventory, trace_id, of_trace)
    return inventory


def _add(inventory: Inventory, trace_id: str, of_trace: Found) -> None:
    whole = _whole(of_trace)
    if whole is None:
        inventory.left_out += 1
        reason = _why_no_trace(of_trace)
        inventory.problems += [Problem(inventory.named(path), reason) for path, _ in of_trace]
        return
    header = whole["commits"][1]
    inventory.traces.append(
        Trace(
            trace_id=trace_id,
            labels=header["labels"],
            kernel=header["kernel"],
            span_ns=header["span_ns"],
            lost=header["lost"],
            files={table: path for table, (path, _) in whole.items()},
            rows={table: header["rows"] for table, (_, header) in whole.items()},
        )
    )
    for path, other in of_trace:
        counts, _ = whole[other["table"]]
        if path != counts:
            is_copy = other["export_id"] == header["export_id"]
            reason = f"the same trace as {counts}" + ("" if is_copy else ", of another export")
            inventory.problems.append(Problem(inventory.named(path), inventory.named(reason)))


def _whole(of_trace: Found) -> dict[str, tuple[str, Header]] | None:
    """The first files of one export, of each table one."""
    exports: dict[str, dict[str, tuple[str, Header]]] = {}
    for path, header in of_trace:
        exports.setdefault(header["export_id"], {}).setdefault(header["table"], (path, header))
    return next((files for files in exports.values() if len(files) == len(TABLES)), None)


def _why_no_trace(of_trace: Found) -> str:
    there = {header["table"] for _, header in of_trace}
    missing = [table for table in TABLES if table not in there]
    if missing:
        return f"its trace has no whole file of {missing[0]}"
    return "its trace's commits and runs are of two exports: export the trace again"


#: How a URL begins: what does is no path.
URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def check_named(named: str | os.PathLike[str]) -> None:
    """Raises where nothing is named. Else that would be the working directory."""
    if URL.match(os.fsdecode(named)):
        # It may have a password.
        raise JojError("a URL is no name of a file or folder: `fleet report` alone reads buckets; copy what lies there to a directory")
    if not os.fspath(named):
        raise JojError("the name of a file or folder is empty; is a variable of the command line not set?")


def mode_of(named: str | os.PathLike[str]) -> int:
    """What kind of file the user names, as `stat` has it: 0 where nothing is there. Raises where that cannot be seen."""
    check_named(named)
    try:
        return os.stat(named).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except OSError as error:
        raise JojError(f"cannot read {named}: {error.strerror}; name what this user can read") from error


def absolute(named: str | os.PathLike[str]) -> str:
    """A path as each engine tells it."""
    try:
        return os.path.abspath(named)
    except FileNotFoundError as error:
        raise JojError(f"{named} is below the working directory, which was removed; go to one that is there") from error


def _tables_below(root: Path, problem: Callable[[str, str], None]) -> Iterator[str]:
    for path in files_below(root, problem):
        if path.endswith(".parquet"):
            yield path
        elif reason := why_not_looked_at(path, (".parquet",)):
            problem(path, reason)


#: How files are called that have others in them.
PACKED = re.compile(r"\.(gz|zst|zstd|xz|lzma|bz2|lz4|lzo|br|sz|snappy|z|zip|7z|rar|tar|tgz|tbz2?|txz|tzst)")


def why_not_looked_at(path: str, endings: Sequence[str]) -> str | None:
    """Why a file does not count whose name has none of these endings: where somebody may believe that it does."""
    name = os.path.basename(path).lower()
    last = PACKED.fullmatch(os.path.splitext(name)[1])
    if last:
        return f"it is packed ({last[0]}), and not looked into: unpack it"
    if name.endswith(".crc"):
        # Hadoop's, of a file that is there.
        return None
    if name.endswith(".part"):
        return UNFINISHED if any(ending + "." in name for ending in endings) else None
    if any(ending in name for ending in endings):
        return f"its name does not end with {' or '.join(endings)}: rename it, if it is whole"
    return None


def files_below(root: Path, problem: Callable[[str, str], None]) -> Iterator[str]:
    """Every file below a folder. Links are followed, each folder once; `problem` is told of what cannot be read."""

    def unreadable(error: OSError) -> None:
        problem(str(error.filename), f"cannot be read: {error.strerror}")

    seen: set[tuple[int, int]] = set()
    for folder, below, names in os.walk(root, onerror=unreadable, followlinks=True):
        try:
            status = os.stat(folder)
        except OSError as error:
            unreadable(error)
            continue
        if (status.st_dev, status.st_ino) in seen:
            # A link to a folder above, or to one that was seen.
            below.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        for name in [name for name in below if name.endswith(".part")]:
            # Of `fleet export`.
            problem(os.path.join(folder, name), UNFINISHED)
            below.remove(name)
        # The same order at each call: of two ways to a folder the first one counts.
        below.sort()
        for name in names:
            yield os.path.join(folder, name)
