"""Runs of `joj bench --json` (docs/result_format.md)."""

import json
from collections.abc import Iterator

import pyarrow

from joj.results.columns import run_columns, table
from joj.rows import Row

FORMAT = "joj-bench"
VERSION = 2
#: Parts of a study, and the measurements of each of its rows.
STUDY = {
    "table_two": ("transactions", "log_flush", "checkpoint"),
    "patterns": ("commits", "last_flush"),
    "initialisation": ("create", "extend", "first_pass", "second_pass"),
}


def writer(document: Row) -> str:
    """Which joj wrote it."""
    return f"joj {document['environment']['joj_version']}"


def rows(document: Row, file: str) -> pyarrow.Table:
    """A row for each run of each experiment."""
    conditions = _conditions(document, file)
    builds = {build["name"]: build for build in document["builds"]}
    found = []
    for fields, measured in _measured(document):
        build = builds.get(fields.get("library"), {})
        of_build = {"library_version": build.get("version"), "sync_call": build.get("sync_call")}
        base = conditions | fields | of_build
        if not measured and (base.get("failure") or base.get("refused")):
            found.append(base)
        found += [base | _run(run, base) for run in measured]
    return table("bench_runs", found)


def _run(run: Row, base: Row) -> Row:
    return run_columns(run) | {
        "round": run["round"],
        # Of a row the whole is wrong, of a run itself.
        "failure": base.get("failure") or run.get("failure"),
        # By kind of error in a result, how often.
        "errors": sum(run["errors"].values()) if isinstance(run.get("errors"), dict) else None,
        "others_cores": run.get("others_cores"),
        "tick_share": run.get("tick_share"),
        "limit_per_s": run.get("limit_per_s"),
    }


def _conditions(document: Row, file: str) -> Row:
    environment = document["environment"]
    filesystem, device = environment["filesystem"] or {}, environment["device"] or {}
    own = {name: environment[name] for name in ("joj_version", "joj_commit", "started_at", "kernel", "cores", "directory")}
    return own | {
        "file": file,
        "filesystem": filesystem.get("kind"),
        "mount_options": filesystem.get("mount_options"),
        "disk": device.get("disk"),
        "disk_model": device.get("model"),
        "write_cache": device.get("write_cache"),
    }


def _measured(document: Row) -> Iterator[tuple[Row, list[Row]]]:
    """What was measured, as columns, and its runs."""
    for row in document["rows"]:
        yield {"experiment": "one writer", "step": "transactions", "writers": 1, **_key(row["key"]), **_why(row)}, row["runs"]
    for row in document.get("contended") or []:
        key = row["key"]
        columns = {"experiment": key["kind"], "step": "commits", "workload": "insert", "synchronous": "full", **_key(key)}
        yield columns | _why(row), row["runs"]
    for row in document.get("io") or []:
        columns = {"experiment": "io", "step": "records", "workload": row["key"]["job"], "key": _text(row["key"])}
        yield columns | _why(row), row["records"]["runs"]
    for part, steps in STUDY.items():
        for row in (document.get("study") or {}).get(part) or []:
            columns = {"experiment": part, **_key(row["key"].get("row") or {}), "key": _text(row["key"]), **_why(row)}
            for step in steps:
                yield columns | {"step": step}, row[step]["runs"]


def _key(key: Row) -> Row:
    columns = {name: key[name] for name in ("workload", "schema", "synchronous", "log", "library") if name in key}
    columns |= {name: key[name] for name in ("writers", "flush_delay_ns") if name in key}
    # `side` in files of version 1.
    return columns | {"mode": key.get("mode", key.get("side")), "key": _text(key)}


def _text(key: Row) -> str:
    return json.dumps(key, separators=(",", ":"))


def _why(row: Row) -> Row:
    return {"failure": row.get("failure"), "refused": row.get("refused")}
