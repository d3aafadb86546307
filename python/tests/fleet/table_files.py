"""Writes tables as `joj trace --export parquet=DIR` does (docs/trace_tables.md), from rows that a test chose."""

import json
import pathlib
import zlib

import pyarrow
import pyarrow.parquet

SEAL = b"joj_footer\x18\x08"


def write(path: pathlib.Path, rows: pyarrow.Table, header: dict, **packing: object) -> None:
    """A whole file: one row group, and a header with as many rows."""
    told = json.dumps({**header, "rows": rows.num_rows}, separators=(",", ":"))
    write_text(path, rows, told, **packing)


def write_text(
    path: pathlib.Path, rows: pyarrow.Table, told: str, checksums: str | None = None, further: dict | None = None, **packing: object
) -> None:
    """The same with a text for a header, one for checksums instead of the right ones, and further metadata.

    `packing` is what pyarrow takes.
    """
    rows = rows.replace_schema_metadata(None)
    with open(path, "w+b") as sink:
        with pyarrow.parquet.ParquetWriter(sink, rows.schema, write_statistics=False, store_schema=False, **packing) as writer:
            if rows.num_rows:
                writer.write_table(rows, row_group_size=rows.num_rows)
            end = sink.tell()
            sink.seek(0)
            whole = sink.read(end)
            groups = [[end, zlib.crc32(whole)]] if rows.num_rows else []
            right = json.dumps({"header": zlib.crc32(told.encode()), "groups": groups})
            own = {"joj_table": told, "joj_checksums": checksums or right, "joj_footer": "00000000"}
            writer.add_key_value_metadata(own | (further or {}))
        sink.flush()
        seal(path)


def seal(path: pathlib.Path) -> None:
    """The checksum of the file's end, into that end."""
    data = path.read_bytes()
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    at = data.index(SEAL, begin) + len(SEAL)
    unsealed = data[:at] + b"00000000" + data[at + 8 :]
    path.write_bytes(data[:at] + b"%08x" % zlib.crc32(unsealed[begin:]) + data[at + 8 :])


def spoil(path: pathlib.Path) -> None:
    """Bytes of the first column that nobody can unpack, with right checksums."""
    old = json.loads(pyarrow.parquet.read_metadata(path).metadata[b"joj_checksums"])["groups"][0]
    data = path.read_bytes()
    groups = data[:4] + b"\xff" * 60 + data[64 : old[0]]
    end = data[old[0] :]
    for number in range(1000):
        groups = groups[:60] + number.to_bytes(4, "little") + groups[64:]
        # The place of what follows stays.
        if len(str(zlib.crc32(groups))) == len(str(old[1])):
            break
    path.write_bytes(groups + end.replace(str(old[1]).encode(), str(zlib.crc32(groups)).encode()))
    seal(path)


def read(path: pathlib.Path) -> tuple[pyarrow.Table, dict]:
    """The rows of a file, and its header."""
    with pyarrow.parquet.ParquetFile(path) as file:
        return file.read().replace_schema_metadata(None), json.loads(file.metadata.metadata[b"joj_table"])


def change(path: pathlib.Path, header: dict, columns: dict | None = None) -> None:
    """Writes a file anew with other values: of its header, and of whole columns. Labels and what else is in each row are the header's."""
    rows, told = read(path)
    facts = facts_of({**told, **header}) if header.keys() & {"trace_id", "kernel", "labels"} else {}
    of_header = {name: [value] * rows.num_rows for name, value in facts.items()}
    for name, values in {**of_header, **(columns or {})}.items():
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, rows.schema.field(place), pyarrow.array(values, rows.schema.field(place).type))
    write(path, rows, {**told, **header})


def facts_of(header: dict) -> dict[str, str]:
    """What each row has of the header."""
    labels = header["labels"]
    facts = {key: labels.get(key, "") for key in ("device", "device_id", "sqlite_build")}
    told = json.dumps(labels, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
    return facts | {"trace_id": header["trace_id"], "kernel": header["kernel"], "labels": told}
