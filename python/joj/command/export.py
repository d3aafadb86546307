"""`fleet export`: tables of many saved traces."""

import argparse
import os
import sys
from typing import Any

from joj.command import arguments, stopping
from joj.command.output import answer
from joj.command.streams import complain
from joj.errors import JojError

EXAMPLES = """
examples:
  python3 -m joj fleet export traces --out fleet --jobs 8
  python3 -m joj fleet export traces --out fleet --label-from-path '{device}/{device_id}/{app_version}-*.parquet'
  python3 -m joj fleet export traces --out fleet --retry
  python3 -m joj fleet export /shared/traces --out /shared/fleet --engine spark --master spark://HOST:7077

What is exported is not made again. The exit code is 0, 1 where a trace is not exported, 2 for a wrong command line, 130 after Ctrl-C.
"""
#: Failures that are shown one by one.
FAILURES_SHOWN = 20


def add(commands: Any) -> None:
    """Its options."""
    parser = commands.add_parser(
        "export", help="tables of saved traces", epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("traces", nargs="+", metavar="TRACE", help="a saved trace, or a folder with files called .parquet")
    parser.add_argument("--out", required=True, metavar="DIR", help="where the tables go")
    parser.add_argument("--jobs", type=arguments.number_of("processes"), metavar="N", help="traces at a time (default: one for each processor)")
    parser.add_argument("--label", type=arguments.label, action="append", default=[], metavar="KEY=VALUE", help="of all traces")
    parser.add_argument("--label-from-path", metavar="PATTERN", help="labels of each trace, for example {device}/{device_id}/*.parquet")
    parser.add_argument("--retry", action="store_true", help="try again what failed before")
    parser.add_argument("--joj", default="joj", metavar="PROGRAM", help="the program joj (default: that of the PATH)")
    parser.add_argument("--engine", choices=("local", "spark"), default="local", help="processes here, or on Spark's workers")
    parser.add_argument("--master", metavar="URL", help="of Spark, for example spark://HOST:7077")
    arguments.json_file(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Exports; returns the exit code."""
    # Here: --help needs none of it.
    from joj.exporting import export
    from joj.session import spark_session

    labels = dict(options.label)
    if len(labels) < len(options.label):
        raise JojError("a label is named twice; give each key one value")
    # Told to end, it ends its processes as at Ctrl-C.
    stopping.hear_termination()
    spark = spark_session(options.master) if options.engine == "spark" else None
    exported = export(
        options.traces,
        options.out,
        jobs=options.jobs,
        joj=options.joj,
        labels=labels,
        label_from_path=options.label_from_path,
        retry=options.retry,
        spark=spark,
        progress=_progress if sys.stderr.isatty() else None,
    )
    document = {"version": 1, "counts": _counts(exported), "traces": exported.rows}
    document["problems"] = [vars(problem) for problem in exported.problems]
    answer(options.json, document, _summary(exported) + _failures(exported), _failures(exported))
    return int(bool(exported.failed()))


def _progress(done: int, of: int, failed: int) -> None:
    end = "\n" if done == of else ""
    complain(f"\r{done:,} of {of:,} traces, {failed:,} failed{end}")


def _counts(exported: Any) -> dict[str, int]:
    from joj.exporting.one import EXPORTED, THERE

    return {
        "traces": len(exported.rows),
        "exported": exported.count(EXPORTED),
        "there": exported.count(THERE),
        "failed": len(exported.failed()),
    }


def _summary(exported: Any) -> str:
    counts = _counts(exported)
    return (
        f"{counts['traces']:,} traces: {counts['exported']:,} exported now, {counts['there']:,} were there, "
        f"{counts['failed']:,} failed\n"
    )


def _failures(exported: Any) -> str:
    from joj.exporting.one import FAILED_BEFORE
    from joj.text import safe

    failed = exported.failed()
    shown = ""
    for row in failed[:FAILURES_SHOWN]:
        before = " (before; --retry tries again)" if row["state"] == FAILED_BEFORE else ""
        shown += f"  {safe(row['source'])}: {safe(row['reason'])}{before}\n"
    left = len(failed) - FAILURES_SHOWN
    shown += f"  and {left:,} more; DIR{os.sep}failures has all\n" if left > 0 else ""
    for problem in exported.problems:
        shown += f"  left out: {safe(problem.path)}: {safe(problem.reason)}\n"
    return shown
