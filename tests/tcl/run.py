#!/usr/bin/env python3
"""Runs SQLite's own TCL tests on stock SQLite and with waldio as the default VFS, and compares.

    run.py test            the wal, sync, crash, ioerr and pager files; under 4 minutes on 2 cores
    run.py soak            the 190-odd files near the journal, and veryquick, at both page sizes and in each mode;
                           in `embedded` veryquick's files one by one
    run.py embedded [A..]  what soak runs in `embedded`, or of that the files named
    run.py files A.test..  the files named, as soak does; for hunting one difference
    run.py prepare         fetches and builds what these need, and runs nothing

A setup is a page size and one of `stock` (nothing loaded), `strict` (WALDIO_STRICT=1: file sizes and deletes exactly
as stock), `ahead` (the default: the log preallocated) and `embedded` (as `strict`, with
WALDIO_LAYOUT=embedded; it needs pages of 4096 bytes). What fails with waldio and not with stock is a difference. One
that known_differences.txt names with its reason is accepted; in `embedded`, where pages reserve 24 bytes, so is one that
is the same, to the word, in the setup `reserved`: stock with as many bytes reserved, and nothing loaded. Any other fails,
and so does a named one that no longer occurs. Ends with a line "N passed, N failed, N skipped", where one is one file in
one setup.
"""

import fnmatch
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
SUITE = os.path.join(TARGET, "sqlite-suite")
LIBRARY = os.environ.get("WALDIO_LIBRARY", os.path.join(TARGET, "release", "libwaldio.so"))
NOBODY = 65534  # root may write read-only files, so 17 tests fail as root on stock too
PARALLEL = 2

QUICK = "wal* sync* crash* ioerr* pager*"
# What takes half a minute or more in a setup, or waits for time to pass: walthread races for minutes, walslow copies the
# log 20,000 times, 13 s of work beside stock's logs and minutes beside prepared ones; of walcrash2 each test but two fails where the
# log is prepared, as it looks at the log's length. Soak has them in every setup.
QUICK_WITHOUT = {
    ("strict", "walthread"), ("strict", "walcrash3"), ("strict", "walprotocol"), ("strict", "walsetlk"),
    ("strict", "pagerfault"), ("strict", "pagerfault2"), ("strict", "walslow"),
    ("ahead", "walthread"), ("ahead", "walcrash3"), ("ahead", "walslow"), ("ahead", "pagerfault2"), ("ahead", "crash"),
    ("ahead", "walcrash2"),
    # Of rollback journals, which waldio passes through: one setup is enough here.
    ("ahead", "crash3"), ("ahead", "crash4"), ("ahead", "crash6"), ("strict", "crash7"),
}  # fmt: skip
# What the embedded layout needs at the end of each page.
RESERVED_BYTES = "24"
# Files that look for the wal-index by its name, and what is another word in them: the layout has one of its own.
EMBEDDED_WORDS = {
    file: {"db-shm": "db-waldio-shm"}
    for file in "e_wal e_walauto pager1 wal2 wal64k walpersist walro walsetlk".split()
} | {"walro2": {"db-shm": "db-waldio-shm", "db2-shm": "db2-waldio-shm", "pgsz 512": "pgsz 4096", "<=65536": "<=4096"}}
# In front of the name of a file: it runs as veryquick runs it, alone.
VERYQUICK = "veryquick:"
# Prints what veryquick runs; it looks for the suite where it is itself.
LIST_VERYQUICK = """
source [file dirname $argv0]/permutations.test
array set suite $::testspec(veryquick)
foreach file $suite(-files) {puts "file [file tail $file]"}
"""
SOAK = QUICK + (
    " atomic* avtrans backup* bigfile* busy* cache* chunksize delete_db e_wal* e_vacuum exclusive* filectrl incrvacuum*"
    " journal* lock* manydb memjournal* mjournal mmap* multiplex* nolock openv2 persist* quota* readonly* rollback*"
    " savepoint* shared* shmlock snapshot* stat stat2 superlock symlink* syscall tempdb* tempfault thread* trans*"
    " tkt-2d* tkt-9d* tkt-b* tkt-f* unixexcl uri* vacuum* zerodamage"
)
# Longest first, so that the pool does not end on one of them.
SLOW_FIRST = ["veryquick", "walthread", "walcrash3", "walprotocol", "walsetlk", "pagerfault2", "pagerfault", "walvfs"]


@dataclass(frozen=True)
class Setup:
    """What a file is run on."""

    mode: str
    page_size: int

    def __str__(self):
        return f"{self.mode}@{self.page_size}"


@dataclass
class Outcome:
    """What one file did in one setup."""

    tests: int
    failures: dict  # test name -> what was expected and what came, as the suite prints it
    seconds: float


@dataclass(frozen=True)
class Known:
    """One line of known_differences.txt."""

    how: str
    mode: str
    page_size: str
    file: str
    test: str
    reason: str
    line: int

    def covers(self, setup, file):
        return self.mode in ("*", setup.mode) and self.page_size in ("*", str(setup.page_size)) and self.file == file

    def matches(self, setup, file, test):
        """Whether it accepts this failure; veryquick runs other files, under the names that their tests have alone."""
        return self.covers(setup, self.file if file == "veryquick" else file) and fnmatch.fnmatchcase(test, self.test)


def read_known(path):
    """The accepted differences; a malformed line is an error."""
    known, reasons = [], {}
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            how, *fields = line.split()
            if how == "reason" and len(fields) > 1:
                reasons[fields[0]] = " ".join(fields[1:])
            elif how in ("always", "sometimes") and len(fields) > 4 and fields[0] in reasons:
                reason, mode, page_size, file, *tests = fields
                known += [Known(how, mode, page_size, file, test, reasons[reason], number) for test in tests]
            else:
                sys.exit(f"{path}:{number}: want: reason NAME TEXT, or: always|sometimes REASON MODE PAGE_SIZE FILE TEST...")
    return known


def without_round(test):
    """The name of a fault test without the number of its round: which round fails depends on how many calls there are."""
    return re.sub(r"-(transient|persistent)\.\d+$", r"-\1.*", test)


def parse(file, text, status):
    """Tests run and failures, from what testfixture printed."""
    total = re.search(r"^(\d+) errors out of (\d+) tests", text, re.M)
    failures = {}
    for name, kind, rest in re.findall(r"^! (\S+) (expected|got):\s*(.*)$", text, re.M):
        failures[name] = failures.get(name, "") + f"{kind} {rest[:300]} "
    listed = re.search(r"^!Failures on these tests: (.*)$", text, re.M)
    for name in listed.group(1).split() if listed else []:
        failures.setdefault(name, "listed as failed")
    if total is None:
        failures[f"{file}:died"] = f"exit status {status}, last words: {text[-300:].strip()}"
        return 0, failures
    if int(total.group(1)) > 0 and not failures:
        failures[f"{file}:unnamed"] = f"{total.group(1)} errors: {text[-300:].strip()}"
    return int(total.group(2)), failures


def differences_of(file, outcome, stock):
    """What fails beyond stock's own failures, and what came instead."""
    if stock is None:
        return {}
    stock_failures = {without_round(test) for test in stock.failures}
    found = {test: detail for test, detail in outcome.failures.items() if without_round(test) not in stock_failures}
    # Fewer I/O calls mean fewer rounds of a fault loop; half of the tests missing means a file gave up early.
    if outcome.tests * 2 < stock.tests:
        found[f"{file}:fewer"] = f"{outcome.tests} tests, stock ran {stock.tests}"
    return found


def kill_session(leader):
    """Kills a process that was started as the leader of its session, and its children."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Suite:
    """The unpacked suite in a private directory, and how to run one file of it."""

    def __init__(self, private, timeout_seconds):
        self.private = private
        self.timeout_seconds = timeout_seconds
        self.running = set()  # process ids, each the leader of a session of its own
        self.credentials = {}
        if os.geteuid() == 0:
            self.credentials = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        for name in ("test", "ext"):
            shutil.copytree(os.path.join(SUITE, "source", name), os.path.join(private, name))
        for fixture in glob.glob(os.path.join(SUITE, "testfixture-*")):
            shutil.copy(fixture, private)
        self.library = shutil.copy(LIBRARY, private)
        for file, words in EMBEDDED_WORDS.items():
            self.write_embedded(file, words)

    def write_embedded(self, file, words):
        """Writes a file as the setup `embedded` runs it; its name is no test's."""
        script = os.path.join(self.private, "test", file)
        with open(f"{script}.test", encoding="latin-1") as lines:
            text = lines.read()
        for old, new in words.items():
            text = text.replace(old, new)
        with open(f"{script}.embedded", "w", encoding="latin-1") as lines:
            lines.write(text)

    def files(self, patterns):
        """Names without .test of the files that match, longest-running first."""
        found = set()
        for pattern in patterns.split():
            for path in glob.glob(os.path.join(self.private, "test", pattern + ".test")):
                found.add(os.path.basename(path)[: -len(".test")])
        return sorted(found, key=lambda name: (SLOW_FIRST.index(name) if name in SLOW_FIRST else 99, name))

    def veryquick(self):
        """Names without .test of the files that veryquick runs."""
        script = os.path.join(self.private, "test", "list.tcl")
        with open(script, "w", encoding="utf-8") as lines:
            lines.write(LIST_VERYQUICK)
        with tempfile.TemporaryDirectory(dir=self.private) as directory:
            command = [os.path.join(self.private, "testfixture-4096"), script]
            listed = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=60, check=True).stdout
        return re.findall(r"^file (\S+)\.test$", listed, re.M)

    def environment(self, setup, directory):
        """What a setup is made of."""
        names = ("PATH", "LANG", "LC_ALL", "TZ")
        environment = {name: os.environ[name] for name in names if name in os.environ}
        environment.update(HOME=directory, TMPDIR=directory)
        if setup.mode == "reserved":
            environment.update(RESERVED_BYTES=RESERVED_BYTES)
        elif setup.mode != "stock":
            environment.update(EXTENSION_UNDER_TEST=self.library, WALDIO_NO_SYNC="1")
        if setup.mode in ("strict", "embedded"):
            environment.update(WALDIO_STRICT="1")
        if setup.mode == "embedded":
            environment.update(WALDIO_LAYOUT="embedded")
        return environment

    def command(self, setup, file):
        """Testfixture and its arguments."""
        script = [f"{file}.test"]
        if setup.mode == "embedded" and file in EMBEDDED_WORDS:
            script = [f"{file}.embedded"]
        if file.startswith(VERYQUICK):
            script = ["permutations.test", "veryquick", file.removeprefix(VERYQUICK) + ".test"]
        fixture = os.path.join(self.private, f"testfixture-{setup.page_size}")
        return [fixture, os.path.join(self.private, "test", script[0]), *script[1:]]

    def run(self, setup, file):
        """Runs one file in one setup in a directory of its own."""
        directory = tempfile.mkdtemp(prefix=f"{setup}-{file}-", dir=self.private)
        if self.credentials:
            os.chown(directory, NOBODY, NOBODY)
        started = time.monotonic()
        with open(os.path.join(directory, "output"), "w+b") as output:
            process = subprocess.Popen(
                self.command(setup, file), cwd=directory, env=self.environment(setup, directory), stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True, **self.credentials,
            )  # fmt: skip
            self.running.add(process.pid)
            try:
                status = process.wait(self.timeout_seconds)
            except subprocess.TimeoutExpired:
                status = f"none: still running after {self.timeout_seconds} s"
            finally:
                # Its children (the crash tests start some) are in the session that was started for it.
                kill_session(process.pid)
                process.wait()
                self.running.discard(process.pid)
            output.seek(0)
            text = output.read().decode("utf-8", "replace")
        shutil.rmtree(directory, ignore_errors=True)
        tests, failures = parse(file.removeprefix(VERYQUICK), text, status)
        return Outcome(tests, failures, time.monotonic() - started)


class Comparison:
    """Counts files whose failures in a setup go beyond stock's and the known ones."""

    def __init__(self, suite, known):
        self.suite = suite
        self.known = known
        self.stock = {}
        self.reserved = {}
        self.explained = 0
        self.occurred = set()
        self.covered = set()
        self.passed = 0
        self.failed = 0

    def stock_outcome(self, page_size, file):
        """Stock's outcome, run when first asked for: most files never need it."""
        if (page_size, file) not in self.stock:
            self.stock[page_size, file] = self.suite.run(Setup("stock", page_size), file)
        return self.stock[page_size, file]

    def by_reserved_bytes(self, file, differences):
        """Names of the differences that reserved bytes alone make, where they are the same to the word."""
        if file not in self.reserved:
            self.reserved[file] = self.suite.run(Setup("reserved", 4096), file)
        bare = file.removeprefix(VERYQUICK)
        reserved = differences_of(bare, self.reserved[file], self.stock_outcome(4096, file))
        same = {(without_round(test), detail) for test, detail in reserved.items()}
        return [test for test, detail in differences.items() if (without_round(test), detail) in same]

    def judge(self, setup, file, outcome):
        """Prints what differs from stock and counts the file."""
        stock = None
        if outcome.failures or (setup.page_size, file) in self.stock:
            stock = self.stock_outcome(setup.page_size, file)
        bare = file.removeprefix(VERYQUICK)
        self.covered.update(entry for entry in self.known if entry.covers(setup, bare))
        differences = {}
        for test, detail in differences_of(bare, outcome, stock).items():
            entry = next((entry for entry in self.known if entry.matches(setup, bare, test)), None)
            if entry:
                self.occurred.add(entry)
            else:
                differences[test] = detail
        if differences and setup.mode == "embedded":
            for test in self.by_reserved_bytes(file, differences):
                self.explained += 1
                del differences[test]
        beside = f", stock fails {len(stock.failures)}" if stock else ""
        print(f"{setup} {file}: {outcome.tests} tests, {len(outcome.failures)} fail{beside}, {outcome.seconds:.1f} s", flush=True)
        for test, detail in sorted(differences.items()):
            print(f"FAILED tcl: {setup} {file} {test}: {detail}", flush=True)
        if differences:
            self.failed += 1
        else:
            self.passed += 1

    def judge_known(self):
        """A named difference that did not occur though its file ran is a list that has grown old."""
        for entry in self.known:
            if entry.how == "always" and entry in self.covered and entry not in self.occurred:
                self.failed += 1
                print(f"FAILED tcl: known_differences.txt:{entry.line}: {entry.test} of {entry.file} no longer differs; remove it")
        for reason, count in sorted(Counter(entry.reason for entry in self.occurred).items()):
            print(f"known differences, {count} entries: {reason}")
        if self.explained:
            print(f"known differences, {self.explained} tests: the same on stock with {RESERVED_BYTES} bytes reserved in each page")


def plan_embedded(names, suite, stock_files):
    """What soak runs in the embedded layout, with stock for what it does not run anyway: veryquick file by file, because
    one that gives up ends veryquick."""
    near, quick = suite.files(SOAK), suite.veryquick()
    files = [name.removesuffix(".test") for name in names] or near + [name for name in quick if name not in near]
    quick_only = set(quick) - set(near)
    files = [VERYQUICK + file if file in quick_only else file for file in files]
    modes = [(mode, file) for file in files for mode in ("stock", "embedded") if mode == "embedded" or file not in stock_files]
    return [(Setup(mode, 4096), file) for mode, file in modes]


def plan(level, names, suite):
    """The (setup, file) pairs to run; where stock runs every file too, just before the others run that file."""
    if level == "embedded":
        return plan_embedded(names, suite, ())
    if level == "test":
        files = suite.files(QUICK)
        setups = [Setup("strict", 1024), Setup("ahead", 4096)]
    else:
        files = suite.files(SOAK) + ["veryquick"] if level == "soak" else [name.removesuffix(".test") for name in names]
        setups = [Setup(mode, page_size) for mode in ("stock", "strict", "ahead") for page_size in (1024, 4096)]
    files.sort(key=lambda name: SLOW_FIRST.index(name) if name in SLOW_FIRST else 99)
    jobs = [(setup, file) for file in files for setup in setups]
    if level != "test":
        jobs += plan_embedded(names, suite, files)
    if level == "test":
        jobs = [(setup, file) for setup, file in jobs if (setup.mode, file) not in QUICK_WITHOUT]
    return jobs


def prepare():
    """Fetches and builds what is missing; the reason for skipping, or None."""
    if subprocess.run([os.path.join(HERE, "fetch.sh"), SUITE], check=False).returncode != 0:
        return "fetch.sh failed"
    # One compiler each: the library is a single file.
    builds = [subprocess.Popen([os.path.join(HERE, "build.sh"), SUITE, page_size]) for page_size in ("1024", "4096")]
    return "build.sh failed" if any([build.wait() for build in builds]) else None


def main():
    level = sys.argv[1] if len(sys.argv) > 1 else ""
    if level not in ("test", "soak", "files", "embedded", "prepare"):
        sys.exit(__doc__)
    problem = prepare()
    if level == "prepare":
        sys.exit(problem)
    if problem:
        print(f"FAILED tcl: {problem}\n0 passed, 1 failed, 0 skipped")
        sys.exit(1)
    known = read_known(os.path.join(HERE, "known_differences.txt"))
    # Not /tmp: it is often a tmpfs, on which there is nothing to preallocate.
    private = tempfile.mkdtemp(prefix="joj-tcl-", dir=os.environ.get("JOJ_TEST_DIR", "/var/tmp"))
    os.chmod(private, 0o755)
    suite, pool = None, None
    # Ended from outside, it still kills what it started and removes its files.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        suite = Suite(private, timeout_seconds=200 if level == "test" else 3600)
        comparison = Comparison(suite, known)
        jobs = plan(level, sys.argv[2:], suite)
        pool = ThreadPoolExecutor(PARALLEL)
        for (setup, file), outcome in zip(jobs, pool.map(lambda job: suite.run(*job), jobs)):
            if setup.mode == "stock":
                comparison.stock[setup.page_size, file] = outcome
            else:
                comparison.judge(setup, file, outcome)
        comparison.judge_known()
        print(f"{comparison.passed} passed, {comparison.failed} failed, 0 skipped")
        sys.exit(1 if comparison.failed else 0)
    finally:
        if pool:
            pool.shutdown(wait=False, cancel_futures=True)
        for leader in list(suite.running if suite else []):
            kill_session(leader)
        shutil.rmtree(private, ignore_errors=True)


if __name__ == "__main__":
    main()
