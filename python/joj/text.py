"""A report as text: a table for each section."""

from collections.abc import Sequence
from typing import Any

from joj.report import Report, Row

#: Problems that are shown one by one.
PROBLEMS_SHOWN = 20


def cell(value: Any) -> str:
    """A value as people read it."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 100 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def table(rows: Sequence[Row]) -> str:
    """Rows below their names; numbers to the right."""
    if not rows:
        return "  none\n"
    names = list(rows[0])
    lines = [names, *([cell(row[name]) for name in names] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(names))]
    numbers = [not isinstance(rows[0][name], str) for name in names]
    told = ""
    for line in lines:
        padded = [
            text.rjust(width) if number else text.ljust(width)
            for text, width, number in zip(line, widths, numbers, strict=True)
        ]
        told += "  " + "  ".join(padded).rstrip() + "\n"
    return told


def problems(report: Report) -> str:
    """The files that are left out, or nothing."""
    if not report.problems:
        return ""
    left_out = report.totals["traces_left_out"]
    told = f"{len(report.problems)} files are left out, and with them {left_out} traces:\n"
    for problem in report.problems[:PROBLEMS_SHOWN]:
        told += f"  {problem['path']}: {problem['reason']}\n"
    more = len(report.problems) - PROBLEMS_SHOWN
    return told + (f"  and {more} more; --json names all\n" if more > 0 else "")


def show(report: Report) -> str:
    """All of it."""
    totals = report.totals
    told = (
        f"{totals['traces']:,} traces of {totals['devices']:,} devices, {totals['days']:,.1f} days together: "
        f"{totals['rows_of_commits']:,} commits and checkpoints, {totals['rows_of_runs']:,} runs of requests\n"
    )
    if totals["events_lost"]:
        told += f"{totals['traces_that_lost_events']:,} traces lost {totals['events_lost']:,} events\n"
    told += problems(report)
    for section in report.sections:
        told += f"\n{section.title}\n{table(section.rows)}"
    return told
