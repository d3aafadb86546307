"""`fleet report`: all answers of a fleet's tables."""

import argparse
from pathlib import Path
from typing import Any

from joj.command import arguments, fetching, stopping
from joj.command.output import answer, is_one_file, is_table, write

EXAMPLES = """
examples:
  python3 -m joj fleet report DIR
  python3 -m joj fleet report DIR --group-by device,app_version --html fleet.html
  python3 -m joj fleet report DIR --compare app_version=1.0,2.0 --json -
  python3 -m joj fleet report DIR --engine spark --master 'local[2]'
  python3 -m joj fleet report s3://BUCKET/FOLDER

The exit code is 0, 1 where there is no answer, 2 for a wrong command line, 130 after Ctrl-C.
"""


def add(commands: Any) -> None:
    """Its options."""
    parser = commands.add_parser("report", help="all answers", epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "directory",
        metavar="DIR",
        help="below it lie tables of `joj trace --export parquet=DIR`; or a URL: s3://, gs://, hdfs://, file://",
    )
    parser.add_argument("--group-by", type=arguments.keys, default=["device"], metavar="KEYS", help="columns and labels, with commas between")
    parser.add_argument("--compare", type=arguments.comparison, metavar="KEY=BEFORE,AFTER", help="two versions, by pairs of devices")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page")
    arguments.json_file(parser)
    arguments.check(parser, "read all bytes of each file, or its end (below a URL always all)")
    arguments.engine(parser)
    parser.set_defaults(run=run, wrong=parser.error)


def run(options: argparse.Namespace) -> int:
    """The answers; returns the exit code."""
    if options.html and options.json and is_one_file(options.html, options.json):
        options.wrong(f"--html and --json name one file, {options.html}: name two")
    if options.html == Path("-"):
        options.wrong("--html - is no file: a page goes to one, such as --html fleet.html")
    for option, file in (("--html", options.html), ("--json", options.json)):
        if file and is_table(file):
            options.wrong(f"{option} {file} would be written over a trace or a table of one: name another file")
    # Here: --help needs none of it.
    from joj import page, report, text
    from joj.fleet import load

    stopping.hear_termination()
    fleet = load(options.directory, options.engine, options.check, fetching.Shown(), **arguments.engine_options(options))
    made = report.make(fleet, options.group_by, options.compare)
    if options.html:
        write(options.html, page.page(made))
    answer(options.json, made.as_json(), text.show(made), text.problems(made))
    return 0
