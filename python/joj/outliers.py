"""Devices that are unlike the others of their model."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from joj.figures import figures
from joj.fleet import Fleet, Row

#: So many times the usual distance from the median of its model, and so many times the median or the median so many times it:
#: then a device is an outlier.
DISTANCE_MIN = 6.0
RATIO_MIN = 1.5
#: Of fewer devices nobody knows what is usual.
DEVICES_MIN = 8


@dataclass(frozen=True)
class Outlier:
    """A device that is unlike the others of its model."""

    device: str
    device_id: str
    metric: str
    value: float
    median: float


def outliers(fleet: Fleet, metrics: Sequence[str] = ("flush_p50_ms", "kib_per_commit")) -> list[Outlier]:
    """Devices far from the median of their model, the farthest first."""
    by_model: dict[str, list[tuple[str, Row]]] = defaultdict(list)
    for one in figures(fleet, ["device", "device_id"], metrics):
        model, unit = map(str, one.keys)
        by_model[model].append((unit, one.values))
    found: list[tuple[float, Outlier]] = []
    for metric in metrics:
        for model, rows in by_model.items():
            logs = [(math.log(row[metric]), unit, row[metric]) for unit, row in rows if unit and (row.get(metric) or 0) > 0]
            if len(logs) < DEVICES_MIN:
                continue
            middle = median(value for value, _, _ in logs)
            # 1.4826: of normally distributed values, the standard deviation.
            usual = 1.4826 * median(abs(value - middle) for value, _, _ in logs)
            for value, unit, figure in logs:
                distance = abs(value - middle)
                if distance > max(DISTANCE_MIN * usual, math.log(RATIO_MIN)):
                    outlier = Outlier(model, unit, metric, figure, math.exp(middle))
                    found.append((distance, outlier))
    found.sort(key=lambda one: (-one[0], one[1].device_id))
    return [outlier for _, outlier in found]
