"""What joj measured, as tables: results of `joj bench` and `joj lab`, samples of `joj monitor`, what waldio said of itself, and
recordings (docs/result_tables.md).

    results = joj.results.load("DIR")
    results.rows(results.bench_runs.group_by("mode").agg(p50_ns=results.bench_runs.p50_ns.median()))

summaries   a short table of each kind;  report: all of them, as text and JSON
load        the tables of a directory, on an engine
documents   reads a file: what it is, whether it is whole, and its rows
bench, lab, monitor, status, recordings   the rows of each kind
columns     the columns of each table
"""

from joj.results.load import Results, load

__all__ = ["Results", "load"]
