"""What computes: DuckDB in this process, or Spark. Either gives Ibis tables of Parquet files."""

import contextlib
import itertools
import os
import re
import shutil
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ibis
from ibis.expr.operations import InMemoryTable
from ibis.expr.types import BooleanColumn, Column, Table

from joj import temporary
from joj.errors import JojError
from joj.session import spark_session

ENGINES = ("duckdb", "spark")
#: So many rows are some 100 MB of DuckDB's memory. More of them go to a file.
MEMORY_ROWS = 1_000_000
#: As DuckDB takes it.
MEMORY = re.compile(r"\d+(\.\d+)? ?([KMGT]i?B|B)", re.IGNORECASE)
#: More than any machine has processors; DuckDB starts each at once.
THREADS_MAX = 1024
#: Of tables that an engine keeps: a session of Spark has those of all fleets.
_NUMBERS = itertools.count()


@dataclass(frozen=True)
class Engine:
    """What computes."""

    name: str
    #: Gives the table of some files; its name is for messages.
    read: Callable[[str, Sequence[str]], Table]
    #: The same with a column `file`, the path that each row is from.
    read_with_file: Callable[[str, Sequence[str]], Table]
    #: Gives the table of rows that are in memory.
    keep: Callable[[str, Any], Table]
    #: The same of columns that are lists.
    values: Callable[[str, dict[str, list[Any]]], Table]
    #: Reads a table once and gives it with its rows kept, as long as somebody has it or a table made of it. The number is that of its rows.
    gather: Callable[[str, Table, int], Table]
    #: Gives a table's rows, as pyarrow has them.
    fetch: Callable[[Table], Any]
    #: What it raises where it cannot compute.
    errors: tuple[type[Exception], ...]
    #: Gives a message with the files' own names.
    named: Callable[[str], str] = str
    #: Whether texts are UTF-8, where it reads others too.
    is_text: Callable[[Column], BooleanColumn] | None = None


def why(error: Exception) -> str:
    """Why an engine stopped, in a line: what Java tells is a list of causes, and the last one began it."""
    lines = [line.strip() for line in str(error).strip().splitlines()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    own = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    return next(filter(None, [*causes[::-1], *own, *lines]), type(error).__name__)


def why_not_taken(engine: str, path: str) -> str | None:
    """Why an engine does not take a file of this name, where it is so."""
    if engine != "spark":
        return None
    if os.path.basename(path)[0] in "_.":
        return "Spark passes over files whose names begin with `_` or `.`: rename it"
    return None if temporary.is_utf8(path) else "its path is no UTF-8, and Spark takes no other: rename it"


def connect(
    engine: str, memory: str | None = None, threads: int | None = None, master: str | None = None
) -> Engine:
    """The engine of this name."""
    if engine not in ENGINES:
        raise JojError(f"there is no engine `{engine}`; take one of {', '.join(ENGINES)}")
    try:
        return _duckdb(memory, threads) if engine == "duckdb" else _spark(master)
    except ImportError as error:
        extra = {"duckdb": "duckdb", "spark": "pyspark"}[engine]
        raise JojError(
            f"{engine} is not installed ({error}): python3 -m pip install 'ibis-framework[{extra}]'"
        ) from error


def _duckdb(memory: str | None, threads: int | None) -> Engine:
    import duckdb
    import pyarrow

    if memory is not None and not MEMORY.fullmatch(memory):
        raise JojError(f"`{memory}` is no amount of memory; write for example 2GB")
    if threads is not None and not 1 <= threads <= THREADS_MAX:
        raise JojError(f"{threads} threads cannot compute; take 1 to {THREADS_MAX}")
    connection = ibis.duckdb.connect()
    # What memory does not hold; else that would be in the working directory.
    spilled = temporary.unmade()
    weakref.finalize(connection, shutil.rmtree, spilled, ignore_errors=True)
    settings = {
        "preserve_insertion_order": "false",
        # It would stand in standard output, in the midst of JSON.
        "enable_progress_bar_print": "false",
        "memory_limit": memory and f"'{memory}'",
        "threads": threads,
        "temp_directory": _text(spilled),
    }
    try:
        for name, value in settings.items():
            if value is not None:
                connection.raw_sql(f"SET {name} = {value}")
    except duckdb.Error as error:
        raise JojError(f"DuckDB takes no {name} = {value}: {str(error).splitlines()[0]}") from error

    links = temporary.PlainNames()
    # As long as somebody has a table.
    weakref.finalize(connection, lambda _: None, links)

    def read(name: str, paths: Sequence[str], **options: Any) -> Table:
        names = [links.plain(path) for path in paths]
        # Folders called KEY=VALUE are the user's order: what they say is in the files.
        return connection.read_parquet(names, table_name=name, hive_partitioning=False, **options)

    def read_with_file(name: str, paths: Sequence[str]) -> Table:
        table = read(name, paths, filename=True)
        if not links.paths:
            return table.rename(file="filename")
        known = values("links", {"filename": list(links.paths), "file": list(links.paths.values())})
        joined = table.left_join(known, "filename")
        return joined.mutate(file=joined.file.coalesce(joined.filename)).select("file", *table.drop("filename").columns)

    def keep(name: str, rows: Any) -> Table:
        numbered = f"joj_{name}_{next(_NUMBERS)}"
        connection.con.register("joj_rows", rows)
        connection.raw_sql(f"CREATE TABLE {numbered} AS SELECT * FROM joj_rows")
        connection.con.unregister("joj_rows")
        return connection.table(numbered)

    def values(name: str, columns: dict[str, list[Any]]) -> Table:
        # pyarrow would import pandas to make a table of lists, and Ibis to fetch one: a third of a second.
        numbered = f"joj_{name}_{next(_NUMBERS)}"
        lists = ", ".join(f"unnest(?) AS {_quoted(column)}" for column in columns)
        connection.con.execute(f"CREATE TABLE {numbered} AS SELECT {lists}", list(columns.values()))
        return connection.table(numbered)

    def gather(name: str, table: Table, rows: int) -> Table:
        # It may be there, with rows of files that turned out to be damaged.
        connection.raw_sql(f"DETACH DATABASE IF EXISTS {name}")
        connection.raw_sql(f"DROP TABLE IF EXISTS {name}")
        if rows <= MEMORY_ROWS:
            connection.raw_sql(f"CREATE TABLE {name} AS {connection.compile(table)}")
            return connection.table(name)
        # In a file DuckDB compresses: 140 MB where memory takes 910 (10,000 traces).
        folder = temporary.folder()
        try:
            connection.raw_sql(f"ATTACH {_text(folder + '/rows')} AS {name}")
            connection.raw_sql(f"CREATE TABLE {name}.{name} AS {connection.compile(table)}")
            connection.raw_sql(f"CHECKPOINT {name}")
        finally:
            # DuckDB has the file open, and its room is free when it is closed, whatever ends the process.
            shutil.rmtree(folder, ignore_errors=True)
        return connection.table(name, database=f"{name}.main")

    def fetch(table: Table) -> Any:
        if table.op().find(InMemoryTable):
            # Somebody else's, and Ibis knows it alone.
            return table.to_pyarrow()
        found = connection.con.sql(connection.compile(table)).to_arrow_table()
        return found.cast(table.schema().to_pyarrow())

    errors = (duckdb.Error, pyarrow.ArrowException)
    return Engine("duckdb", read, read_with_file, keep, values, gather, fetch, errors, links.named)


def _text(text: str) -> str:
    """A text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"


def _quoted(name: str) -> str:
    """A name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def _spark(master: str | None) -> Engine:
    from py4j.protocol import Py4JError
    from pyarrow import ArrowException
    from pyspark import __version__ as pyspark_version
    from pyspark.errors import PySparkException

    session = spark_session(master)
    # Of a file that it cannot read it would log some hundred lines. What it raises is told.
    session.sparkContext.setLogLevel("OFF")
    connection = ibis.pyspark.connect(session)

    def view(name: str, frame: Any) -> Table:
        numbered = f"joj_{name}_{next(_NUMBERS)}"
        frame.createOrReplaceTempView(numbered)
        return connection.table(numbered)

    def frame(paths: Sequence[str]) -> Any:
        # Its own option for paths that are no patterns.
        reader = session.read.option("recursiveFileLookup", "true").option("__globPaths__", "false")
        # Absolute: what is in front of a colon would be a file system.
        return reader.parquet(*(os.path.join(os.getcwd(), path) for path in paths))

    def read(name: str, paths: Sequence[str]) -> Table:
        return view(name, frame(paths))

    def read_with_file(name: str, paths: Sequence[str]) -> Table:
        # Spark's paths are URIs: `file:/a%20b`. Its decoder takes + for a space, which it is not in a path.
        file = "regexp_replace(url_decode(replace(_metadata.file_path, '+', '%2B')), '^file:/+', '/')"
        return view(name, frame(paths).selectExpr("*", f"{file} AS file"))

    def keep(name: str, rows: Any) -> Table:
        if int(pyspark_version.partition(".")[0]) < 4:
            raise JojError(f"results need Spark 4, and this is {pyspark_version}: python3 -m pip install 'pyspark>=4'")
        return view(name, session.createDataFrame(rows))

    def values(_name: str, columns: dict[str, list[Any]]) -> Table:
        return ibis.memtable(columns)

    def gather(name: str, table: Table, _rows: int) -> Table:
        # Spark takes frames of the same folders for one, also where their files are others by now: the condition makes each its own.
        number = next(_NUMBERS)
        rows = session.sql(connection.compile(table)).where(f"{number} = {number}").cache()
        kept = view(name, rows)
        # A session outlives its fleets. At its end there is nothing to free.
        weakref.finalize(kept.op(), free, rows).atexit = False
        return kept

    def free(rows: Any) -> None:
        with contextlib.suppress(*errors, OSError):
            # The JVM may have ended.
            rows.unpersist()

    def fetch(table: Table) -> Any:
        return table.to_pyarrow()

    errors = (PySparkException, Py4JError, ArrowException)

    @ibis.udf.scalar.builtin(name="is_valid_utf8")
    def is_text(text: str) -> bool:
        """Spark's own function."""

    engine = Engine("spark", read, read_with_file, keep, values, gather, fetch, errors)
    # Older ones have no such function.
    return replace(engine, is_text=is_text) if int(pyspark_version.partition(".")[0]) >= 4 else engine

