"""What is asked of a fleet: functions that return Ibis tables.

Sums and counts are exact. Quantiles are the engine's approximate ones (docs/fleet.md says how far off they are).
"""

from collections.abc import Sequence

import ibis
from ibis.expr.types import Column, IntegerColumn, Table, Value

from joj.fleet import Fleet

KIB = 1024.0
MS = 1e6


def _commits(table: Table) -> Table:
    return table.filter(table.kind == "commit")


def _each(table: Table, column: str, unit: float) -> Value:
    """The mean, from an exact sum: every engine gives the same."""
    values: IntegerColumn = table[column]
    return values.sum().cast("float64") / table.count().cast("float64") / unit


def _quantiles(values: Column, prefix: str) -> dict[str, Value]:
    # As a double: else an engine rounds to whole nanoseconds, and another does not.
    values = values.cast("float64")
    return {
        f"{prefix}_p50_ms": values.approx_quantile(0.5) / MS,
        f"{prefix}_p99_ms": values.approx_quantile(0.99) / MS,
    }


def per_commit(fleet: Fleet, by: Sequence[str] = ("device",)) -> Table:
    """What a commit costs: written KiB, KiB of the journaling of SQLite's journal (JOJ), flushes, time, share with an fsync."""
    commits = _commits(fleet.commits_by(by))
    return (
        commits.group_by(list(by))
        .agg(
            traces=commits.trace_id.nunique(),
            commits=commits.count(),
            written_bytes=commits.written_bytes.sum(),
            kib_per_commit=_each(commits, "written_bytes", KIB),
            joj_kib_per_commit=_each(commits, "journal_of_journal_bytes", KIB),
            flushes_per_commit=_each(commits, "flushes", 1.0),
            fsync_share=(commits.fsyncs > 0).cast("int64").sum().cast("float64") / commits.count().cast("float64"),
            **_quantiles(commits.duration_ns, "commit"),
        )
        .order_by(list(by))
    )


def flushes(fleet: Fleet, by: Sequence[str] = ("device",)) -> Table:
    """How long the device takes for a flush, from issue to completion."""
    runs = fleet.runs_by(by)
    runs = runs.filter((runs.operation == "flush") & runs.issued_ns.notnull() & runs.completed_ns.notnull())
    took = runs.completed_ns - runs.issued_ns
    return (
        runs.group_by(list(by))
        .agg(flushes=runs.count(), flush_ns=took.sum(), **_quantiles(took, "flush"))
        .order_by(list(by))
    )


def modes(fleet: Fleet, by: Sequence[str] = ()) -> Table:
    """Commits by journal mode, and by what they wait for."""
    commits = _commits(fleet.commits_by(by))
    keys = [*(key for key in by if key not in ("journal_mode", "sync_mode")), "journal_mode", "sync_mode"]
    return (
        commits.group_by(keys)
        .agg(
            commits=commits.count(),
            kib_per_commit=_each(commits, "written_bytes", KIB),
            joj_kib_per_commit=_each(commits, "journal_of_journal_bytes", KIB),
            fsync_commits=(commits.fsyncs > 0).cast("int64").sum(),
        )
        .order_by(keys)
    )


def applications(fleet: Fleet, most: int = 20) -> Table:
    """The applications whose commits write most."""
    commits = _commits(fleet.commits)
    return (
        commits.group_by("application")
        .agg(
            commits=commits.count(),
            written_bytes=commits.written_bytes.sum(),
            kib_per_commit=_each(commits, "written_bytes", KIB),
            joj_kib_per_commit=_each(commits, "journal_of_journal_bytes", KIB),
            flushes_per_commit=_each(commits, "flushes", 1.0),
        )
        .order_by([ibis.desc("written_bytes"), "application"])
        .limit(most)
    )


def files(fleet: Fleet, most: int = 20) -> Table:
    """The files into which most is written."""
    runs = fleet.runs.filter((fleet.runs.operation == "write") & (fleet.runs.file_path != ""))
    return (
        runs.group_by(["file_path", "file_type"])
        .agg(written_bytes=runs.byte_length.sum(), runs=runs.count(), traces=runs.trace_id.nunique())
        .order_by([ibis.desc("written_bytes"), "file_path", "file_type"])
        .limit(most)
    )


def wal_instead(fleet: Fleet) -> Table:
    """What rollback journals write more a day than the same number of this device's WAL commits, with their checkpoints.

    An estimate: the transactions of WAL databases may be larger or smaller. NULL where a device has no WAL commit.
    """
    rows = fleet.commits.filter(fleet.commits.kind.isin(["commit", "checkpoint"]))
    is_log = rows.journal_mode == "wal"
    is_commit = rows.kind == "commit"
    sums = rows.group_by("device").agg(
        rollback_commits=(~is_log & is_commit).cast("int64").sum(),
        rollback_bytes=rows.written_bytes.sum(where=~is_log).fill_null(0),
        wal_commits=(is_log & is_commit).cast("int64").sum(),
        wal_bytes=rows.written_bytes.sum(where=is_log).fill_null(0),
    )
    rollback_each = sums.rollback_bytes.cast("float64") / sums.rollback_commits.nullif(0).cast("float64")
    wal_each = sums.wal_bytes.cast("float64") / sums.wal_commits.nullif(0).cast("float64")
    days = max(fleet.days(), 1e-9)
    return sums.select(
        "device",
        "rollback_commits",
        "wal_commits",
        rollback_kib=rollback_each / KIB,
        wal_kib=wal_each / KIB,
        saved_mib_per_day=(rollback_each - wal_each) * sums.rollback_commits.cast("float64") / KIB / KIB / days,
    ).order_by("device")
