"""A report as text: a table for each section."""

from collections.abc import Sequence
from typing import Any

from joj.report import Report, Row

#: Problems that are shown one by one.
PROBLEMS_SHOWN = 20


def safe(text: str) -> str:
    """A text that does nothing to a terminal: what cannot be printed is shown by its number, also bytes that are no UTF-8."""
    return "".join(letter if letter.isprintable() else f"\\u{{{ord(letter):x}}}" for letter in text)


def cell(value: Any) -> str:
    """A value as people read it."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 100 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else safe(str(value))


def table(rows: Sequence[Row]) -> str:
    """Rows below their names; numbers to the right."""
    if not rows:
        return "  none\n"
    names = list(rows[0])
    lines = [[safe(name) for name in names], *([cell(row[name]) for name in names] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(names))]
    numbers = [not any(isinstance(row[name], str) for row in rows) for name in names]
    shown = ""
    for line in lines:
        padded = [
            text.rjust(width) if number else text.ljust(width)
            for text, width, number in zip(line, widths, numbers, strict=True)
        ]
        shown += "  " + "  ".join(padded).rstrip() + "\n"
    return shown


def problems(report: Report) -> str:
    """The files that are left out, or nothing."""
    if not report.problems:
        return ""
    left_out = report.totals["traces_left_out"]
    shown = f"{len(report.problems)} files or folders are left out, and with them {left_out} traces:\n"
    for problem in report.problems[:PROBLEMS_SHOWN]:
        shown += f"  {safe(problem['path'])}: {safe(problem['reason'])}\n"
    more = len(report.problems) - PROBLEMS_SHOWN
    return shown + (f"  and {more} more; --json names all\n" if more > 0 else "")


def show(report: Report) -> str:
    """The whole report."""
    totals = report.totals
    unknown = totals["traces_without_device_id"]
    named = f" ({unknown:,} name no device)" if unknown else ""
    shown = (
        f"{totals['traces']:,} traces of {totals['devices']:,} devices{named}, {totals['days']:,.1f} days together: "
        f"{totals['rows_of_commits']:,} commits and checkpoints, {totals['rows_of_runs']:,} runs of requests\n"
    )
    if totals["events_lost"]:
        shown += f"{totals['traces_that_lost_events']:,} traces lost {totals['events_lost']:,} events\n"
    shown += problems(report)
    for section in report.sections:
        shown += f"\n{safe(section.title)}\n{table(section.rows)}"
    return shown
