"""Answers for a fleet, from the tables that `joj trace --export parquet=DIR` writes.

report      all answers together;  text, page: how people see them
comparison  two versions, by pairs of one device
outliers    devices unlike others of their model
figures     what both look at: a row for each device
questions   what is asked of a fleet: functions that return Ibis tables
fleet       the tables of whole traces, on an engine;  engines: DuckDB and Spark
files       which traces below a directory are whole;  integrity: whether a file is
shards      a plan of the lab, shared out over Spark's workers
"""

from joj import questions
from joj.errors import JojError
from joj.fleet import Fleet, load
from joj.shards import lab
from joj.version import VERSION as __version__

__all__ = ["Fleet", "JojError", "__version__", "lab", "load", "questions"]
