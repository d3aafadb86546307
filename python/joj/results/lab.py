"""Cells of `joj lab run --json` and of `joj lab merge` (docs/lab_format.md)."""

import pyarrow

from joj.results.columns import run_columns, table
from joj.rows import Row

FORMAT = "joj-lab-result"
VERSION = 2
#: Words of a cell that older results lack, and what they are there.
ABSENT = {
    "store": "sqlite",
    "batch_atomic": False,
    "directory_sync": True,
    "threads": 1,
    "file_mib": 10,
    "recording": None,
    "range_mib": None,
    "compat": False,
    "order": "timed",
    "recorder": "none",
}
_ALWAYS = ("filesystem", "feature", "device", "journal_device", "task", "synchronous", "sync_call", "schema", "log")
_FLAGS = ("batch_atomic", "directory_sync", "compat")


def writer(document: Row) -> str:
    """Which joj wrote it."""
    return f"joj {document['machine']['joj']}"


def rows(document: Row, file: str) -> pyarrow.Table:
    """A row for each cell, also for one that has no measurement."""
    machine = document["machine"]
    run = {"file": file, "title": document["title"], "joj_version": machine["joj"]}
    run |= {"qemu": machine["qemu"], "kernel": machine["kernel"]}
    cells = enumerate(document["cells"])
    return table("lab_cells", [run | {"cell": number} | _cell(one["cell"]) | _outcome(one["outcome"]) for number, one in cells])


def _cell(cell: Row) -> Row:
    columns = {name: cell[name] for name in _ALWAYS} | {name: cell.get(name, value) for name, value in ABSENT.items()}
    columns |= {name: int(columns[name]) for name in _FLAGS}
    columns["waldio_options"] = ",".join(cell.get("waldio_options") or [])
    # `side` in files of version 1.
    return columns | {"mode": cell["mode"] if "mode" in cell else cell["side"], "cell_transactions": cell["transactions"]}


def _outcome(outcome: Row) -> Row:
    if "failed" in outcome:
        return {"failure": outcome["failed"]}
    measured = outcome["measured"]
    costs, replay = measured.get("costs") or {}, measured.get("replay") or {}
    names = ("data_bytes", "journal_bytes", "journal_of_journal_bytes", "other_bytes", "writes", "flushes", "syncs")
    return run_columns(measured["run"]) | {
        "costs_transactions": costs.get("transactions"),
        **{name: costs.get(name) for name in names},
        **{f"replay_{name}": replay.get(name) for name in ("calls", "differing", "syncs", "elapsed_ns")},
    }
