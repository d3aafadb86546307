#!/usr/bin/env python3
"""What `joj trace` costs a program that commits: rounds without, with eBPF and with tracefs, alternated.

    tests/trace_cost.py --joj target/release/joj [--rounds 9] [--commits 20000] [--loop] [--only bpf] [DIRECTORY]

Each round makes a database in DIRECTORY (with --loop: on an ext4 image that lies there) and commits one INSERT of 100 bytes
after another, WAL, synchronous=FULL. Printed for each way: the median of the rounds' commits/s and of their ratios to the round
without a capture; and, over all rounds, how long a commit took: the lower quantiles are those of commits that nothing else on the
machine disturbed. Needs root.
"""
import argparse
import json
import os
import resource
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

# The first commits make the log and the tables of the capture: they are not timed.
WARM_UP = 1_000
IMAGE_BYTES = 512 << 20
PERCENTS = [5, 10, 25, 50, 75]


def work(path, commits, report):
    """Commits, and writes down commits/s, microseconds of processor time per commit and how long each took."""
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    database.execute("CREATE TABLE t(a)")
    row = (b"x" * 100,)
    for _ in range(WARM_UP):
        database.execute("INSERT INTO t VALUES(?)", row)
    usage, ends = resource.getrusage(resource.RUSAGE_SELF), [time.perf_counter_ns()]
    for _ in range(commits):
        database.execute("INSERT INTO t VALUES(?)", row)
        ends.append(time.perf_counter_ns())
    after = resource.getrusage(resource.RUSAGE_SELF)
    used = after.ru_utime + after.ru_stime - usage.ru_utime - usage.ru_stime
    times_us = [(end - begin) / 1000 for begin, end in zip(ends, ends[1:])]
    with open(report, "w") as file:
        json.dump({"rate": commits * 1e9 / (ends[-1] - ends[0]), "cpu_us": used * 1e6 / commits, "us": times_us}, file)


def one(options, directory, backend):
    """One round; its report."""
    place = tempfile.mkdtemp(dir=directory)
    report = os.path.join(options.scratch, "report")
    command = [sys.executable, __file__, "--work", os.path.join(place, "a.db"), str(options.commits), report]
    if backend != "none":
        save = os.path.join(options.scratch, "trace.parquet")
        command = [options.joj, "trace", f"--backend={backend}", "--save", save, *options.option, "--", *command]
    start = time.perf_counter()
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{backend}: exit code {result.returncode}: {result.stderr}")
    shutil.rmtree(place)
    found = json.load(open(report))
    os.remove(report)
    lost = [line for line in result.stdout.splitlines() if "lost" in line]
    return {**found, "seconds": time.perf_counter() - start, "lost": lost}


def compare(options, directory):
    """All rounds, and what came of them."""
    backends = ["none", *(options.only or ["bpf", "tracefs"])]
    rounds = []
    for number in range(options.rounds):
        turn = number % len(backends)
        order = backends[turn:] + backends[:turn]
        rounds.append({backend: one(options, directory, backend) for backend in order})
        print("  ".join(f"{name} {found['rate']:.0f}/s {found['cpu_us']:.1f} us {found['seconds']:.1f} s"
                        for name, found in sorted(rounds[-1].items())), *rounds[-1][backends[1]]["lost"], flush=True)
    plain = quantiles(rounds, "none")
    for name in backends:
        rate = statistics.median(found[name]["rate"] for found in rounds)
        cpu_us = statistics.median(found[name]["cpu_us"] for found in rounds)
        ratios = sorted(found[name]["rate"] / found["none"]["rate"] for found in rounds)
        print(f"{name}: median {rate:.0f} commits/s, {cpu_us:.1f} us of processor time per commit, "
              f"ratio {statistics.median(ratios):.3f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")
        told = (f"p{percent} {time_us:.1f} us ({time_us / before_us - 1:+.1%})"
                for percent, time_us, before_us in zip(PERCENTS, quantiles(rounds, name), plain))
        print("    a commit takes", ", ".join(told))


def quantiles(rounds, name):
    """How long a commit took at most, of the quickest 5 %, 10 % .. of all rounds."""
    times_us = sorted(time_us for found in rounds for time_us in found[name]["us"])
    return [times_us[len(times_us) * percent // 100] for percent in PERCENTS]


def main():
    """The command line."""
    if sys.argv[1:2] == ["--work"]:
        return work(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joj", required=True)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--commits", type=int, default=20_000)
    parser.add_argument("--loop", action="store_true")
    parser.add_argument("--only", action="append", choices=["bpf", "tracefs"])
    parser.add_argument("--option", action="append", default=[], help="one more for joj, as --option=--device=vda")
    parser.add_argument("directory", nargs="?", default="/var/tmp")
    options = parser.parse_args()
    options.joj = os.path.abspath(options.joj)
    with tempfile.TemporaryDirectory(dir=options.directory) as scratch:
        options.scratch = scratch
        if not options.loop:
            return compare(options, scratch)
        image, mounted = os.path.join(scratch, "image"), os.path.join(scratch, "mounted")
        os.mkdir(mounted)
        with open(image, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, IMAGE_BYTES)
        subprocess.run(["mkfs.ext4", "-q", image], check=True)
        subprocess.run(["mount", "-o", "loop", image, mounted], check=True)
        try:
            compare(options, mounted)
        finally:
            subprocess.run(["umount", mounted], check=True)


if __name__ == "__main__":
    main()
