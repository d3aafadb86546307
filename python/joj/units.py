"""Figures of each device: comparisons of two versions by pairs, and devices that are unlike others of their model."""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

from joj.errors import JojError
from joj.fleet import Fleet
from joj.questions import flushes, per_commit

#: What is compared, and what it is.
METRICS = {
    "kib_per_commit": "written KiB of a commit, mean",
    "joj_kib_per_commit": "KiB of the journaling of a journal, mean",
    "flushes_per_commit": "flushes of a commit, mean",
    "commit_p50_ms": "time of a commit, median",
    "flush_p50_ms": "time of a flush, median",
}
#: Resamplings of the bootstrap, and the share of them within the interval.
RESAMPLINGS = 4000
CONFIDENCE = 0.99
#: A smaller difference is not called one.
SMALLEST = 0.02
#: So many times the usual distance from the median of its model, and so many times the median: then a device is an outlier.
OUTLIER_DISTANCE = 6.0
OUTLIER_RATIO = 1.5
#: Of fewer devices nobody knows what is usual.
OUTLIER_DEVICES = 8


@dataclass(frozen=True)
class Difference:
    """How a figure changed between two versions: the mean ratio of the devices that have both."""

    metric: str
    devices: int
    ratio: float
    low: float
    high: float
    #: `regression`, `improvement` or `none`.
    verdict: str


@dataclass(frozen=True)
class Outlier:
    """A device that is unlike the others of its model."""

    device: str
    device_id: str
    metric: str
    value: float
    median: float


def _figures(fleet: Fleet, keys: list[str]) -> list[dict[str, Any]]:
    """The figures of each device, by the keys."""
    rows = {tuple(row[key] for key in keys): row for row in per_commit(fleet, keys).to_pyarrow().to_pylist()}
    for row in flushes(fleet, keys).to_pyarrow().to_pylist():
        rows.get(tuple(row[key] for key in keys), {}).update(row)
    return list(rows.values())


def compare(fleet: Fleet, key: str, before: str, after: str) -> list[Difference]:
    """Each metric with `after` beside `before`, values of a label or column, over the devices that have both."""
    rows = [row for row in _figures(fleet, ["device", "device_id", key]) if row["device_id"]]
    values = {row[key] for row in rows}
    for value in (before, after):
        if value not in values:
            known = ", ".join(sorted(str(value) for value in values)[:10]) or "none with a device_id"
            raise JojError(f"no trace has {key}={value}; there are {known}")
    found: dict[tuple[str, str], dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in rows:
        found[row["device"], row["device_id"]][row[key]] = row
    pairs = [(of_unit[before], of_unit[after]) for of_unit in found.values() if {before, after} <= set(of_unit)]
    if not pairs:
        raise JojError(f"no device has both {key}={before} and {key}={after}: nothing can be paired")
    return [_difference(metric, pairs) for metric in METRICS]


def _difference(metric: str, pairs: Iterable[tuple[dict[str, Any], dict[str, Any]]]) -> Difference:
    both = [(one.get(metric) or 0.0, two.get(metric) or 0.0) for one, two in pairs]
    logs = [math.log(two / one) for one, two in both if one > 0 and two > 0]
    if len(logs) < 2:
        return Difference(metric, len(logs), math.nan, math.nan, math.nan, "none")
    ratio = math.exp(math.fsum(logs) / len(logs))
    low, high = (math.exp(bound) for bound in _interval(logs))
    verdict = "none"
    if low > 1 and ratio >= 1 + SMALLEST:
        verdict = "regression"
    elif high < 1 and ratio <= 1 - SMALLEST:
        verdict = "improvement"
    return Difference(metric, len(logs), ratio, low, high, verdict)


def _interval(values: list[float]) -> tuple[float, float]:
    """Of the mean, by the bootstrap: percentiles of the means of resamplings. The same at each call."""
    import numpy

    random, array = numpy.random.default_rng(1), numpy.array(values)
    # As many at once as fit into some megabytes.
    at_once = max(1, min(RESAMPLINGS, 2_000_000 // len(values)))
    means: list[float] = []
    while len(means) < RESAMPLINGS:
        chosen = random.integers(0, len(values), size=(at_once, len(values)))
        means.extend(array[chosen].mean(axis=1))
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = numpy.percentile(means[:RESAMPLINGS], [tail, 100 - tail])
    return float(low), float(high)


def outliers(fleet: Fleet, metrics: Iterable[str] = ("flush_p50_ms", "kib_per_commit")) -> list[Outlier]:
    """Devices far from the median of their model, the farthest first."""
    by_model: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in _figures(fleet, ["device", "device_id"]):
        by_model[row["device"]].append(row)
    found: list[tuple[float, Outlier]] = []
    for metric in metrics:
        for model, rows in by_model.items():
            logs = [(math.log(row[metric]), row) for row in rows if row["device_id"] and row.get(metric)]
            if len(logs) < OUTLIER_DEVICES:
                continue
            middle = median(value for value, _ in logs)
            # 1.4826: of normally distributed values, the standard deviation.
            usual = 1.4826 * median(abs(value - middle) for value, _ in logs)
            for value, row in logs:
                distance = abs(value - middle)
                if distance > max(OUTLIER_DISTANCE * usual, math.log(OUTLIER_RATIO)):
                    outlier = Outlier(model, row["device_id"], metric, row[metric], math.exp(middle))
                    found.append((distance, outlier))
    found.sort(key=lambda one: (-one[0], one[1].device_id))
    return [outlier for _, outlier in found]
