"""Figures of each device: what comparisons and outliers are found in."""

from collections.abc import Sequence

from joj.fleet import Fleet, Row, column_of
from joj.questions import flushes, per_commit


def figures(fleet: Fleet, keys: Sequence[str]) -> list[Row]:
    """A row for each device with commits, by the keys: those of `per_commit` and `flushes`, and `keys`, their values."""
    found: dict[tuple[object, ...], Row] = {}
    for table in (per_commit(fleet, keys), flushes(fleet, keys)):
        for row in fleet.rows(table):
            # A group of checkpoints alone has no figure of a commit.
            if row.get("commits") == 0:
                continue
            values = tuple(row[column_of(row, key)] for key in keys)
            found.setdefault(values, {"keys": values}).update(row)
    return [row for row in found.values() if "kib_per_commit" in row]
