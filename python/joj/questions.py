"""What is asked of a fleet: functions that return Ibis tables.

Sums and counts are exact. Quantiles are the engine's approximate ones (docs/fleet.md says how far off they are).
"""

from collections.abc import Sequence

import ibis
from ibis.expr.types import Column, IntegerColumn, Table, Value

from joj.errors import JojError
from joj.fleet import Fleet, key_columns, with_names

KIB = 1024.0
MS = 1e6


def _commits(table: Table) -> Table:
    return table.filter(table.kind == "commit")


def _sum(values: IntegerColumn, where: Value | None = None) -> Value:
    """Exact, and larger than 64 bits where it has to be."""
    return values.cast("decimal(38, 0)").sum(where=where)


def _number(values: Value) -> Value:
    return values.cast("float64")


def _count(condition: Value) -> Value:
    return condition.cast("int64").sum().fill_null(0)


def _each(table: Table, column: str, unit: float) -> Value:
    """The mean, from an exact sum: every engine gives the same."""
    return _number(_sum(table[column])) / _number(table.count()) / unit


def _quantiles(values: Column, prefix: str, where: Value | None = None) -> dict[str, Value]:
    # As a double: else an engine rounds to whole nanoseconds, and another does not.
    values = values.cast("float64")
    return {
        f"{prefix}_p50_ms": values.approx_quantile(0.5, where=where) / MS,
        f"{prefix}_p99_ms": values.approx_quantile(0.99, where=where) / MS,
    }


def _some(by: Sequence[str]) -> Sequence[str]:
    if not by:
        raise JojError("there is no key to group by; name one, for example device")
    return by


def per_commit(fleet: Fleet, by: Sequence[str] = ("device",)) -> Table:
    """What a commit costs: written KiB, without and with the group's checkpoints shared out, KiB of the journaling of SQLite's
    journal (JOJ), flushes, time, share with an fsync."""
    return with_names(per_commit_by_columns(fleet, by), by)


def per_commit_by_columns(fleet: Fleet, by: Sequence[str]) -> Table:
    """The same with the keys' columns called as `key_columns` says: no label's name is that of a figure."""
    rows = fleet.commits_by(_some(by))
    rows = rows.filter(rows.kind.isin(["commit", "checkpoint"]))
    keys, commit = key_columns(by), rows.kind == "commit"
    sums = rows.group_by(keys).agg(
        traces=rows.trace_id.nunique(where=commit),
        commits=_count(commit),
        written_bytes=_sum(rows.written_bytes, commit).fill_null(0),
        checkpoint_bytes=_sum(rows.written_bytes, ~commit).fill_null(0),
        joj_bytes=_sum(rows.journal_of_journal_bytes, commit),
        commit_flushes=_sum(rows.flushes, commit),
        fsync_commits=_count(commit & (rows.fsyncs > 0)),
        **_quantiles(rows.duration_ns, "commit", commit),
    )
    commits = _number(sums.commits.nullif(0))
    # What a checkpoint belongs to is no commit's kind or sync: there each has a group of its own.
    is_shared = not {"kind", "sync_mode"} & set(by)
    both = _number(sums.written_bytes) + _number(sums.checkpoint_bytes)
    answer = sums.select(
        *keys,
        "traces",
        "commits",
        "written_bytes",
        "checkpoint_bytes",
        kib_per_commit=_number(sums.written_bytes) / commits / KIB,
        kib_with_checkpoints=both / commits / KIB if is_shared else ibis.null("float64"),
        joj_kib_per_commit=_number(sums.joj_bytes) / commits / KIB,
        flushes_per_commit=_number(sums.commit_flushes) / commits,
        fsync_share=_number(sums.fsync_commits) / commits,
        commit_p50_ms=sums.commit_p50_ms,
        commit_p99_ms=sums.commit_p99_ms,
    )
    return answer.order_by(keys)


def flushes(fleet: Fleet, by: Sequence[str] = ("device",)) -> Table:
    """How long the device takes for a flush, from issue to completion."""
    return with_names(flushes_by_columns(fleet, by), by)


def flushes_by_columns(fleet: Fleet, by: Sequence[str]) -> Table:
    """The same with the keys' columns called as `key_columns` says."""
    runs, keys = fleet.runs_by(_some(by)), key_columns(by)
    runs = runs.filter((runs.operation == "flush") & runs.issued_ns.notnull() & runs.completed_ns.notnull())
    # In more than 64 bits: one impossible time is to cost no other its answer.
    took = runs.completed_ns.cast("decimal(20, 0)") - runs.issued_ns.cast("decimal(20, 0)")
    answer = runs.group_by(keys).agg(flushes=runs.count(), flush_ns=_sum(took), **_quantiles(took, "flush"))
    return answer.order_by(keys)


def modes(fleet: Fleet, by: Sequence[str] = ()) -> Table:
    """Commits by journal mode, and by what they wait for."""
    commits = _commits(fleet.commits_by(by))
    keys = [*(key for key in key_columns(by) if key not in ("journal_mode", "sync_mode")), "journal_mode", "sync_mode"]
    answer = (
        commits.group_by(keys)
        .agg(
            commits=commits.count(),
            kib_per_commit=_each(commits, "written_bytes", KIB),
            joj_kib_per_commit=_each(commits, "journal_of_journal_bytes", KIB),
            fsync_commits=_count(commits.fsyncs > 0),
        )
        .order_by(keys)
    )
    return with_names(answer, by)


def applications(fleet: Fleet, most: int = 20) -> Table:
    """The applications whose commits write most."""
    commits = _commits(fleet.commits_by([]))
    return (
        commits.group_by("application")
        .agg(
            commits=commits.count(),
            written_bytes=_sum(commits.written_bytes),
            kib_per_commit=_each(commits, "written_bytes", KIB),
            joj_kib_per_commit=_each(commits, "journal_of_journal_bytes", KIB),
            flushes_per_commit=_each(commits, "flushes", 1.0),
        )
        .order_by([ibis.desc("written_bytes"), "application"])
        .limit(most)
    )


def files(fleet: Fleet, most: int = 20) -> Table:
    """The files into which most is written."""
    runs = fleet.runs_by([])
    runs = runs.filter((runs.operation == "write") & (runs.file_path != ""))
    return (
        runs.group_by(["file_path", "file_type"])
        .agg(written_bytes=_sum(runs.byte_length), runs=runs.count(), traces=runs.trace_id.nunique())
        .order_by([ibis.desc("written_bytes"), "file_path", "file_type"])
        .limit(most)
    )


def wal_instead(fleet: Fleet) -> Table:
    """What rollback journals write more than the same number of this model's WAL commits, with their checkpoints: of one trace
    in a day.

    An estimate: the transactions of WAL databases may be larger or smaller. NULL where a model has no WAL commit.
    """
    rows = fleet.commits_by([])
    rows = rows.filter(rows.kind.isin(["commit", "checkpoint"]))
    is_log = rows.journal_mode == "wal"
    is_commit = rows.kind == "commit"
    sums = rows.group_by("device").agg(
        rollback_commits=_count(~is_log & is_commit),
        rollback_bytes=_sum(rows.written_bytes, ~is_log).fill_null(0),
        wal_commits=_count(is_log & is_commit),
        wal_bytes=_sum(rows.written_bytes, is_log).fill_null(0),
    )
    sums = sums.inner_join(fleet.days_by_model(), "device")
    rollback_each = _number(sums.rollback_bytes) / _number(sums.rollback_commits.nullif(0))
    wal_each = _number(sums.wal_bytes) / _number(sums.wal_commits.nullif(0))
    return sums.select(
        "device",
        "days",
        "rollback_commits",
        "wal_commits",
        rollback_kib=rollback_each / KIB,
        wal_kib=wal_each / KIB,
        saved_mib_per_day=(rollback_each - wal_each) * _number(sums.rollback_commits) / KIB / KIB / sums.days.nullif(0.0),
    ).order_by("device")
