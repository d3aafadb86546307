"""The command line: its words, and what is said where there is no answer."""

import argparse
import io
import sys
from typing import NoReturn

from joj.command import export, report, results, stopping
from joj.command.output import CannotSay, flush, lines
from joj.command.streams import UNREAD_EXIT_CODE, complain, silence
from joj.errors import JojError
from joj.version import VERSION

#: What DuckDB says of Ctrl-C while it computes.
INTERRUPTED = "Query interrupted"


def run(arguments: list[str] | None) -> int:
    """Does what the words say; returns the exit code. Ctrl-C raises."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Paths that are no UTF-8, and labels that the terminal's encoding lacks.
            stream.reconfigure(errors="backslashreplace")
    try:
        return _run_until_told(arguments)
    except JojError as error:
        told = str(error)
    except CannotSay as error:
        silence(sys.stdout)
        if error.is_unread:
            return UNREAD_EXIT_CODE
        told = f"cannot write standard output: {error}"
    except OSError as error:
        # Of no file that the commands know of.
        told = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    except RuntimeError as error:
        if str(error) != INTERRUPTED:
            raise
        raise KeyboardInterrupt from error
    complain(f"joj: {lines(told)}\n")
    return 1


def _run_until_told(arguments: list[str] | None) -> int:
    try:
        return _run(arguments)
    except Exception as error:
        if stopping.is_told():
            # Of what ends a process a library has made an error of its own.
            raise KeyboardInterrupt from error
        raise


def _run(arguments: list[str] | None) -> int:
    try:
        options = _parser().parse_args(arguments)
    except SystemExit:
        # It may be help, or a complaint, that nobody can read.
        complain("")
        flush()
        raise
    except OSError as error:
        raise CannotSay(error) from error
    code: int = options.run(options)
    flush()
    return code


class _Parser(argparse.ArgumentParser):
    """One whose complaint may be lost: not each Python 3.11 takes a standard error that is full."""

    def error(self, message: str) -> NoReturn:
        complain(f"{self.format_usage()}{self.prog}: error: {message}\n")
        raise SystemExit(2)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python3 -m joj", description="Answers from what joj writes")
    parser.add_argument("--version", action="version", version=VERSION)
    fleet = parser.add_subparsers(required=True).add_parser("fleet", help="many traces or results together")
    commands = fleet.add_subparsers(required=True)
    for command in (report, results, export):
        command.add(commands)
    return parser
