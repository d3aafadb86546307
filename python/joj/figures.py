"""Figures of each device: what comparisons and outliers are found in."""

from collections.abc import Iterable, Sequence

from joj.fleet import Fleet, Row, column_of, key_columns
from joj.questions import flushes, per_commit


def figures(fleet: Fleet, keys: Sequence[str], metrics: Iterable[str]) -> list[Row]:
    """A row for each device with commits, by the keys: those metrics of `per_commit` and `flushes`, and `keys`, their values."""
    # What nobody looks at is not computed: quantiles and counts of different traces are most of the work.
    wanted = {"commits", "kib_per_commit", *metrics, *keys, *key_columns(keys)}
    found: dict[tuple[object, ...], Row] = {}
    for table in (per_commit(fleet, keys), flushes(fleet, keys)):
        for row in fleet.rows(table.select(*(column for column in table.columns if column in wanted))):
            # A group of checkpoints alone has no figure of a commit.
            if row.get("commits") == 0:
                continue
            values = tuple(row[column_of(row, key)] for key in keys)
            found.setdefault(values, {"keys": values}).update(row)
    return [row for row in found.values() if "kib_per_commit" in row]
