"""Answers for a fleet, from the tables that `joj trace --export parquet=DIR` writes.

files      finds the tables below a directory, and checks each file
fleet      the tables of whole traces, on an engine
questions  what is asked of them: functions that return Ibis tables
units      figures of each device: comparisons of two versions, outliers
report     all answers together;  text, page: how people see them
"""

from joj import questions
from joj.errors import JojError
from joj.fleet import Fleet, load
from joj.version import VERSION as __version__

__all__ = ["Fleet", "JojError", "__version__", "load", "questions"]
