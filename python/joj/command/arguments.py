"""What the words of a command line may be."""

import argparse
from pathlib import Path
from typing import Any

from joj.engines import ENGINES, MEMORY, THREADS_MAX


def comparison(text: str) -> tuple[str, str, str]:
    """KEY=BEFORE,AFTER."""
    key, _, values = text.partition("=")
    before, _, after = values.partition(",")
    if not (key and before and after):
        raise argparse.ArgumentTypeError(f"`{text}` is no comparison; write KEY=BEFORE,AFTER")
    return key, before, after


def number_of(what: str) -> Any:
    """1 or more of something, as many as a machine has processors for: a hundred thousand threads leave no number for other processes."""

    def number(text: str) -> int:
        # Python itself takes no number of some thousand digits.
        if not (text.isdecimal() and len(text.lstrip("0")) <= len(str(THREADS_MAX)) and 1 <= int(text) <= THREADS_MAX):
            raise argparse.ArgumentTypeError(f"`{text}` is no number of {what}; take 1 to {THREADS_MAX}")
        return int(text)

    return number


def memory(text: str) -> str:
    """As DuckDB takes it."""
    if not MEMORY.fullmatch(text):
        raise argparse.ArgumentTypeError(f"`{text}` is no amount of memory; write for example 2GB")
    return text


def keys(text: str) -> list[str]:
    """Names with commas between."""
    found = [key.strip() for key in text.split(",") if key.strip()]
    if not found:
        raise argparse.ArgumentTypeError(f"`{text}` names no key; write for example device,app_version")
    return found


def label(text: str) -> tuple[str, str]:
    """KEY=VALUE."""
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise argparse.ArgumentTypeError(f"`{text}` is no label; write KEY=VALUE")
    return key, value


def engine(parser: argparse.ArgumentParser) -> None:
    """The options of what computes."""
    parser.add_argument("--engine", choices=ENGINES, default="duckdb", help="what computes (default: duckdb)")
    parser.add_argument("--memory", type=memory, metavar="SIZE", help="of DuckDB, for example 2GB")
    parser.add_argument("--threads", type=number_of("threads"), metavar="N", help="of DuckDB")
    parser.add_argument("--master", metavar="URL", help="of Spark, for example local[2]")


def engine_options(options: argparse.Namespace) -> dict[str, Any]:
    """Those, as `load` takes them."""
    return {"memory": options.memory, "threads": options.threads, "master": options.master}


def check(parser: argparse.ArgumentParser, choices_help: str) -> None:
    """How much of each file is read."""
    parser.add_argument("--check", choices=("full", "footer"), default="full", help=choices_help)


def json_file(parser: argparse.ArgumentParser) -> None:
    """Where JSON goes."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="write JSON; - for standard output, without the text")
