"""`fleet results`: what joj measured, loaded and counted."""

import argparse
from typing import Any

from joj.command import arguments, stopping
from joj.command.output import answer, is_table

EXAMPLES = """
examples:
  python3 -m joj fleet results DIR
  python3 -m joj fleet results DIR --json - --engine spark --master 'local[2]'

The exit code is 0, 1 where nothing can be loaded or a file is of a newer version, 2 for a wrong command line, 130 after Ctrl-C.
"""


def add(commands: Any) -> None:
    """Its options."""
    parser = commands.add_parser(
        "results", help="what joj measured", epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", metavar="DIR", help="below it lie results, samples, recordings and snapshots, also as .gz; or one file")
    arguments.json_file(parser)
    arguments.check(parser, "read all bytes of each recording, or its end")
    arguments.engine(parser)
    parser.set_defaults(run=run, wrong=parser.error)


def run(options: argparse.Namespace) -> int:
    """The answers; returns the exit code."""
    # Here: --help needs none of it.
    from joj.results import load, report

    if options.json and is_table(options.json):
        options.wrong(f"--json {options.json} would be written over a recording: name another file")
    stopping.hear_termination()
    results = load(options.directory, options.engine, options.check, **arguments.engine_options(options))
    made = report.make(results)
    answer(options.json, made.as_json(), report.show(made), report.problems(made.problems))
    return 0
