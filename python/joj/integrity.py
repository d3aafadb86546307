"""Whether a file of a table is what was written (docs/trace_tables.md, "The end of a file").

The checksum of its end is looked at before anything that the end says: no reader of Parquet sees an end that is not whole.
"""

import json
import os
import stat
import zlib
from typing import BinaryIO

from joj.errors import JojError, NewerFile
from joj.headers import ALWAYS, Header, wrong_checksums, wrong_columns, wrong_header, wrong_keys, wrong_packing
from joj.version import TABLES_VERSION

HEADER_KEY = b"joj_table"
CHECKSUMS_KEY = b"joj_checksums"
#: Tables of a trace.
TABLES = ("commits", "runs")
MAGIC = b"PAR1"
#: In front of the checksum of the end: its key, and how Thrift begins a text of 8 bytes.
SEAL = b"joj_footer\x18\x08"
DIGITS = 8
#: Behind the end: its length, and the magic.
TAIL_BYTES = 8
#: What is no file, and has a name like one.
KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
#: What is read at once.
PIECE_BYTES = 4 << 20
#: No checksum covered that version's end.
OLDER = "it is of version 1 of the tables, which this package does not read: export its trace again"


class Damaged(Exception):
    """Why a file is not whole."""


class Foreign(Exception):
    """Why a file is no table of ours, or none that this version reads."""


def newer(path: str, what: str, version: int, known: int, writer: object) -> NewerFile:
    """The error for a file of a version that this package does not know."""
    whose = f"{writer}, which wrote it" if writer else "the joj that wrote it"
    return NewerFile(
        f"{path} is of version {version} of {what}, and this package reads up to {known}: "
        f"install the package of {whose} (its `make packages` makes the wheel)"
    )


def open_file(path: str) -> BinaryIO:
    """Opens a file for reading. What is none raises: a pipe would keep its reader waiting for ever, and a device may do anything."""
    kind = stat.S_IFMT(os.stat(path).st_mode)
    if kind != stat.S_IFREG:
        raise Foreign(f"it is {KINDS.get(kind, 'something else')}, and no file")
    # Nor does it wait where a pipe has taken the name meanwhile.
    return open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))


def header_of(path: str, is_full: bool) -> Header:
    """The header of a file, once it is known to be whole. `is_full`: all bytes are read, else the end of the file alone."""
    with open_file(path) as file:
        begin, end = file_end(file)
        _check_seal(end)
        header, groups = _metadata(path, file)
        behind = groups[-1][0] if groups else len(MAGIC)
        if behind != begin:
            raise Damaged(f"its row groups end at byte {behind}, and its end begins at {begin}")
        if is_full:
            check_groups(file, groups)
        return header


def file_end(file: BinaryIO) -> tuple[int, bytes]:
    """Where the end of the file begins, and the end, with its length and the magic."""
    size = file.seek(0, 2)
    if size == 0:
        raise Damaged("it is empty")
    file.seek(0)
    if file.read(len(MAGIC)) != MAGIC:
        raise Foreign("it is no Parquet file") if size < TAIL_BYTES else Damaged("it does not begin as a Parquet file")
    file.seek(max(0, size - TAIL_BYTES))
    tail = file.read()
    begin = size - TAIL_BYTES - int.from_bytes(tail[:4], "little")
    if tail[4:] != MAGIC or begin < len(MAGIC):
        raise Damaged("it does not end as a Parquet file: it was cut, or its last bytes are not what was written")
    file.seek(begin)
    return begin, file.read()


def _check_seal(end: bytes) -> None:
    at = end.find(SEAL) + len(SEAL)
    if at < len(SEAL):
        if HEADER_KEY not in end:
            what = "a saved trace; `joj trace --read` exports it" if b"joj_trace" in end else "no table of joj's"
            raise Foreign(f"it is {what}")
        if b'"version":1,' in end:
            raise Foreign(OLDER)
        raise Damaged("its end is not what was written")
    told = end[at : at + DIGITS]
    if told != b"%08x" % zlib.crc32(end[:at] + b"0" * DIGITS + end[at + DIGITS :]):
        raise Damaged("its end is not what was written")


def _metadata(path: str, file: BinaryIO) -> tuple[Header, list[tuple[int, int]]]:
    """The header, and each row group: the byte behind it, and the checksum of all bytes since the one before."""
    from pyarrow import ArrowException
    from pyarrow.parquet import read_metadata

    try:
        metadata = read_metadata(file)
    except ArrowException as error:
        raise Damaged(str(error)) from error
    entries = metadata.metadata or {}
    for key in (HEADER_KEY, CHECKSUMS_KEY):
        if key not in entries:
            raise Damaged(f"it has no {key.decode()}")
    header: Header = json.loads(entries[HEADER_KEY])
    _check(wrong_header(header, ALWAYS))
    version, writer = header["version"], header.get("writer")
    if version > TABLES_VERSION:
        raise newer(path, "the tables", version, TABLES_VERSION, writer if isinstance(writer, str) else None)
    if version < TABLES_VERSION:
        raise Foreign(OLDER)
    checksums = json.loads(entries[CHECKSUMS_KEY])
    _check(wrong_checksums(checksums))
    if zlib.crc32(entries[HEADER_KEY]) != checksums["header"]:
        raise Damaged("its header is not what was written")
    _check(wrong_header(header))
    _check(wrong_keys(entries))
    _check(wrong_columns(metadata.schema, header["table"]))
    _check(wrong_packing(metadata))
    if metadata.num_rows != header["rows"]:
        raise Damaged(f"it has {metadata.num_rows} rows, and {header['rows']} were written")
    return header, checksums["groups"]


def _check(wrong: str | None) -> None:
    if wrong:
        raise Damaged(wrong)


def check_groups(file: BinaryIO, groups: list[tuple[int, int]]) -> None:
    """Raises where the bytes of a row group are not those that were written. `groups`: the byte behind each, and its checksum."""
    file.seek(0)
    at = 0
    for number, (end, checksum) in enumerate(groups):
        found = 0
        while at < end:
            piece = file.read(min(PIECE_BYTES, end - at))
            if not piece:
                raise Damaged(f"it ends in row group {number}")
            found = zlib.crc32(piece, found)
            at += len(piece)
        if found != checksum:
            raise Damaged(f"row group {number} is not what was written")


def why_not_whole(path: str, is_full: bool) -> Header | str:
    """The header of a file, or the reason why it does not count. A newer file raises."""
    try:
        return header_of(path, is_full)
    except Foreign as error:
        return str(error)
    except JojError:
        raise
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    except RecursionError:
        return "damaged: its JSON is nested too deep"
    except (Damaged, ValueError) as error:
        return f"damaged: {error}"
