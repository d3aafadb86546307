"""What joj writes into a table of a trace: its columns, and what its header says of it (docs/trace_tables.md).

Checksums tell that a file is as somebody wrote it. Whether that was joj is asked here, once for all that read headers and rows.
"""

import re
import reprlib
from collections.abc import Callable, Iterable
from typing import Any

from joj.temporary import is_utf8

#: What a file's header says (docs/trace_tables.md, "Metadata").
Header = dict[str, Any]

NUMBER_MAX = 2**64 - 1
IDENTITY = re.compile(r"[0-9a-f]{16}")
LABEL_KEY = re.compile(r"[A-Za-z0-9_]+")

_FACTS = "trace_id device device_id kernel sqlite_build labels application"
#: Of each table: the columns of texts, of numbers, and of numbers that a row may lack. A later joj may write more of them.
COLUMNS = {
    "commits": (
        f"{_FACTS} filesystem kind file_path journal_mode sync_mode",
        """sqlite_work process_id begun_ns until_close written_bytes data_bytes journal_bytes other_bytes journal_of_journal_bytes
        writes flushes syncs fsyncs fdatasyncs sync_ns flush_ns""",
        "begun_unix_ns duration_ns",
    ),
    "runs": (
        f"{_FACTS} filesystem disk operation class part evidence file_path file_type queued_by issued_by",
        """queued_ns first_sector byte_length waits wanted_preflush wanted_fua issued_fua error_code file_inode file_generation
        file_deleted journal_of_journal process_id""",
        "issued_ns completed_ns file_offset changed_bytes sync_call sqlite_work",
    ),
}
#: How Parquet has each kind: its type, what that stands for, whether a row may lack it, and that it is no list.
_TEXT, _NUMBER, _OPTIONAL = ("BYTE_ARRAY", "String", 0, 0), ("INT64", "None", 0, 0), ("INT64", "None", 1, 0)
#: That of no column by now.
_OPTIONAL_TEXT = ("BYTE_ARRAY", "String", 1, 0)
_KINDS = {
    table: {name: kind for names, kind in zip(columns, (_TEXT, _NUMBER, _OPTIONAL), strict=True) for name in names.split()}
    for table, columns in COLUMNS.items()
}


def is_number(value: object) -> bool:
    """Whether a header says 0 or more with this."""
    # True is an int to Python.
    return type(value) is int and 0 <= value <= NUMBER_MAX


def _is_text(value: object) -> bool:
    return isinstance(value, str) and is_utf8(value)


def _is_identity(value: object) -> bool:
    return isinstance(value, str) and IDENTITY.fullmatch(value) is not None


#: Labels that have a column of their own. No other one may be called like a column, in whatever capitals.
NAMED = ("device", "device_id", "application", "sqlite_build")
_RESERVED = {name for columns in _KINDS.values() for name in columns}


def _is_labels(value: object) -> bool:
    return isinstance(value, dict) and all(
        LABEL_KEY.fullmatch(key) and (key in NAMED or key.lower() not in _RESERVED) and _is_text(text) for key, text in value.items()
    )


#: What a header says: whether a value is possible, and what it has to be.
SAYS: dict[str, tuple[Callable[[object], bool], str]] = {
    "version": (lambda value: is_number(value) and value != 0, "a number, 1 or more"),
    "writer": (_is_text, "a text"),
    "table": (lambda value: isinstance(value, str) and value in COLUMNS, " or ".join(COLUMNS)),
    "rows": (is_number, "a number, 0 or more"),
    "span_ns": (is_number, "a number, 0 or more"),
    "lost": (lambda value: value is None or is_number(value), "a number, 0 or more, or null"),
    "trace_id": (_is_identity, "16 hexadecimal digits"),
    "export_id": (_is_identity, "16 hexadecimal digits"),
    "kernel": (_is_text, "a text"),
    "labels": (_is_labels, "an object of texts, with letters, digits and _ in their keys, none called like a column"),
    "filesystems": (lambda value: isinstance(value, list) and all(map(_is_text, value)), "a list of texts"),
}
#: What it says in each version.
ALWAYS = ("version",)


def wrong_header(header: object, keys: tuple[str, ...] = tuple(SAYS)) -> str | None:
    """What a header says that joj does not write, or lacks: of these keys."""
    if not isinstance(header, dict):
        return f"its header is {reprlib.repr(header)}, and no object"
    for key in keys:
        is_possible, what = SAYS[key]
        if key not in header:
            return f"its header has no `{key}`"
        if not is_possible(header[key]):
            return f"its header says {reprlib.repr(header[key])} for `{key}`, and that is {what}"
    return None


def wrong_checksums(checksums: object) -> str | None:
    """What the checksums of a file are not."""
    if not (isinstance(checksums, dict) and is_number(checksums.get("header")) and isinstance(checksums.get("groups"), list)):
        return "its checksums are no object with that of the header and those of row groups"
    before = 0
    for group in checksums["groups"]:
        if not (isinstance(group, list) and len(group) == 2 and all(map(is_number, group)) and group[0] > before):
            return f"it says {reprlib.repr(group)} for a row group, and that is the byte behind it and a checksum"
        before = group[0]
    return None


#: How columns are called, those of a later joj too. Engines take capitals for small letters, and a point for a column within another.
COLUMN_NAME = re.compile(r"[a-z][a-z0-9_]*")
#: Of each table, the columns that were right last, as Parquet tells them: those of most files are the same.
_RIGHT: dict[str, str] = {}


def wrong_columns(schema: Any, table: str) -> str | None:
    """What the columns of a file, as Parquet has them, are not."""
    _, _, told = str(schema).partition("\n")
    if _RIGHT.get(table) == told:
        return None
    columns = [schema.column(number) for number in range(len(schema))]
    kinds = [
        (column.physical_type, str(column.logical_type), column.max_definition_level, column.max_repetition_level) for column in columns
    ]
    found = {column.path: kind for column, kind in zip(columns, kinds, strict=True)}
    for name, kind in _KINDS[table].items():
        if name not in found:
            return f"it has no column {name}"
        if found[name] != kind:
            return f"its column {name} is not as joj writes it"
    for name, kind in found.items():
        if not COLUMN_NAME.fullmatch(name) or kind not in (_TEXT, _OPTIONAL_TEXT, _NUMBER, _OPTIONAL):
            return f"its column {reprlib.repr(name)} is none that joj writes"
    if len(found) < len(columns):
        paths = [column.path for column in columns]
        return f"it has the column {next(name for name in paths if paths.count(name) > 1)} twice"
    _RIGHT[table] = told
    return None


#: What every engine reads. joj packs with Snappy.
CODECS = {"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD"}
ENCODINGS = {
    *("PLAIN", "RLE", "PLAIN_DICTIONARY", "RLE_DICTIONARY"),
    *("DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"),
}


def wrong_packing(metadata: Any) -> str | None:
    """How the columns of a file are packed, where an engine cannot unpack them."""
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for place in range(group.num_columns):
            column = group.column(place)
            ways = [column.compression] if column.compression not in CODECS else [way for way in column.encodings if way not in ENCODINGS]
            if ways:
                return f"its column {column.path_in_schema} is packed with {ways[0]}, which not every engine reads: joj packs with SNAPPY"
    return None


def wrong_keys(keys: Iterable[bytes]) -> str | None:
    """What the metadata of a file has that joj does not write there: engines obey words of their own."""
    for key in keys:
        # pyarrow's own note tells pyarrow alone something.
        if not (key.startswith(b"joj_") or key == b"ARROW:schema"):
            return f"its metadata has {reprlib.repr(key.decode(errors='backslashreplace'))}, which joj does not write"
    return None
