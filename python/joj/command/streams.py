"""Standard output and standard error: they may be closed or full, and who reads them may have gone."""

import os
import sys
from typing import TextIO

#: As a shell has it for a program whose output nobody reads any more (SIGPIPE).
UNREAD_EXIT_CODE = 141


def open_closed() -> None:
    """Puts something in place of streams that are closed: the next file that is opened would get their number, and what is said."""
    for number, flags in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free is this one.
            os.set_inheritable(os.open(os.devnull, flags), True)
    if sys.stdout is None:
        # To write there fails, as it does where a program of C tries it.
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)


def complain(text: str) -> None:
    """Says it on standard error. Where that cannot be, the exit code says enough."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Lets go what a stream cannot write: Python would try it again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
