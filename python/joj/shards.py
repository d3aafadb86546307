"""A plan of the lab, shared out over Spark's workers: each runs `joj lab run --shard`, and `joj lab merge` joins the parts.

    result = joj.lab("filesystems", spark, shards=8)
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from joj.errors import JojError

#: The rows that workers send back.
_COLUMNS = "shard int, host string, code int, part binary, said string"
#: How many failed shards an error tells of.
_TOLD = 3


def lab(
    plan: str | os.PathLike[str],
    spark: Any,
    shards: int | None = None,
    joj: str = "joj",
    jobs: int = 1,
    only: Sequence[str] = (),
    options: Sequence[str] = (),
    json_file: str | os.PathLike[str] | None = None,
) -> dict[str, Any]:
    """The result of a plan (docs/lab_format.md), measured by the workers of a Spark session.

    `plan`: a plan's name, or a file that the driver has. `shards`: as many tasks; without it, one for each cell. `joj`: the program, by
    its name or path, the same on the driver and on each worker. `jobs`: emulated machines that a task has at a time. `only`, `options`:
    further words of `joj lab run`, as `--only TEXT` and as they are.

    The bytes of the result go to `json_file`, too, where it is named. A cell that could not be measured says so in the result, as in
    one run. A worker that has no part raises, with what its joj said.
    """
    words = [str(plan), "--jobs", str(jobs), *(word for text in only for word in ("--only", text)), *options]
    if shards is None:
        shards = _cells(joj, words)
    if shards < 1:
        raise JojError(f"there are {shards} shards of no run; give 1 or more")
    # A worker may not see the file; whoever names a plan of joj's has none.
    text = Path(plan).read_bytes() if Path(plan).is_file() else None
    shards_of = spark.range(1, shards + 1, 1, shards)
    rows = shards_of.mapInArrow(_worker(joj, words, text, shards), _COLUMNS).collect()
    failed = [row for row in sorted(rows, key=lambda row: row.shard) if row.part is None]
    if failed:
        told = "".join(f"\nshard {row.shard}/{shards} on {row.host}: {_end(row)}" for row in failed[:_TOLD])
        raise JojError(f"{len(failed)} of {shards} shards have no part:{told}")
    with tempfile.TemporaryDirectory(prefix="joj-merge-") as work:
        merged = _merge(joj, Path(work), {row.shard: bytes(row.part) for row in rows})
    if json_file is not None:
        Path(json_file).write_bytes(merged)
    result: dict[str, Any] = json.loads(merged)
    return result


def _cells(joj: str, words: Sequence[str]) -> int:
    """How many cells the plan has."""
    return len(_run([joj, "lab", "run", *words, "--dry-run"]).stdout.splitlines())


def _merge(joj: str, work: Path, parts: dict[int, bytes]) -> bytes:
    files = []
    for shard, part in parts.items():
        file = work / f"{shard}.json"
        file.write_bytes(part)
        files.append(str(file))
    result = work / "result.json"
    # Its exit code is 1 also where a cell failed, which the result tells.
    ended = _run([joj, "lab", "merge", *files, "--json", str(result)], is_checked=False)
    if not result.exists():
        raise JojError(f"the parts of all shards do not become a result: {ended.stderr.strip()}")
    return result.read_bytes()


def _run(command: Sequence[str], is_checked: bool = True) -> subprocess.CompletedProcess[str]:
    try:
        ended = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise JojError(f"cannot run {command[0]}: {error}; name it with `joj=`") from error
    if is_checked and ended.returncode != 0:
        raise JojError(ended.stderr.strip() or f"{command[0]} ended with exit code {ended.returncode}")
    return ended


def _end(row: Any) -> str:
    said = row.said.strip() or "it said nothing"
    return said if row.code is None else f"joj ended with exit code {row.code}: {said}"


def _worker(
    joj: str, words: Sequence[str], text: bytes | None, shards: int
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """What a worker does with the numbers of its shards."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        # Names of this package would ask for the package on each worker; what is imported here does not.
        import os
        import socket
        import subprocess
        import tempfile

        import pyarrow

        def shard(number: int) -> tuple[int | None, bytes | None, str]:
            with tempfile.TemporaryDirectory(prefix="joj-shard-") as work:
                part, arguments = os.path.join(work, "part.json"), list(words)
                if text is not None:
                    arguments[0] = os.path.join(work, "plan.toml")
                    with open(arguments[0], "wb") as file:
                        file.write(text)
                command = [joj, "lab", "run", *arguments, "--shard", f"{number}/{shards}"]
                try:
                    ended = subprocess.run([*command, "--json", part], stdin=subprocess.DEVNULL, capture_output=True)
                except OSError as error:
                    return None, None, f"cannot run {joj}: {error}"
                said = ended.stderr[-4000:].decode(errors="replace")
                if not os.path.exists(part):
                    return ended.returncode, None, said
                with open(part, "rb") as file:
                    return ended.returncode, file.read(), said

        for batch in batches:
            for number in batch.column(0).to_pylist():
                code, part, said = shard(number)
                columns = [[number], [socket.gethostname()], [code], [part], [said]]
                types = [pyarrow.int32(), pyarrow.string(), pyarrow.int32(), pyarrow.binary(), pyarrow.string()]
                arrays = [pyarrow.array(values, kind) for values, kind in zip(columns, types, strict=True)]
                yield pyarrow.RecordBatch.from_arrays(arrays, ["shard", "host", "code", "part", "said"])

    return run
