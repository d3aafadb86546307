"""What computes: DuckDB in this process, or Spark. Either gives Ibis tables of Parquet files."""

from collections.abc import Callable, Sequence

import ibis
from ibis.expr.types import Table

from joj.errors import JojError

#: Gives the table of some files; its name is for messages.
Reader = Callable[[str, Sequence[str]], Table]

ENGINES = ("duckdb", "spark")


def connect(
    engine: str, memory: str | None = None, threads: int | None = None, master: str | None = None
) -> Reader:
    """A reader of files on this engine."""
    if engine not in ENGINES:
        raise JojError(f"there is no engine `{engine}`; take one of {', '.join(ENGINES)}")
    try:
        return _duckdb(memory, threads) if engine == "duckdb" else _spark(master)
    except ImportError as error:
        raise JojError(f"{engine} is not installed ({error}): python3 -m pip install 'joj[{engine}]'") from error


def _duckdb(memory: str | None, threads: int | None) -> Reader:
    connection = ibis.duckdb.connect()
    connection.raw_sql("SET preserve_insertion_order = false")
    if memory:
        connection.raw_sql(f"SET memory_limit = '{memory}'")
    if threads:
        connection.raw_sql(f"SET threads = {int(threads)}")

    def read(name: str, paths: Sequence[str]) -> Table:
        # Folders called KEY=VALUE are the user's order: what they say is in the files.
        return connection.read_parquet(list(paths), table_name=name, hive_partitioning=False)

    return read


def _spark(master: str | None) -> Reader:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("joj").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    if master:
        builder = builder.master(master)
    if not master or master.startswith("local"):
        # The default, 200 parts, is for clusters: here each costs more than what is in it.
        builder = builder.config("spark.sql.shuffle.partitions", "8")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    connection = ibis.pyspark.connect(session)

    def read(name: str, paths: Sequence[str]) -> Table:
        frame = session.read.option("recursiveFileLookup", "true").parquet(*paths)
        frame.createOrReplaceTempView(f"joj_{name}")
        return connection.table(f"joj_{name}")

    return read
