"""What was loaded, what was not and why, and a short table of each kind: as text and as JSON."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from joj.files import Problem
from joj.report import Section
from joj.results.load import Results, counts
from joj.results.summaries import SUMMARIES
from joj.rows import Row
from joj.text import safe, table

#: Rows of a section that are shown; JSON has all.
ROWS_SHOWN = 40
#: Reasons that are shown.
REASONS_SHOWN = 20


@dataclass
class ResultReport:
    """What results say."""

    engine: str
    loaded: list[Row]
    problems: list[Problem]
    sections: list[Section] = field(default_factory=list)

    def as_json(self) -> Row:
        """The report as JSON has it."""
        sections = {section.name: section.rows for section in self.sections}
        problems = [asdict(problem) for problem in self.problems]
        return {"version": 1, "engine": self.engine, "loaded": self.loaded, "problems": problems, **sections}


def make(results: Results) -> ResultReport:
    """Asks everything."""
    made = ResultReport(results.engine.name, counts(results.inventory), results.inventory.problems)
    for row in made.loaded:
        title, summary = SUMMARIES[row["table"]]
        made.sections.append(Section(row["table"], title, results.rows(summary(results))))
    return made


def problems(found: Sequence[Problem]) -> str:
    """What is left out, by reason, or nothing."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for problem in found:
        by_reason[problem.reason].append(problem.path)
    if not found:
        return ""
    shown = f"{len(found):,} files or folders are left out:\n"
    for reason, paths in list(by_reason.items())[:REASONS_SHOWN]:
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        shown += f"  {safe(paths[0])}{more}: {safe(reason)}\n"
    left = len(by_reason) - REASONS_SHOWN
    return shown + (f"  and {left} more reasons; --json names all\n" if left > 0 else "")


def show(report: ResultReport) -> str:
    """The whole report."""
    files = sum(row["files"] for row in report.loaded)
    shown = "1 file is loaded\n" if files == 1 else f"{files:,} files are loaded\n"
    shown += table(report.loaded) + problems(report.problems)
    for section in report.sections:
        shown += f"\n{safe(section.title)}\n{table(section.rows[:ROWS_SHOWN])}"
        left = len(section.rows) - ROWS_SHOWN
        shown += f"  and {left} more rows; --json has all\n" if left > 0 else ""
    return shown
