"""Answers for a fleet, from the tables that `joj trace --export parquet=DIR` writes, and from what else joj writes.

command     what `python -m joj` can do
results     what joj measured, as tables: a package of its own
exporting   tables of many saved traces: one as well
report      all answers together;  text, page: how people see them
comparison  two versions, by pairs of one device
outliers    devices unlike others of their model
figures     what both look at: a row for each device
questions   what is asked of a fleet: functions that return Ibis tables
fleet       the tables of whole traces, on an engine;  engines: DuckDB and Spark;  rows: what they say
objects     fetches what lies below a URL;  temporary: into which folder
files       which traces below a directory are whole;  integrity: whether a file is
shards      a plan of the lab, shared out over Spark's workers
"""

import importlib
from typing import Any

from joj import questions
from joj.errors import JojError
from joj.exporting import export
from joj.fleet import Fleet, load
from joj.shards import lab
from joj.version import VERSION as __version__

__all__ = ["Fleet", "JojError", "__version__", "export", "lab", "load", "questions", "results"]


def __getattr__(name: str) -> Any:
    # Not before it is asked for: it needs pyarrow, which comes with an engine.
    if name == "results":
        return importlib.import_module("joj.results")
    raise AttributeError(f"module `joj` has no `{name}`")
