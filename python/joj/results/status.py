"""What waldio said of itself: `SELECT * FROM waldio_status`, as `sqlite3 -json` and `sqlite3 -header -csv` print it."""

import math
from collections.abc import Iterable, Sequence

import pyarrow

from joj.results.columns import table
from joj.rows import Row

COLUMNS = ["database", "name", "value", "unit", "source"]


def rows(snapshot: Iterable[Row], file: str) -> pyarrow.Table:
    """A row for each row of a snapshot."""
    return table("waldio_status", [_row({column: one[column] for column in COLUMNS}, file) for one in snapshot])


def csv_rows(lines: Sequence[Sequence[str]], file: str) -> pyarrow.Table:
    """The same of the CSV."""
    return rows((dict(zip(COLUMNS, line, strict=True)) for line in lines[1:]), file)


def _row(one: Row, file: str) -> Row:
    value = one["value"]
    return one | {"file": file, "value": None if value is None else str(value), "number": _number(value)}


def _number(value: object) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
