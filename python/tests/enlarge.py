#!/usr/bin/python3
"""Writes each trace of a fleet with its rows so many times, to measure with: its sums are as many times as large.

    target/fleet-environment/bin/python python/tests/enlarge.py DIR OUT TIMES
"""

import json
import pathlib
import sys
import zlib

import pyarrow
import pyarrow.parquet


def enlarge(path: pathlib.Path, out: pathlib.Path, times: int) -> None:
    table = pyarrow.parquet.read_table(path)
    header = json.loads(table.schema.metadata[b"joj_table"])
    header["rows"] = table.num_rows * times
    told = json.dumps(header).encode()
    rows = pyarrow.concat_tables([table.replace_schema_metadata(None)] * times)
    with open(out, "w+b") as sink, pyarrow.parquet.ParquetWriter(sink, rows.schema, write_statistics=False) as writer:
        writer.write_table(rows, row_group_size=rows.num_rows)
        end = sink.tell()
        sink.seek(0)
        checksum = zlib.crc32(sink.read(end))
        checksums = {"header": zlib.crc32(told), "groups": [[end, checksum]]}
        writer.add_key_value_metadata({"joj_table": told.decode(), "joj_checksums": json.dumps(checksums)})


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
