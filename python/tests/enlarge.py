#!/usr/bin/python3
"""Writes each trace of a fleet with its rows so many times, to measure with: its sums are as many times as large.

    target/fleet-environment/bin/python python/tests/enlarge.py DIR OUT TIMES
"""

import pathlib
import sys

import pyarrow

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "fleet"))
import table_files  # noqa: E402


def enlarge(path: pathlib.Path, out: pathlib.Path, times: int) -> None:
    rows, header = table_files.read(path)
    table_files.write(out, pyarrow.concat_tables([rows] * times), header)


def main() -> None:
    source, target, times = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
    for table in ("commits", "runs"):
        (target / table).mkdir(parents=True)
        for path in sorted((source / table).iterdir()):
            try:
                enlarge(path, target / table / path.name, times)
            except (OSError, pyarrow.ArrowException) as error:
                print(f"left out: {path}: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
