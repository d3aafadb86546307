"""All answers together: sections of rows, which text, JSON and a page show alike."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from joj import questions
from joj.comparison import ERROR
from joj.comparison import comparison as compare
from joj.fleet import Fleet, Row
from joj.outliers import outliers


@dataclass(frozen=True)
class Section:
    """A question and its answer."""

    name: str
    title: str
    rows: list[Row]


@dataclass
class Report:
    """What a fleet says."""

    engine: str
    totals: Row
    problems: list[Row]
    sections: list[Section] = field(default_factory=list)

    def as_json(self) -> Row:
        """The report as JSON has it."""
        sections = {section.name: section.rows for section in self.sections}
        return {"version": 1, "engine": self.engine, "totals": self.totals, "problems": self.problems, **sections}


def make(fleet: Fleet, by: Sequence[str], comparison: tuple[str, str, str] | None = None) -> Report:
    """Asks everything. `comparison`: a key, and its values before and after."""
    by = fleet.check_keys(by)
    traces = fleet.inventory.traces
    known = [trace.lost for trace in traces if trace.lost is not None]
    report = Report(
        engine=fleet.engine.name,
        totals={
            "traces": len(traces),
            "traces_left_out": fleet.inventory.left_out,
            "files_left_out": len(fleet.inventory.problems),
            "devices": len({trace.device() for trace in traces if trace.labels.get("device_id")}),
            "traces_without_device_id": sum(not trace.labels.get("device_id") for trace in traces),
            "days": fleet.days(),
            "rows_of_commits": fleet.inventory.rows("commits"),
            "rows_of_runs": fleet.inventory.rows("runs"),
            "events_lost": sum(known),
            "traces_that_lost_events": sum(lost > 0 for lost in known),
        },
        problems=[asdict(problem) for problem in fleet.inventory.problems],
    )
    names = ", ".join(by)
    for name, title, table in [
        ("per_commit", f"Commits by {names}", questions.per_commit(fleet, by)),
        ("flushes", f"Flushes by {names}", questions.flushes(fleet, by)),
        ("modes", "Commits by journal mode and what they wait for", questions.modes(fleet)),
        ("applications", "Applications whose commits write most", questions.applications(fleet)),
        ("files", "Files into which most is written", questions.files(fleet)),
        ("wal_instead", "What WAL would save of one trace in a day, where the model's WAL commits are alike", questions.wal_instead(fleet)),
    ]:
        report.sections.append(Section(name, title, fleet.rows(table)))
    if comparison:
        key, before, after = comparison
        compared = compare(fleet, key, before, after)
        rows = [asdict(difference) for difference in compared.differences]
        title = f"{key} {after} beside {before}: devices with both, {1 - ERROR:.0%} intervals of all figures together"
        report.sections.append(Section("comparison", title, rows))
        title = "Devices of the comparison, and those that it leaves out"
        report.sections.append(Section("comparison_devices", title, [asdict(compared.sides)]))
    rows = [asdict(outlier) for outlier in outliers(fleet)]
    report.sections.append(Section("outliers", "Devices unlike others of their model", rows))
    return report
