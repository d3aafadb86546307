"""`python -m joj`: answers on the command line."""

import argparse
import io
import os
import sys

from joj.command import export, report, results
from joj.command.output import lines
from joj.errors import JojError
from joj.objects import is_fetching
from joj.version import VERSION

#: As a shell has it for Ctrl-C.
STOPPED_EXIT_CODE = 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m joj", description="Answers from what joj writes")
    parser.add_argument("--version", action="version", version=VERSION)
    fleet = parser.add_subparsers(required=True).add_parser("fleet", help="many traces or results together")
    commands = fleet.add_subparsers(required=True)
    for command in (report, results, export):
        command.add(commands)
    return parser


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Paths that are no UTF-8, and labels that the terminal's encoding lacks.
            stream.reconfigure(errors="backslashreplace")
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except JojError as error:
        print(f"joj: {lines(str(error))}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"joj: cannot write standard output: {error.strerror}", file=sys.stderr)
        # What is left of it would be tried again at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (KeyboardInterrupt, RuntimeError) as error:
        # DuckDB's word for it while it computes.
        if isinstance(error, RuntimeError) and str(error) != "Query interrupted":
            raise
        print("joj: stopped", file=sys.stderr)
        return STOPPED_EXIT_CODE
    return code


if __name__ == "__main__":
    code = main()
    if is_fetching():
        # There is no answer, and nothing is left to do. Waiting for a server that says nothing takes minutes.
        os._exit(code)
    sys.exit(code)
