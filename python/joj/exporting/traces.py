"""Which traces are to be exported, and the labels of each."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from joj.errors import JojError
from joj.files import Problem, absolute, check_named, files_below, why_not_looked_at

#: In a pattern: `{KEY}` is a label's value, `*` is anything; both within one part of a path.
WORD = re.compile(r"\{(\w+)\}|(\*)")


@dataclass
class Task:
    """A trace: what a worker needs to know of it."""

    source: str
    labels: dict[str, str]
    #: Why it cannot be exported, if that is known already.
    reason: str | None = None


@dataclass
class Tasks:
    """What is to be done."""

    tasks: list[Task] = field(default_factory=list)
    #: What does not count as a trace.
    problems: list[Problem] = field(default_factory=list)


def tasks(
    traces: Sequence[str | os.PathLike[str]], out: Path, labels: Mapping[str, str], pattern: str | None
) -> Tasks:
    """The traces that are named, and those below folders: there, files called `.parquet` that are not in `out`."""
    labels_of = _labels_from_path(pattern, labels) if pattern else lambda _: dict(labels)
    found = Tasks()
    seen: set[str] = set()
    for path in (path for named in traces for path in _paths(named, out, found.problems)):
        if path in seen:
            continue
        seen.add(path)
        own = labels_of(path)
        if own is None:
            found.tasks.append(Task(path, {}, f"its path is not as `{pattern}` says"))
        else:
            found.tasks.append(Task(path, own))
    return found


def _paths(named: str | os.PathLike[str], out: Path, problems: list[Problem]) -> list[str]:
    check_named(named)
    root = Path(absolute(named))
    if not os.path.isdir(root):
        return [str(root)]

    def problem(path: str, reason: str) -> None:
        problems.append(Problem(path, reason))

    inside = f"{out}{os.sep}"
    paths = [path for path in sorted(files_below(root, problem)) if not path.startswith(inside)]
    for path in paths:
        if not path.endswith(".parquet") and (reason := why_not_looked_at(path, (".parquet",))):
            problem(path, reason)
    return [path for path in paths if path.endswith(".parquet")]


def _labels_from_path(pattern: str, labels: Mapping[str, str]) -> Callable[[str], dict[str, str] | None]:
    keys = [match[1] for match in WORD.finditer(pattern) if match[1]]
    if not keys:
        raise JojError(f"`{pattern}` names no label; write for example {{device}}/{{device_id}}/*.parquet")
    twice = sorted({key for key in keys if keys.count(key) > 1 or key in labels})
    if twice:
        raise JojError(f"the label {twice[0]} is named twice; give each key one value")
    expression, at = "", 0
    for match in WORD.finditer(pattern):
        expression += re.escape(pattern[at : match.start()]) + ("([^/]+)" if match[1] else "[^/]*")
        at = match.end()
    whole = re.compile(r"(?:.*/)?" + expression + re.escape(pattern[at:]), re.DOTALL)

    def labels_of(path: str) -> dict[str, str] | None:
        match = whole.fullmatch(path)
        return None if match is None else {**labels, **dict(zip(keys, match.groups(), strict=True))}

    return labels_of
