"""Rows of an Ibis table, as Python has them."""

from decimal import Decimal
from typing import Any

from ibis.expr.types import Table

Row = dict[str, Any]


def rows_of(table: Table) -> list[Row]:
    """What a table says; whatever its engine raises goes on."""
    found: list[Row] = table.to_pyarrow().to_pylist()
    # Sums are decimals there, so that none is too large.
    return [{key: int(value) if isinstance(value, Decimal) else value for key, value in row.items()} for row in found]
