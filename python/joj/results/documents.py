"""Reads a file that joj or waldio wrote: what it is, whether it is whole, and its rows."""

import csv
import gzip
import hashlib
import io
import json
import zlib
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NoReturn

import pyarrow

from joj.integrity import Damaged, Foreign, newer, open_file
from joj.results import bench, lab, monitor, recordings, status
from joj.results.columns import table
from joj.rows import Row

GZIP = b"\x1f\x8b"
#: How files are called that are looked at; `.gz` may follow.
ENDINGS = (".json", ".csv", ".joj", ".parquet")
#: Those that an engine reads.
RECORDINGS = (".joj", ".parquet")
#: Documents with a `format`, and the table of each.
FORMATS: dict[str, tuple[str, ModuleType]] = {
    module.FORMAT: (name, module) for name, module in (("bench_runs", bench), ("lab_cells", lab), ("monitor_samples", monitor))
}
#: What other documents are for.
ELSEWHERE = {
    "joj-lab-part": "it is a part of a run: `joj lab merge` makes a result of all parts",
    "joj-exported": "it is a note of `fleet export`, and no result",
    "joj-not-exported": "it is a note of `fleet export`, and no result",
}


@dataclass(frozen=True)
class Loaded:
    """A whole file: its rows, and of which table they are."""

    path: str
    table: str
    #: None where nothing says it.
    version: int | None
    rows: pyarrow.Table
    #: The same for files with the same content.
    identity: bytes


def is_looked_at(path: str) -> bool:
    """Whether a file is called as one that may be loaded."""
    return path.removesuffix(".gz").endswith(ENDINGS)


def read(path: str, is_full: bool) -> Loaded | str:
    """What is in a file, or the reason why it does not count. A newer file raises. `is_full`: all bytes of a recording are read."""
    try:
        return _read(path, is_full)
    except Foreign as error:
        return str(error)
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    except RecursionError:
        return "damaged: its JSON is nested too deep"
    except KeyError as error:
        return f"damaged: it has no {error}"
    except (Damaged, ValueError, TypeError, AttributeError, OverflowError, csv.Error, pyarrow.ArrowException) as error:
        return f"damaged: {str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__}"


def _read(path: str, is_full: bool) -> Loaded:
    if path.endswith(RECORDINGS):
        row = recordings.recording(path, is_full)
        return Loaded(path, "recordings", row["version"], table("recordings", [row]), row["identity"])
    data = _content(path)
    if path.removesuffix(".gz").endswith(RECORDINGS):
        raise Foreign("it is in gzip: `gunzip` it, as engines read no such Parquet file")
    if not data.strip():
        raise Damaged("it is empty")
    text = data.decode()
    kind, version, rows = _csv(text, path) if path.removesuffix(".gz").endswith(".csv") else _json(text, path)
    return Loaded(path, kind, version, rows, hashlib.sha256(data).digest())


def _content(path: str) -> bytes:
    with open_file(path) as file:
        data = file.read()
    if not data.startswith(GZIP):
        return data
    try:
        return gzip.decompress(data)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise Damaged(f"its gzip is not whole: {error}") from error


def _json(text: str, path: str) -> tuple[str, int | None, pyarrow.Table]:
    document = json.loads(text, parse_constant=_no_number)
    if isinstance(document, list):
        if not (document and isinstance(document[0], dict) and set(status.COLUMNS) <= set(document[0])):
            raise Foreign("it is no result of joj's")
        return "waldio_status", None, status.rows(document, path)
    name = document.get("format") if isinstance(document, dict) else None
    if name not in FORMATS:
        known = ", ".join(FORMATS)
        other = f"it is a `{name}`; this package loads {known}" if name else "it is no result of joj's"
        raise Foreign(ELSEWHERE.get(str(name), other))
    kind, module = FORMATS[name]
    version = document["version"]
    if type(version) is not int or version < 1:
        raise Damaged(f"its version is {version!r}")
    if version > module.VERSION:
        raise newer(path, f"`{name}`", version, module.VERSION, _writer(module, document))
    return kind, version, module.rows(document, path)


def _no_number(word: str) -> NoReturn:
    raise Damaged(f"it has {word} where JSON has a number")


def _writer(module: ModuleType, document: Row) -> Any:
    try:
        return module.writer(document)
    except (KeyError, TypeError):
        # A newer version may say it elsewhere.
        return None


def _csv(text: str, path: str) -> tuple[str, int | None, pyarrow.Table]:
    lines = [line for line in csv.reader(io.StringIO(text, newline=""), strict=True) if line]
    if lines[0] == status.COLUMNS:
        return "waldio_status", None, status.csv_rows(lines, path)
    if lines[0][:2] == monitor.CSV_BEGIN:
        return "monitor_samples", None, monitor.csv_rows(lines, path)
    raise Foreign(f"it is no CSV of joj's: its first line is neither `{','.join(status.COLUMNS)}` nor that of `joj monitor --csv`")
