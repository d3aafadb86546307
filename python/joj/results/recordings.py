"""Recordings of `joj record` (docs/trace_format.md): what each says of itself; the engine reads their calls."""

import json
import reprlib
import zlib
from decimal import Decimal
from typing import Any

import ibis
from ibis.expr.types import Column, Table

from joj.headers import is_number
from joj.integrity import HEADER_KEY, Damaged, Foreign, check_groups, file_end, newer, open_file
from joj.results.columns import SCHEMAS
from joj.rows import Row

VERSION = 7
TRACE_KEY = b"joj_trace"
CHECKSUMS_KEY = b"joj_checksums"
#: Of `event_type`.
CALL = 18
#: `call_code` and its word.
CALLS = dict(
    enumerate(
        """open close dup read pread readv preadv write pwrite writev pwritev lseek fsync fdatasync sync_file_range syncfs sync
        ftruncate truncate fallocate rename link symlink unlink mkdir rmdir stat lstat fstat access fork released held lock
        log_frame first_page present set_flags woken set_attributes fset_attributes fadvise drop_caches
        ended""".split(),
        start=1,
    )
)


#: Columns and their types as Arrow has them, in the order of the file.
COLUMNS = {
    "time_ns": "int64",
    "event_type": "uint8",
    "device_number": "uint32",
    "first_sector": "uint64",
    "byte_length": "uint64",
    "operation_code": "uint8",
    "request_flags": "uint16",
    "thread_id": "uint32",
    "process_id": "uint32",
    "thread_name": "string",
    "file_device": "uint32",
    "file_inode": "uint64",
    "file_generation": "uint32",
    "file_offset": "uint64",
    "backing_code": "uint8",
    "content_code": "uint8",
    "detail_value": "int64",
    "text_value": "string",
    "call_code": "uint8",
    "duration_ns": "uint64",
    "description_id": "uint32",
    "descriptor_number": "uint32",
    "call_flags": "uint32",
    "second_path": "string",
}


def recording(path: str, is_full: bool) -> Row:
    """The row of a recording, and its `identity`, once it is known to be whole. `is_full`: all bytes are read."""
    with open_file(path) as file:
        begin, end = file_end(file)
        if TRACE_KEY not in end:
            what = "a table of a trace: `fleet report` reads it" if HEADER_KEY in end else "no file of joj's"
            raise Foreign(f"it is {what}")
        header, identity, groups, rows = _metadata(path, file)
        if groups and groups[-1][0] != begin:
            raise Damaged(f"its row groups end at byte {groups[-1][0]}, and its end begins at {begin}")
        if is_full:
            check_groups(file, groups)
    if "recording" not in header:
        raise Foreign("it is a saved trace: `fleet export` makes tables of such files")
    return _row(header, rows) | {"file": path, "identity": identity}


def _metadata(path: str, file: Any) -> tuple[Row, bytes, list, int]:
    from pyarrow.parquet import read_metadata

    metadata = read_metadata(file)
    entries = metadata.metadata or {}
    text, checksums = entries[TRACE_KEY], json.loads(entries[CHECKSUMS_KEY])
    if zlib.crc32(text) != checksums["header"]:
        raise Damaged("its header is not what was written")
    header = json.loads(text)
    if _number(header, "version") > VERSION:
        raise newer(path, "recordings", header["version"], VERSION, header.get("writer"))
    found = {field.name: str(field.type) for field in metadata.schema.to_arrow_schema()}
    if "recording" in header and list(found.items()) != list(COLUMNS.items()):
        other = next((name for name, kind in COLUMNS.items() if found.get(name) != kind), "there are others")
        raise Damaged(f"its columns are not those that joj writes: {other}")
    if header.get("ending") and _number(header["ending"], "events") != metadata.num_rows:
        raise Damaged(f"it has {metadata.num_rows} rows, and {header['ending']['events']} were written")
    return header, text + entries[CHECKSUMS_KEY], checksums["groups"], metadata.num_rows


def _number(said: Row, key: str) -> int:
    """What a part of the header says for a key. Raises where joj writes no such number."""
    if not is_number(said[key]):
        raise Damaged(f"its header says {reprlib.repr(said[key])} for `{key}`, and that is a number, 0 or more")
    number: int = said[key]
    return number


def _row(header: Row, rows: int) -> Row:
    ending, recorded = header.get("ending") or {}, header["recording"]
    not_replayed = recorded.get("not_replayed") or {}
    if not isinstance(recorded["names_hidden"], bool):
        raise Damaged(f"its header says {reprlib.repr(recorded['names_hidden'])} for `names_hidden`, and that is true or false")
    return {
        "writer": header["writer"],
        "source": header["source"],
        "kernel": header["kernel"],
        "command": " ".join(header["command"]),
        "version": header["version"],
        "started_unix_ns": _number(header, "started_unix_ns") or None,
        "rows": rows,
        "lost": None if ending.get("lost") is None else _number(ending, "lost"),
        "names_hidden": int(recorded["names_hidden"]),
        "not_replayed_calls": sum(_number(not_replayed, why) for why in not_replayed),
        "not_replayed": json.dumps(not_replayed),
    }


def calls(table: Table) -> Table:
    """`recorded_calls`, of the columns of recordings and of `file`."""
    rows = table.filter(table.event_type == CALL)
    words = [(rows.call_code == code, word) for code, word in CALLS.items()]
    columns = {
        "call": ibis.cases(*words, else_="code " + rows.call_code.cast("string")),
        "result": rows.detail_value,
        "path": rows.text_value,
    }
    return rows.select(*(_column(rows, field.name, columns) for field in SCHEMAS["recorded_calls"]))


def _column(rows: Table, name: str, made: dict[str, Column]) -> Column:
    column = made[name] if name in made else rows[name]
    if column.type().is_string():
        return column.name(name)
    if not (column.type().is_decimal() or column.type().is_uint64()):
        return column.cast("int64").name(name)
    # Unsigned in the file; a place of lseek may be negative.
    wide = column.cast("decimal(20, 0)")
    limit, turn = (ibis.literal(Decimal(2**power), "decimal(20, 0)") for power in (63, 64))
    return ibis.cases((wide >= limit, wide - turn), else_=wide).cast("int64").name(name)

