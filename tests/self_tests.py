#!/usr/bin/env python3
"""Shows that the runners of SQLite's suite, of the clients and of cargo's tests tell what they must; ends with a count line."""

import contextlib
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


def load(name, path):
    """The script at `path` as a module."""
    spec = importlib.util.spec_from_file_location(name, os.path.join(HERE, path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sys.dont_write_bytecode = True
run = load("run", "tcl/run.py")
driver = load("driver", "clients/driver.py")

PRINTED = """
! wal2-1.1 expected: [ok]
! wal2-1.1 got:      [wrong]
2 errors out of 10 tests on host Linux 64-bit little-endian
!Failures on these tests: wal2-1.1 wal2-1.2
"""


class FakeSuite:
    """Stands for the suite: stock fails what it is told to."""

    def __init__(self, failures, tests=100):
        self.outcome = run.Outcome(tests, failures, 0.0)

    def run(self, _side, _file):
        return self.outcome


def judged(failures, stock=None, known="", tests=100, name="wal2"):
    """(passed, failed) for the file `name` that failed `failures` beside a stock that failed `stock`."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("reason r because\n" + known)
        file.flush()
        comparison = run.Comparison(FakeSuite(stock or {}), run.read_known(file.name))
    with contextlib.redirect_stdout(io.StringIO()):
        comparison.stock_outcome(1024, name)
        comparison.judge(run.Setup("strict", 1024), name, run.Outcome(tests, failures, 0.0))
        comparison.judge_known()
    return comparison.passed, comparison.failed


class RunnerOfTheSuite(unittest.TestCase):
    def test_failures_are_read_with_what_came(self):
        tests, failures = run.parse("wal2", PRINTED, 1)
        self.assertEqual(tests, 10)
        self.assertEqual(failures["wal2-1.1"], "expected [ok] got [wrong] ")
        self.assertIn("wal2-1.2", failures)

    def test_a_file_that_dies_or_counts_without_naming_has_failed(self):
        self.assertIn("wal2:died", run.parse("wal2", "wal2-1.1... Ok\n", -11)[1])
        self.assertIn("wal2:unnamed", run.parse("wal2", "1 errors out of 10 tests\n", 0)[1])
        self.assertEqual(run.parse("wal2", "0 errors out of 10 tests\n", 0)[1], {})

    def test_a_difference_fails_and_what_stock_fails_does_not(self):
        self.assertEqual(judged({}), (1, 0))
        self.assertEqual(judged({"wal2-1.1": ""}), (0, 1))
        self.assertEqual(judged({"wal2-1.1": ""}, stock={"wal2-1.1": ""}), (1, 0))
        self.assertEqual(judged({"wal2-1.1": ""}, stock={"wal2-1.2": ""}), (0, 1))

    def test_fault_rounds_are_compared_without_their_number(self):
        stock = {"wal2-1-oom-transient.3": ""}
        self.assertEqual(judged({"wal2-1-oom-transient.7": ""}, stock=stock), (1, 0))
        self.assertEqual(judged({"wal2-1-oom-persistent.3": ""}, stock=stock), (0, 1))

    def test_a_known_difference_is_accepted_in_its_setup_only(self):
        self.assertEqual(judged({"wal2-1.1": ""}, known="always r strict 1024 wal2 wal2-1.*\n"), (1, 0))
        self.assertEqual(judged({"wal2-1.1": ""}, known="sometimes r * * wal2 wal2-1.1\n"), (1, 0))
        self.assertEqual(judged({"wal2-1.1": ""}, known="always r ahead 1024 wal2 wal2-1.*\n"), (0, 1))

    def test_a_known_difference_is_accepted_in_veryquick_too(self):
        self.assertEqual(judged({"wal2-1.1": ""}, known="always r * * wal2 wal2-1.*\n", name="veryquick"), (1, 0))
        self.assertEqual(judged({"wal2-1.1": ""}, known="always r ahead * wal2 wal2-1.*\n", name="veryquick"), (0, 1))
        self.assertEqual(judged({}, known="always r * * wal2 wal2-1.*\n", name="veryquick"), (1, 0))

    def test_a_known_difference_that_is_gone_fails(self):
        self.assertEqual(judged({}, known="always r * * wal2 wal2-1.1\n"), (1, 1))
        self.assertEqual(judged({}, known="sometimes r * * wal2 wal2-1.1\n"), (1, 0))
        self.assertEqual(judged({}, known="always r * * wal3 wal3-1.1\n"), (1, 0))

    def test_a_file_that_gives_up_early_fails(self):
        self.assertEqual(judged({}, tests=49), (0, 1))
        self.assertEqual(judged({}, tests=50), (1, 0))

    def test_a_known_difference_needs_a_reason(self):
        with self.assertRaises(SystemExit):
            judged({}, known="always unnamed * * wal2 wal2-1.1\n")


class EmbeddedSideOfTheSuite(unittest.TestCase):
    """What stock with reserved bytes fails in the same words is no difference there, and nothing else is accepted for it."""

    class Suite:
        """Stands for the suite: stock passes, and the setup `reserved` fails what it is told to."""

        def __init__(self, reserved):
            self.reserved = reserved

        def run(self, setup, _file):
            return run.Outcome(100, self.reserved if setup.mode == "reserved" else {}, 0.0)

    def judged(self, failures, reserved, mode="embedded", name="veryquick:wal2"):
        comparison = run.Comparison(self.Suite(reserved), [])
        with contextlib.redirect_stdout(io.StringIO()):
            comparison.judge(run.Setup(mode, 4096), name, run.Outcome(100, failures, 0.0))
        return comparison.passed, comparison.failed

    def test_the_same_words_are_accepted(self):
        self.assertEqual(self.judged({"wal2-1.1": "got [13] "}, {"wal2-1.1": "got [13] "}), (1, 0))

    def test_other_words_another_test_and_another_setup_are_not(self):
        self.assertEqual(self.judged({"wal2-1.1": "got [14] "}, {"wal2-1.1": "got [13] "}), (0, 1))
        self.assertEqual(self.judged({"wal2-1.2": "got [13] "}, {"wal2-1.1": "got [13] "}), (0, 1))
        self.assertEqual(self.judged({"wal2-1.1": "got [13] "}, {"wal2-1.1": "got [13] "}, mode="strict"), (0, 1))


class DriverOfTheClients(unittest.TestCase):
    FACTS = {"count": "10", "max": "10", "integrity": "ok", "waldio": "5"}

    def test_all_rows_there_is_right(self):
        driver.judge(self.FACTS, 10, True)
        driver.judge(self.FACTS, 9, True)

    def test_each_loss_is_a_failure(self):
        for wrong, acknowledged, with_waldio in [
            ({}, 11, True),
            ({"max": "11"}, 10, True),
            ({"integrity": "row 3 missing from index"}, 10, True),
            ({"waldio": "0"}, 10, True),
            ({}, 10, False),
        ]:
            with self.assertRaises(driver.Failure, msg=f"{wrong} {acknowledged}"):
                driver.judge({**self.FACTS, **wrong}, acknowledged, with_waldio)

    def test_a_worker_that_ends_by_itself_is_a_failure(self):
        with self.assertRaises(driver.Failure):
            driver.insert_until_killed(["sh", "-c", "echo ack 1"], "unused", "", 2)

    def test_the_last_acknowledgement_counts_even_when_read_after_the_kill(self):
        worker = ["sh", "-c", "for n in 1 2 3 4 5; do echo ack $n; done; sleep 60"]
        self.assertEqual(driver.insert_until_killed(worker, "unused", "", 2), 5)


HARNESS = """
running 3 tests
test whole ... ok
test part ... ok
test wrong ... FAILED

successes:

---- part stdout ----
skipped: no root here
a table that nobody needs


successes:
    part
    whole

failures:

---- wrong stdout ----
why it is wrong

thread 'wrong' (17) panicked at a.rs:1:2:
assertion failed
  left: 1
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace

failures:
    wrong

test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
"""


class RunnerOfCargosTests(unittest.TestCase):
    """On a cargo that prints what it is told to, and notes its words."""

    def ran(self, printed, status, *words, beside="true", **settings):
        with tempfile.TemporaryDirectory() as folder:
            text, noted, fake = (os.path.join(folder, name) for name in ("text", "words", "cargo"))
            with open(text, "w", encoding="utf-8") as file:
                file.write(printed)
            with open(fake, "w", encoding="utf-8") as file:
                file.write(f'#!/bin/sh\necho "$@" > {noted}\ncat {text}\n{beside} || exit $?\nexit {status}\n')
            os.chmod(fake, 0o755)
            paths = {**os.environ, **settings, "PATH": folder + os.pathsep + os.environ["PATH"]}
            done = subprocess.run([os.path.join(HERE, "cargo_tests.sh"), *words], env=paths, capture_output=True, text=True, check=False)
            with open(noted, encoding="utf-8") as file:
                return done.returncode, done.stdout.splitlines(), file.read().split()

    def test_what_a_passed_test_skipped_is_counted_and_a_failure_is_shown_whole(self):
        status, lines, _ = self.ran(HARNESS, 101)
        self.assertEqual((status, lines[-1]), (101, "2 passed, 1 failed, 1 skipped"))
        reason = "FAILED cargo test: wrong: a.rs:1:2: assertion failed   left: 1"
        for line in ["SKIPPED cargo test: no root here", "FAILED cargo test: wrong", "why it is wrong", reason]:
            self.assertIn(line, lines)
        self.assertNotIn("a table that nobody needs", lines)

    def test_a_program_that_dies_without_a_result_is_a_failure(self):
        status, lines, _ = self.ran("running 3 tests\n", 101)
        self.assertEqual((status, lines[-1]), (101, "0 passed, 1 failed, 0 skipped"))

    def test_a_program_that_never_ends_is_ended_and_is_a_failure(self):
        hangs = "$(env | sed -n 's/^CARGO_TARGET_.*_RUNNER=//p') sleep 100"
        status, lines, _ = self.ran("running 3 tests\n", 0, beside=hangs, TEST_SECONDS_MAX="1")
        self.assertEqual((status, lines[-1]), (124, "0 passed, 1 failed, 0 skipped"))

    def test_words_for_the_harness_stay_behind_the_dashes(self):
        asked = ["test", "--no-fail-fast", "-p", "a", "--", "--show-output"]
        self.assertEqual(self.ran("", 0, "-p", "a")[2], asked)
        self.assertEqual(self.ran("", 0, "-p", "a", "--", "--skip", "b")[2], [*asked[:-1], "--skip", "b", "--show-output"])


if __name__ == "__main__":
    result = unittest.TextTestRunner(verbosity=1).run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]))
    failed = len(result.failures) + len(result.errors)
    for case, _ in result.failures + result.errors:
        print(f"FAILED self tests: {case}")
    print(f"{result.testsRun - failed} passed, {failed} failed, {len(result.skipped)} skipped")
    sys.exit(1 if failed else 0)
