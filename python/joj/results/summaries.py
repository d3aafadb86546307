"""A short table of each kind: functions that return Ibis tables, or none where nothing of that kind was loaded."""

import ibis
from ibis.expr.types import Column, Table, Value

from joj.results.load import Results

#: Experiments of `joj bench` in which SQLite commits.
COMMITS = ("one writer", "threads", "processes")


def _median(table: Table, values: Column) -> Value:
    """Of rows without a failure. Not `where=`: Spark's percentile takes none as Ibis writes it."""
    return ibis.ifelse(table.failure.isnull(), values.cast("float64"), ibis.null("float64")).median()


def _quantile(values: Column, share: float) -> Value:
    """About. DuckDB has the smallest number that is not 0 in place of 0."""
    found = values.cast("float64").approx_quantile(share)
    return ibis.ifelse(found.abs() < 1e-300, 0.0, found)


def _speeds(table: Table) -> dict[str, Value]:
    """What runs and cells have in common: how many failed, and the medians of the others."""
    return {
        "failed": table.failure.notnull().cast("int64").sum(),
        "per_s": _median(table, table.per_s),
        "p50_us": _median(table, table.p50_ns) / 1e3,
        "p99_us": _median(table, table.p99_ns) / 1e3,
    }


def bench(results: Results) -> Table:
    """Commits of `joj bench` by filesystem and mode: medians over runs, of all schemas and libraries together."""
    runs = results.bench_runs
    runs = runs.filter(runs.experiment.isin(COMMITS) & runs.refused.isnull())
    runs = runs.mutate(flush_delay_ms=runs.flush_delay_ns.nullif(0).cast("float64") / 1e6)
    keys = ["filesystem", "workload", "synchronous", "writers", "flush_delay_ms", "log", "mode"]
    return (
        runs.group_by(keys)
        .agg(
            files=runs.file.nunique(),
            runs=runs.count(),
            **_speeds(runs),
        )
        .order_by(keys)
    )


def lab(results: Results) -> Table:
    """Cells of `joj lab` by filesystem, device, task and mode: medians over cells, whatever else differs in them."""
    cells = results.lab_cells
    keys = ["filesystem", "device", "task", "mode"]
    written = cells.data_bytes + cells.journal_bytes + cells.other_bytes
    return (
        cells.group_by(keys)
        .agg(
            files=cells.file.nunique(),
            cells=cells.count(),
            **_speeds(cells),
            kib_each=_median(cells, written) / 1024.0,
        )
        .order_by(keys)
    )


def monitor(results: Results) -> Table:
    """Samples of `joj monitor` by quantity. Samples count alike, however long each was."""
    samples = results.monitor_samples
    samples = samples.filter(samples.value.notnull())
    keys = ["kind", "name", "quantity", "unit"]
    return (
        samples.group_by(keys)
        .agg(
            files=samples.file.nunique(),
            samples=samples.count(),
            p50=_quantile(samples.value, 0.5),
            p99=_quantile(samples.value, 0.99),
            max=samples.value.max(),
        )
        .order_by(keys)
    )


def status(results: Results) -> Table:
    """What waldio said, by name: how many different values, and the smallest and largest number."""
    rows = results.waldio_status
    keys = ["name", "unit"]
    return (
        rows.group_by(keys)
        .agg(
            files=rows.file.nunique(),
            rows=rows.count(),
            values=rows.value.nunique(),
            min=rows.number.min(),
            max=rows.number.max(),
        )
        .order_by(keys)
    )


def calls(results: Results) -> Table:
    """Calls of recordings, by call. `bytes`: those that reads and writes moved."""
    rows = results.recorded_calls
    moves = rows.call.isin(["read", "pread", "readv", "preadv", "write", "pwrite", "writev", "pwritev"]) & (rows.result > 0)
    return (
        rows.group_by("call")
        .agg(
            files=rows.file.nunique(),
            calls=rows.count(),
            failed=(rows.result < 0).cast("int64").sum(),
            bytes=rows.result.cast("decimal(38, 0)").sum(where=moves),
            p50_us=_quantile(rows.duration_ns, 0.5) / 1e3,
            p99_us=_quantile(rows.duration_ns, 0.99) / 1e3,
        )
        .order_by([ibis.desc("calls"), "call"])
    )


#: Of the table with rows: the summary's title, and what asks for it.
SUMMARIES = {
    "bench_runs": ("Commits of joj bench: medians over runs", bench),
    "lab_cells": ("Cells of joj lab: medians over cells", lab),
    "monitor_samples": ("Samples of joj monitor", monitor),
    "waldio_status": ("What waldio said of itself", status),
    "recordings": ("Calls of recordings", calls),
}
