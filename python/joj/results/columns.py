"""The columns of each table of results (docs/result_tables.md). Every one may be NULL but `file`."""

from collections.abc import Sequence

import pyarrow

from joj.rows import Row

TEXT, NUMBER, REAL = pyarrow.string(), pyarrow.int64(), pyarrow.float64()


def _schema(texts: str = "", numbers: str = "", reals: str = "") -> dict[str, pyarrow.DataType]:
    columns = {name: TEXT for name in texts.split()}
    return columns | {name: NUMBER for name in numbers.split()} | {name: REAL for name in reals.split()}


#: What a run has in every result, as docs/result_format.md says.
_RUN = _schema(
    numbers="""transactions elapsed_ns p50_ns p99_ns p999_ns max_ns cpu_user_us cpu_system_us switches_voluntary
        switches_involuntary wchar_bytes storage_bytes device_written_bytes device_write_requests device_flushes
        journal_commits"""
)
_BENCH = (
    _schema("file joj_version joj_commit started_at kernel", "cores")
    | _schema("directory filesystem mount_options disk disk_model write_cache")
    | _schema("experiment step workload schema synchronous mode log library library_version sync_call key failure refused")
    | _schema(numbers="writers flush_delay_ns round", reals="per_s")
    | _RUN
    | _schema(numbers="errors", reals="others_cores tick_share limit_per_s")
)
_LAB = (
    _schema("file title joj_version qemu kernel", "cell")
    | _schema("filesystem feature device journal_device task store mode synchronous sync_call schema log waldio_options")
    | _schema("recording order recorder", "batch_atomic directory_sync compat threads file_mib range_mib cell_transactions")
    | _schema("failure", reals="per_s")
    | _RUN
    | _schema(
        numbers="""costs_transactions data_bytes journal_bytes journal_of_journal_bytes other_bytes writes flushes syncs
            replay_calls replay_differing replay_syncs replay_elapsed_ns"""
    )
)
_MONITOR = (
    _schema("file joj_version started_at kernel", "cores")
    | _schema("command kind name quantity unit", "sample", "at_ms span_ms value")
)
_STATUS = _schema("file database name value", reals="number") | _schema("unit source")
_RECORDINGS = (
    _schema("file writer source kernel command", "version started_unix_ns rows lost names_hidden not_replayed_calls")
    | _schema("not_replayed")
)
#: As the engine makes them of the recordings' own columns.
_CALLS = (
    _schema("file", "time_ns process_id thread_id")
    | _schema("thread_name call", "result duration_ns description_id descriptor_number file_offset byte_length call_flags")
    | _schema("path second_path")
)

#: The tables by name.
SCHEMAS = {
    name: pyarrow.schema(list(columns.items()))
    for name, columns in {
        "bench_runs": _BENCH,
        "lab_cells": _LAB,
        "monitor_samples": _MONITOR,
        "waldio_status": _STATUS,
        "recordings": _RECORDINGS,
        "recorded_calls": _CALLS,
    }.items()
}


def table(name: str, rows: Sequence[Row]) -> pyarrow.Table:
    """Rows as a table of this name; a column that a row lacks is NULL there. Raises where a value is of another type."""
    schema = SCHEMAS[name]
    return pyarrow.Table.from_arrays([column(field, [row.get(field.name) for row in rows]) for field in schema], schema=schema)


def column(field: pyarrow.Field, values: Sequence[object]) -> pyarrow.Array:
    """A column of a table. Raises where a value is of another type."""
    # Arrow would cut 1.5 to 1, and take true for 1.
    wrong = {TEXT: (), NUMBER: (float, bool), REAL: (bool,)}[field.type]
    for value in values:
        if isinstance(value, wrong):
            raise ValueError(f"`{field.name}` is {value}")
    return pyarrow.array(values, field.type)


def run_columns(run: Row) -> Row:
    """The columns that a run of `joj bench` and one of the lab have alike."""
    latency, device = run["latency"], run.get("device") or {}
    elapsed_ns = run["elapsed_ns"]
    own = {name: run.get(name) for name in _RUN if name in run}
    return own | {
        "per_s": run["transactions"] * 1e9 / elapsed_ns if elapsed_ns else None,
        "device_written_bytes": device.get("written_bytes"),
        "device_write_requests": device.get("write_requests"),
        "device_flushes": device.get("flushes"),
        **{name: latency[name] for name in ("p50_ns", "p99_ns", "p999_ns", "max_ns")},
    }
