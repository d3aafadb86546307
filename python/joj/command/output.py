"""Files and messages of a command."""

import errno
import json
import os
import sys
from pathlib import Path
from typing import Any

from joj.command.streams import complain
from joj.errors import JojError


class CannotSay(Exception):
    """Why standard output cannot be written."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error.strerror)
        #: Who read it has gone, as `head` does.
        self.is_unread = error.errno == errno.EPIPE


def answer(json_file: Path | None, document: Any, text: str, problems: str) -> None:
    """Writes the JSON where it is wanted, and the text but where standard output has the JSON. `problems`: what is said then."""
    is_standard = json_file == Path("-")
    if json_file:
        written = json.dumps(document, indent=2, allow_nan=False) + "\n"
        _say(written) if is_standard else write(json_file, written)
    if is_standard:
        complain(problems)
    else:
        _say(text)


def is_one_file(page: Path, json_file: Path) -> bool:
    """Whether the second of both would be written over the first."""
    try:
        return json_file != Path("-") and (os.path.realpath(page) == os.path.realpath(json_file) or page.samefile(json_file))
    except OSError:
        # One is not there yet.
        return False


def is_table(file: Path) -> bool:
    """Whether a trace, a recording or a table of one is there, which nobody wants to be written over."""
    # Here: --help needs none of it.
    from joj.integrity import MAGIC

    try:
        if not file.is_file():
            # A pipe would wait for who writes to it.
            return False
        with file.open("rb") as opened:
            return opened.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def _say(text: str) -> None:
    try:
        sys.stdout.write(text)
    except OSError as error:
        raise CannotSay(error) from error


def flush() -> None:
    """Has standard output written."""
    try:
        sys.stdout.flush()
    except OSError as error:
        raise CannotSay(error) from error


def write(path: Path, document: str) -> None:
    """Writes a file; one that cannot be written as a whole is removed."""
    try:
        with open(path, "w", encoding="utf-8") as file:
            try:
                file.write(document)
                file.flush()
            except OSError:
                if path.is_file():
                    path.unlink()
                raise
    except OSError as error:
        raise JojError(f"cannot write {path}: {error.strerror}; make room there, or name another file") from error


def lines(message: str) -> str:
    """As many lines as were meant, each without what a terminal would obey."""
    from joj.text import safe

    return "\n".join(safe(line) for line in message.split("\n"))
