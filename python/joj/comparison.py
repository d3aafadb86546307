"""Two versions, by pairs of one device: how each figure changed, and whether that is more than chance (docs/fleet.md)."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist, fmean, pstdev

from joj.errors import JojError
from joj.figures import figures
from joj.files import Trace
from joj.fleet import COMMIT_COLUMNS, Fleet, Row

#: What is compared.
METRICS = (
    "kib_per_commit",
    "kib_with_checkpoints",
    "joj_kib_per_commit",
    "flushes_per_commit",
    "commit_p50_ms",
    "flush_p50_ms",
)
#: Where nothing changed, so many comparisons call something a change, at most.
ERROR = 0.01
#: Values that are as likely of either sign: the distance of their sum from 0, in roots of the sum of their squares, is larger than
#: x with a chance below 3.178 times that of a normal value (Bentkus and Dzindzalieta 2015). Each metric has its part of the error.
DISTANCE = NormalDist().inv_cdf(1 - ERROR / len(METRICS) / 2 / 3.178)
#: Of fewer pairs no distance is that large.
PAIRS_MIN = math.floor(DISTANCE**2) + 1
#: Of one side so many times as many commits as of the other, over all devices: then a ratio and its inverse are not as likely. Means of
#: few commits are small more often than those of many.
COMMITS_RATIO_MAX = 1.1
#: A smaller change of the ratio is not called one.
RATIO_CHANGE_MIN = 0.02


@dataclass(frozen=True)
class Difference:
    """How a figure changed between two versions, over the devices that have both."""

    metric: str
    devices: int
    #: Devices with both versions, of which one has no such figure.
    left_out: int
    #: Means of the devices.
    before: float | None
    after: float | None
    #: None where it would be infinite.
    ratio: float | None
    low: float | None
    high: float | None
    #: `regression`, `improvement`, `none`, or `too few` devices, or `unequal` numbers of commits.
    verdict: str
    #: Of a device, the mean.
    commits_before: float | None = None
    commits_after: float | None = None


#: The figure of a device before and after.
Pair = tuple[float, float]
#: A device: its model, and which one.
Unit = tuple[str, str]


@dataclass(frozen=True)
class Sides:
    """Which devices a comparison has, and which not: each device with a `device_id` and one of the versions is in one of the first four."""

    #: With commits of both versions.
    compared: int
    #: With one of the versions.
    only_before: int
    only_after: int
    #: With both versions, and without commits of one of them, or of both.
    without_commits: int
    #: Nobody knows of which device these are.
    traces_without_device_id: int


@dataclass(frozen=True)
class Comparison:
    """Two versions."""

    differences: list[Difference]
    sides: Sides


def compare(fleet: Fleet, key: str, before: str, after: str) -> list[Difference]:
    """Each metric with `after` beside `before`, values of a label or column, over the devices that have both."""
    return comparison(fleet, key, before, after).differences


def comparison(fleet: Fleet, key: str, before: str, after: str) -> Comparison:
    """The same, and how many devices are in it, and how many are not."""
    if key in ("device", "device_id", "trace_id"):
        raise JojError(f"{key} cannot be compared by pairs of one device; name a label such as app_version")
    if key == "kind":
        raise JojError("kind cannot be compared: all figures are those of commits; name a label such as app_version")
    if before == after:
        raise JojError(f"{key}={before} is named twice; name two versions")
    found: dict[Unit, dict[str, Row]] = defaultdict(dict)
    for one in figures(fleet, ["device", "device_id", key], METRICS):
        model, unit, version = map(str, one.keys)
        if unit:
            found[model, unit][version] = one.values
    versions = _versions(fleet, key)
    for of_device, values in found.items():
        versions[of_device] |= set(values)
    known = set().union(*versions.values())
    for value in (before, after):
        if value not in known:
            there = ", ".join(sorted(known)[:10]) or "none with a device_id"
            raise JojError(f"no trace has {key}={value}; there are {there}")
    sides = _sides(fleet, key, (before, after), versions, found)
    pairs = [(of_unit[before], of_unit[after]) for of_unit in found.values() if {before, after} <= set(of_unit)]
    if not pairs:
        raise JojError(
            f"no device has commits of both {key}={before} and {key}={after}: nothing can be paired; {sides.only_before} devices have "
            f"{before} alone, {sides.only_after} have {after} alone, and {sides.without_commits} have no commits of one of them"
        )
    commits = [(one["commits"], two["commits"]) for one, two in pairs]
    return Comparison([_with_commits(_of_metric(metric, pairs), commits) for metric in METRICS], sides)


def _versions(fleet: Fleet, key: str) -> dict[Unit, set[str]]:
    """The versions of each device, as its traces say: also of one without commits. Of a column of commits they say nothing."""
    versions: dict[Unit, set[str]] = defaultdict(set)
    for trace in fleet.inventory.traces:
        if trace.labels.get("device_id") and key not in COMMIT_COLUMNS:
            versions[trace.device()].add(_version(trace, key))
    return versions


def _version(trace: Trace, key: str) -> str:
    return trace.kernel if key == "kernel" else trace.labels.get(key, "")


def _sides(
    fleet: Fleet, key: str, pair: tuple[str, str], versions: dict[Unit, set[str]], found: dict[Unit, dict[str, Row]]
) -> Sides:
    before, after = pair
    both = [of_device for of_device, there in versions.items() if {before, after} <= there]
    compared = sum({before, after} <= set(found.get(of_device, ())) for of_device in both)
    unknown = [trace for trace in fleet.inventory.traces if not trace.labels.get("device_id")]
    return Sides(
        compared=compared,
        only_before=sum(before in there and after not in there for there in versions.values()),
        only_after=sum(after in there and before not in there for there in versions.values()),
        without_commits=len(both) - compared,
        traces_without_device_id=sum(key in COMMIT_COLUMNS or _version(trace, key) in pair for trace in unknown),
    )


def _of_metric(metric: str, rows: Sequence[tuple[Row, Row]]) -> Difference:
    both = [(one.get(metric), two.get(metric)) for one, two in rows]
    pairs = [(float(one), float(two)) for one, two in both if one is not None and two is not None]
    return difference(metric, pairs, len(both) - len(pairs))


def _with_commits(found: Difference, commits: Sequence[tuple[int, int]]) -> Difference:
    """With the commits of both sides, and without a verdict where these are too unequal."""
    before, after = (fmean(pair[place] for pair in commits) for place in (0, 1))
    found = replace(found, commits_before=before, commits_after=after)
    if found.metric == "kib_with_checkpoints":
        # A checkpoint comes after so many commits: of 63 commits a device may have three, of 64 four.
        is_fair = all(one == two for one, two in commits)
    else:
        is_fair = abs(fmean(math.log(two / one) for one, two in commits)) <= math.log(COMMITS_RATIO_MAX)
    if found.verdict == "too few" or is_fair:
        return found
    return replace(found, low=None, high=None, verdict="unequal")


def difference(metric: str, pairs: Sequence[Pair], left_out: int = 0) -> Difference:
    """What the pairs of a metric say."""
    if not pairs:
        return Difference(metric, 0, left_out, None, None, None, None, None, "too few")
    before, after = (fmean(pair[place] for pair in pairs) for place in (0, 1))
    is_positive = all(one > 0 and two > 0 for one, two in pairs)
    middle, half = _interval([math.log(two / one) if is_positive else two - one for one, two in pairs])
    if is_positive:
        ratio, low, high = (_exponential(value) for value in (middle, middle - half, middle + half))
    else:
        ratio, low, high = ((before + value) / before if before else None for value in (middle, middle - half, middle + half))
    if len(pairs) < PAIRS_MIN:
        return Difference(metric, len(pairs), left_out, before, after, ratio, None, None, "too few")
    # Without a ratio there was nothing before: any change is large.
    is_large = ratio is None or abs(ratio - 1) >= RATIO_CHANGE_MIN
    verdict = "none"
    if is_large and abs(middle) > half:
        verdict = "regression" if middle > 0 else "improvement"
    return Difference(metric, len(pairs), left_out, before, after, ratio, low, high, verdict)


def _interval(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and how far the true one may be from it: those are all means that `DISTANCE` does not exclude."""
    room = len(values) - DISTANCE**2
    return fmean(values), DISTANCE * pstdev(values) / math.sqrt(room) if room > 0 else math.inf


def _exponential(value: float) -> float | None:
    """None where it is too large for a number."""
    return math.exp(value) if value < 700 else None
