"""`python -m joj`: answers on the command line."""

import argparse
import io
import json
import os
import sys
from pathlib import Path

from joj.engines import ENGINES, MEMORY
from joj.errors import JojError
from joj.version import VERSION

#: As a shell has it for Ctrl-C.
STOPPED_EXIT_CODE = 130

EXAMPLES = """
examples:
  python3 -m joj fleet report DIR
  python3 -m joj fleet report DIR --group-by device,app_version --html fleet.html
  python3 -m joj fleet report DIR --compare app_version=1.0,2.0 --json -
  python3 -m joj fleet report DIR --engine spark --master 'local[2]'

The exit code is 0, 1 where there is no answer, 2 for a wrong command line, 130 after Ctrl-C.
"""


def _comparison(text: str) -> tuple[str, str, str]:
    key, _, values = text.partition("=")
    before, _, after = values.partition(",")
    if not (key and before and after):
        raise argparse.ArgumentTypeError(f"`{text}` is no comparison; write KEY=BEFORE,AFTER")
    return key, before, after


def _threads(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is no number of threads; take 1 or more")
    return int(text)


def _memory(text: str) -> str:
    if not MEMORY.fullmatch(text):
        raise argparse.ArgumentTypeError(f"`{text}` is no amount of memory; write for example 2GB")
    return text


def _keys(text: str) -> list[str]:
    keys = [key.strip() for key in text.split(",") if key.strip()]
    if not keys:
        raise argparse.ArgumentTypeError(f"`{text}` names no key; write for example device,app_version")
    return keys


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m joj", description="Answers from what joj writes")
    parser.add_argument("--version", action="version", version=VERSION)
    fleet = parser.add_subparsers(required=True).add_parser("fleet", help="many traces together")
    report = fleet.add_subparsers(required=True).add_parser(
        "report", help="all answers", epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    report.add_argument("directory", metavar="DIR", help="below it lie tables of `joj trace --export parquet=DIR`")
    report.add_argument("--engine", choices=ENGINES, default="duckdb", help="what computes (default: duckdb)")
    report.add_argument("--group-by", type=_keys, default=["device"], metavar="KEYS", help="columns and labels, with commas between")
    report.add_argument("--compare", type=_comparison, metavar="KEY=BEFORE,AFTER", help="two versions, by pairs of devices")
    report.add_argument("--html", type=Path, metavar="FILE", help="write a page")
    report.add_argument("--json", type=Path, metavar="FILE", help="write JSON; - for standard output, without the text")
    report.add_argument("--check", choices=("full", "footer"), default="full", help="read all bytes of each file, or its end")
    report.add_argument("--memory", type=_memory, metavar="SIZE", help="of DuckDB, for example 2GB")
    report.add_argument("--threads", type=_threads, metavar="N", help="of DuckDB")
    report.add_argument("--master", metavar="URL", help="of Spark, for example local[2]")
    return parser


def _report(options: argparse.Namespace) -> None:
    # Here: --help needs none of it.
    from joj import page, report, text
    from joj.fleet import load

    engine = {"memory": options.memory, "threads": options.threads, "master": options.master}
    fleet = load(options.directory, options.engine, options.check, **engine)
    made = report.make(fleet, options.group_by, options.compare)
    if options.html:
        _write(options.html, page.page(made))
    is_standard = options.json == Path("-")
    if options.json:
        document = json.dumps(made.as_json(), indent=2, allow_nan=False) + "\n"
        sys.stdout.write(document) if is_standard else _write(options.json, document)
    if is_standard:
        sys.stderr.write(text.problems(made))
    else:
        sys.stdout.write(text.show(made))


def _write(path: Path, document: str) -> None:
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


def _lines(message: str) -> str:
    """As many lines as were meant, each without what a terminal would obey."""
    from joj.text import safe

    return "\n".join(safe(line) for line in message.split("\n"))


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Paths that are no UTF-8, and labels that the terminal's encoding lacks.
            stream.reconfigure(errors="backslashreplace")
    options = _parser().parse_args(arguments)
    try:
        _report(options)
        sys.stdout.flush()
    except JojError as error:
        print(f"joj: {_lines(str(error))}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"joj: cannot write standard output: {error.strerror}", file=sys.stderr)
        # What is left of it would be tried again at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("joj: stopped", file=sys.stderr)
        return STOPPED_EXIT_CODE
    return 0


if __name__ == "__main__":
    sys.exit(main())
