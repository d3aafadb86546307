"""Rows of a table, as Python has them."""

from decimal import Decimal
from typing import Any

Row = dict[str, Any]


def rows_of(table: Any) -> list[Row]:
    """What a table of pyarrow says."""
    found: list[Row] = table.to_pylist()
    # Sums are decimals there, so that none is too large.
    return [{key: int(value) if isinstance(value, Decimal) else value for key, value in row.items()} for row in found]
