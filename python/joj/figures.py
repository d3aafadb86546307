"""Figures of each device: what comparisons and outliers are found in."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from joj.fleet import Fleet, Row, key_columns
from joj.questions import flushes_by_columns, per_commit_by_columns


@dataclass(frozen=True)
class Figures:
    """Of a device. Names of labels are no names here: one may be called like a figure."""

    #: The values of the keys.
    keys: tuple[object, ...]
    values: Row = field(default_factory=dict)


def figures(fleet: Fleet, keys: Sequence[str], metrics: Iterable[str]) -> list[Figures]:
    """Those of each device with commits, by the keys: some of `per_commit` and `flushes`."""
    # What nobody looks at is not computed: quantiles and counts of different traces are most of the work.
    columns = key_columns(keys)
    wanted = {"commits", "kib_per_commit", *metrics, *columns}
    found: dict[tuple[object, ...], Figures] = {}
    for table in (per_commit_by_columns(fleet, keys), flushes_by_columns(fleet, keys)):
        for row in fleet.rows(table.select(*(column for column in table.columns if column in wanted))):
            # A group of checkpoints alone has no figure of a commit.
            if row.get("commits") == 0:
                continue
            values = tuple(row.pop(column) for column in columns)
            found.setdefault(values, Figures(values)).values.update(row)
    return [one for one in found.values() if "kib_per_commit" in one.values]
