#!/usr/bin/python3
"""Fleets with known answers, asked through the package as people install it; ends with a count line.

    python/tests/test_fleet.py      with the joj of JOJ, or target/debug/joj

Its environments are below target: from PyPI, with Spark where a JDK is there, and one with a server of S3. The tests are those of the
folder fleet. Every answer stands in answers.json, which `joj trace-generate --fleet` writes beside the tables.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import environments  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
JOJ = pathlib.Path(os.environ.get("JOJ", TARGET / "debug/joj"))
ENVIRONMENT = TARGET / "fleet-environment"
# Not /tmp, which is often memory.
PLACE = os.environ.get("JOJ_TEST_DIR", "/var/tmp")
#: As tried; newer ones of the same major versions should do.
DUCKDB = ["ibis-framework[duckdb]==12.0.0", "duckdb==2.0.1", "pyarrow==26.0.1"]
SPARK = ["ibis-framework[pyspark]==12.0.0", "pyspark==4.0.5"]


def install() -> None:
    """Makes the environment where it is not there, and installs the wheel with what it says that it needs."""
    sys.path.insert(0, str(HERE.parent))
    import build_wheel

    wanted = DUCKDB + (SPARK if shutil.which("java") else [])
    environments.make(ENVIRONMENT, wanted)
    pip("uninstall", "--yes", "joj")
    with tempfile.TemporaryDirectory(dir=PLACE) as work:
        wheel = build_wheel.build(pathlib.Path(work))
        # Without an index: what the wheel needs must be what was installed above.
        extras = "duckdb,spark" if shutil.which("java") else "duckdb"
        made = pip("install", "--no-index", f"{wheel}[{extras}]")
        if made.returncode != 0:
            sys.exit(f"FAILED fleet: the wheel cannot be installed\n{made.stdout}{made.stderr}")


def pip(*arguments: object) -> subprocess.CompletedProcess:
    return environments.pip(ENVIRONMENT, *arguments)


def main() -> int:
    # In the background of a script it is ignored, and would be in the programs that are started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Behind the installed package: of this folder build_wheel alone.
    sys.path += [str(HERE / "fleet"), str(HERE.parent)]
    import fleets

    names = sys.argv[1:] or sorted(path.stem for path in (HERE / "fleet").glob("test_*.py"))
    suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    try:
        outcome = unittest.TextTestRunner(verbosity=1, warnings="ignore").run(suite)
    finally:
        shutil.rmtree(fleets.work())
    failed = len(outcome.failures) + len(outcome.errors)
    for test, reason in outcome.skipped:
        print(f"SKIPPED fleet: {test}: {reason}")
    for test, _ in outcome.failures + outcome.errors:
        print(f"FAILED fleet: {test}")
    print(f"{outcome.testsRun - failed - len(outcome.skipped)} passed, {failed} failed, {len(outcome.skipped)} skipped")
    return int(failed > 0)


if __name__ == "__main__":
    if not JOJ.is_file():
        sys.exit(f"{JOJ} is not there: cargo build -p joj")
    if os.environ.get("JOJ_FLEET_TESTS") != "inside":
        try:
            install()
        except environments.NoNetwork as error:
            print(f"SKIPPED fleet: no environment with DuckDB: {error}\n0 passed, 0 failed, 1 skipped")
            sys.exit(0)
        python = str(ENVIRONMENT / "bin/python")
        clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        os.execve(python, [python, *sys.argv], {**clean, "JOJ_FLEET_TESTS": "inside", "JOJ": str(JOJ)})
    sys.exit(main())
