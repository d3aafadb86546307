"""A standalone cluster of Spark, two workers on loopback, says what DuckDB says; `make soak` has it.

JOJ_CLUSTER_TRACES says of how many traces; JOJ_CLUSTER_FLEET names a fleet that is there.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import unittest

from fleets import BY, FleetTest, generate, load
from test_answers import check_quantiles, check_sums

WORKERS = 2
TRACES = os.environ.get("JOJ_CLUSTER_TRACES", "400")
#: How long the cluster may take to start.
START_SECONDS = 120


def place() -> pathlib.Path:
    there = os.environ.get("JOJ_CLUSTER_FLEET")
    return pathlib.Path(there) if there else generate("cluster", "--fleet", TRACES, "--seed", "9")


@unittest.skipUnless(shutil.which("java"), "Spark needs a JDK (package default-jdk-headless), and there is no java")
class Cluster(FleetTest):
    def start(self, name: str, *arguments: str) -> pathlib.Path:
        """A part of the cluster; its log."""
        import pyspark

        home = pathlib.Path(pyspark.__file__).parent
        log = self.work / f"{name}.log"
        environment = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
        environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
        with open(log, "wb") as out:
            line = [home / "bin/spark-class", f"org.apache.spark.deploy.{name.partition('-')[0]}", *arguments]
            process = subprocess.Popen(line, stdout=out, stderr=out, cwd=self.work, env=environment)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        return log

    def told(self, log: pathlib.Path, pattern: str) -> str:
        end = time.monotonic() + START_SECONDS
        while not (found := re.search(pattern, log.read_text())):
            self.assertLess(time.monotonic(), end, log.read_text())
            time.sleep(0.2)
        return found[1]

    def setUp(self) -> None:
        self.work = self.folder()
        master = self.start("master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        self.master = self.told(master, r"Starting Spark master at (\S+)")
        for number in range(WORKERS):
            words = ["--host", "127.0.0.1", "--cores", "1", "--memory", "2g", "--webui-port", "0", "-d", str(self.work / str(number))]
            log = self.start(f"worker.Worker-{number}", *words, self.master)
            self.told(log, r"(Successfully registered with master)")

    def test_it_says_what_duckdb_says(self) -> None:
        # A process of its own: one has one session.
        line = [sys.executable, __file__, str(place()), self.master]
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        # 200, the default, are for more than two processors.
        environment["PYSPARK_SUBMIT_ARGS"] = "--conf spark.sql.shuffle.partitions=8 pyspark-shell"
        ended = subprocess.run(line, capture_output=True, text=True, env=environment)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        said = json.loads(ended.stdout.splitlines()[-1])
        self.assertEqual(said["executors"], WORKERS)
        duckdb = load(place())
        for name, rows in asked(duckdb).items():
            self.assertEqual([exactly(row) for row in said[name]], [exactly(row) for row in json.loads(json.dumps(rows))], name)
        check_sums(self, duckdb, place())


def exactly(row: dict) -> dict:
    """What both engines compute exactly."""
    return {name: value for name, value in row.items() if not re.search(r"_p\d", name)}


def asked(fleet) -> dict[str, list[dict]]:
    """Some answers of a fleet."""
    from joj import questions

    tables = {
        "per_commit": questions.per_commit(fleet, BY),
        "flushes": questions.flushes(fleet, BY),
        "modes": questions.modes(fleet),
        "applications": questions.applications(fleet),
        "files": questions.files(fleet),
        "wal_instead": questions.wal_instead(fleet),
    }
    return {name: fleet.rows(table) for name, table in tables.items()}


def main(fleet_place: str, master: str) -> None:
    """In the process that has the session: the answers as JSON, also of quantiles beside DuckDB's."""
    fleet = load(pathlib.Path(fleet_place), engine="spark", master=master)
    check_quantiles(unittest.TestCase(), fleet, load(pathlib.Path(fleet_place)))
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    # The driver is one of them.
    executors = session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
    print(json.dumps({"executors": executors, **asked(fleet)}))
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])

if "JOJ_SOAK_SECONDS" not in os.environ:
    # It takes minutes.
    del Cluster
