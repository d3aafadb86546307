"""Samples of `joj monitor`, as JSON and as CSV (docs/monitor_format.md)."""

import re
from collections.abc import Sequence

import pyarrow

from joj.results.columns import SCHEMAS, column
from joj.rows import Row

FORMAT = "joj-monitor"
VERSION = 1
#: How the CSV calls a quantity: KIND NAME QUANTITY [UNIT], with a NAME that may be empty, or have spaces.
HEADING = re.compile(r"(?P<kind>\S+) (?:(?P<name>.*) )?(?P<quantity>\S+) \[(?P<unit>.*)\]")
CSV_BEGIN = ["at_ms", "span_ms"]


def writer(document: Row) -> str:
    """Which joj wrote it."""
    return f"joj {document['conditions']['joj_version']}"


def rows(document: Row, file: str) -> pyarrow.Table:
    """A row for each sample of each quantity."""
    conditions = document["conditions"]
    base = {name: conditions[name] for name in ("joj_version", "started_at", "kernel", "cores")}
    base |= {"file": file, "command": " ".join(conditions["command"])}
    at_ms, span_ms = document["at_ms"], document["span_ms"]
    return _joined(_quantity(base | one, at_ms, span_ms, one["values"]) for one in document["quantities"])


def csv_rows(lines: Sequence[Sequence[str]], file: str) -> pyarrow.Table:
    """The same of the CSV, which says nothing of the machine."""
    headings, samples = lines[0], lines[1:]
    columns = [[float(text) if text else None for text in texts] for texts in zip(*samples, strict=True)]
    columns = columns or [[] for _ in headings]
    parts = []
    for heading, values in zip(headings[2:], columns[2:], strict=True):
        named = HEADING.fullmatch(heading)
        if not named:
            raise ValueError(f"its column `{heading}` is no quantity")
        words = named.groupdict() | {"name": named["name"] or "", "file": file}
        parts.append(_quantity(words, columns[0], columns[1], values))
    return _joined(parts)


def _joined(parts) -> pyarrow.Table:
    parts = list(parts)
    return pyarrow.concat_tables(parts) if parts else SCHEMAS["monitor_samples"].empty_table()


def _quantity(words: Row, at_ms: list, span_ms: list, values: list) -> pyarrow.Table:
    if not len(at_ms) == len(span_ms) == len(values):
        raise ValueError(f"{words['quantity']} has {len(values)} values for {len(at_ms)} samples")
    own = {"sample": range(len(values)), "at_ms": at_ms, "span_ms": span_ms, "value": values}
    schema = SCHEMAS["monitor_samples"]
    columns = [column(field, own.get(field.name, [words.get(field.name)] * len(values))) for field in schema]
    return pyarrow.Table.from_arrays(columns, schema=schema)
