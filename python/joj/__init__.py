"""Answers for a fleet, from the tables that `joj trace --export parquet=DIR` writes, and from what else joj writes.

command     what `python -m joj` can do
results     what joj measured, as tables: a package of its own
exporting   tables of many saved traces: one as well
report      all answers together;  text, page: how people see them
comparison  two versions, by pairs of one device
outliers    devices unlike others of their model
figures     what both look at: a row for each device
questions   what is asked of a fleet: functions that return Ibis tables
fleet       the tables of whole traces, on an engine;  engines: DuckDB and Spark;  session: Spark's JVM;  rows: what they say
objects     fetches what lies below a URL;  temporary: into which folder
files       which traces below a directory are whole;  integrity: whether a file is;  row_check: whether its rows are joj's
shards      a plan of the lab, shared out over Spark's workers
"""

from joj.errors import JojError
from joj.version import VERSION as __version__

__all__ = ["Fleet", "JojError", "__version__", "export", "lab", "load", "questions", "results"]

#: The module of each name. None is imported before it is asked for: an engine takes half a second, and Ctrl-C may come then.
_MODULES = {
    "Fleet": "joj.fleet",
    "load": "joj.fleet",
    "export": "joj.exporting",
    "lab": "joj.shards",
}
_PACKAGE = ("comparison", "fleet", "outliers", "questions", "results")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from joj import comparison, outliers, questions, results  # noqa: F401
    from joj.exporting import export
    from joj.fleet import Fleet, load
    from joj.shards import lab


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _PACKAGE:
        return import_module(f"joj.{name}")
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module `joj` has no `{name}`")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_PACKAGE})
