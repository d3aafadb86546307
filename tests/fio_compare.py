#!/usr/bin/env python3
"""Goal: joj bench --io and joj device probe measure what fio measures.

Method: each job that both can do is run by joj and by fio in turn, right after one another, in so many rounds; every other round fio is
first. What counts is the median of the rounds' ratios. By hand, never in `make test`: it asserts nothing about time.

    tests/fio_compare.py --joj target/release/joj --dir DIR [--rounds 9] [--only WORDS] [--gate COMMAND] [--json FILE]
    tests/fio_compare.py --joj target/release/joj --lab galaxy-s5-emmc,ext4 [--only WORDS] [--json FILE]

With --lab each job has an emulated machine of its own, whose clock counts instructions: one round, and nothing disturbs it.
"""

import argparse
import json
import os
import pathlib
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile

RW = {"write": "write", "randwrite": "randwrite", "append": "write", "read": "read", "randread": "randread"}
WAYS = {
    "none": [],
    "osync": ["--sync=sync"],
    "odsync": ["--sync=dsync"],
    "fsync": ["--fsync=1"],
    "fdatasync": ["--fdatasync=1"],
    "direct": ["--direct=1"],
    "direct-osync": ["--direct=1", "--sync=sync"],
    "direct-odsync": ["--direct=1", "--sync=dsync"],
    "polled": ["--direct=1", "--ioengine=io_uring", "--hipri=1"],
    "mmap": ["--ioengine=mmap"],
    "mmap-sync": ["--ioengine=mmap", "--fsync=1"],
}
LAZY = ("none", "direct", "polled", "mmap")
READ_WAYS = ("none", "direct", "polled", "mmap")
PROBE_RANGE = 64 << 20
PROBE_REQUESTS = 2048


# The device and the file system of the emulated machine; None on this machine.
LAB = None


def file_bytes(job, way):
    """Enough for fio's clock, whose unit is a millisecond, and little enough for a slow disk."""
    if LAB:
        return 64 << 20 if way in LAZY and way != "direct" else 8 << 20
    if way in ("direct", "polled") or (job == "randread" and way == "none"):
        return 32 << 20
    return 256 << 20 if way in LAZY else 16 << 20


def run_in_lab(words, program):
    """What a command prints to its file /tmp/out in an emulated machine."""
    device, filesystem = LAB
    with tempfile.TemporaryDirectory(prefix="fio-compare-") as kept:
        take = ["--take", "/tmp/out", "--take-to", kept]
        lab = [program, "lab", "exec", "--device", device, "--filesystem", filesystem] + take
        done = subprocess.run(lab + ["--", "/bin/sh", "-c", f"{shlex.join(words)} > /tmp/out"], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(words)}: exit code {done.returncode}: {done.stderr}{done.stdout}")
        with open(os.path.join(kept, "out"), encoding="utf-8") as file:
            text = file.read()
        return json.loads(text[text.index("{"):])


def run(words, arguments):
    if LAB:
        return run_in_lab(words, arguments.joj)
    gate = arguments.gate
    done = subprocess.run(gate + words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: exit code {done.returncode}: {done.stderr}{done.stdout}")
    # fio may say something before its JSON.
    return json.loads(done.stdout[done.stdout.index("{"):])


def fio(place, arguments, job, record, options):
    """Bytes a second of one fio job on the file `fio` in `place`."""
    # No hint to the kernel, no reserved space, the same bytes in each record, the file whole and out of the page cache at the start: as
    # joj has it. Random as joj's is: fio's own choice takes the next free record where one was read before, and the kernel then reads
    # ahead of neighbours (3,923 requests for 8,192 records; 6,074 with this one, joj 5,905 to 6,263).
    words = ["fio", "--name=job", f"--filename={place}/fio", f"--rw={RW[job]}", f"--bs={record}", "--ioengine=psync", "--fallocate=none",
             "--fadvise_hint=0", "--invalidate=1", "--scramble_buffers=0", "--random_generator=lfsr",
             "--output-format=json"]
    if job == "append":
        words += ["--create_on_open=1", "--unlink=1"]
    else:
        words += ["--overwrite=1"]
    if "read" not in job:
        words += ["--end_fsync=1"]
    found = run(words + options, arguments)["jobs"][0]
    return found["read" if "read" in job else "write"]["bw_bytes"]


def bench_pair(arguments, place, job, way):
    """joj bench --io and fio on the same job: two functions that give bytes a second; None where joj refuses it."""
    size = file_bytes(job, way)

    def joj_rate():
        words = [arguments.joj, "bench", place, "--io", "--runs", "1", "--jobs", job, "--ways", way, "--file", str(size), "--seconds", "600",
                 "--json", "-"]
        row = run(words, arguments)["io"][0]
        return row["bytes_per_s"]["median"] if row.get("bytes_per_s") else None

    def fio_rate():
        rate = fio(place, arguments, job, 4096, [f"--size={size}"] + WAYS[way])
        for name in [] if LAB else os.listdir(place):
            os.remove(os.path.join(place, name))
        return rate

    return joj_rate, fio_rate


def probe_pair(arguments, place, record):
    """joj device probe and fio over one range: two functions that give the four rates."""
    jobs = ("write", "read", "randwrite", "randread")

    def joj_rates():
        words = [arguments.joj, "device", "probe", place, "--range-min", str(PROBE_RANGE), "--range-max", str(PROBE_RANGE), "--record",
                 str(record), "--requests", str(PROBE_REQUESTS), "--runs", "1", "--seconds", "600", "--json", "-"]
        cells = {cell["key"]["job"]: cell["bytes_per_s"]["median"] for cell in run(words, arguments)["cells"]}
        return [cells[job] for job in jobs]

    def fio_rates():
        count = min(PROBE_REQUESTS, PROBE_RANGE // record)
        rates = []
        for job in jobs:
            limit = [f"--io_size={count * record}"] if job.startswith("rand") else []
            rates.append(fio(place, arguments, job, record, [f"--size={PROBE_RANGE}", "--direct=1"] + limit))
        if not LAB:
            os.remove(os.path.join(place, "fio"))
        return rates

    return jobs, joj_rates, fio_rates


def in_turn(rounds, first, second):
    """What both give, round by round; the second goes first in odd rounds. None where the first refuses."""
    pairs = []
    for number in range(rounds):
        if number % 2:
            theirs = second()
            pairs.append((first(), theirs))
        else:
            ours = first()
            if ours is None:
                return None
            pairs.append((ours, second()))
    return pairs


def line(name, pairs):
    """A line of the table, and what it is made of."""
    ratios = sorted(ours / theirs for ours, theirs in pairs)
    ours, theirs = (statistics.median(pair[index] for pair in pairs) for index in (0, 1))
    # The interval of order statistics that joj has, too: of nine, the second and the last but one.
    trim = 1 if len(ratios) >= 9 else 0
    low, high, median = ratios[trim], ratios[-1 - trim], statistics.median(ratios)
    print(f"| {name} | {ours / 1024:,.0f} | {theirs / 1024:,.0f} | {median:.3f} | {low:.2f} to {high:.2f} |", flush=True)
    return {"job": name, "joj_bytes_per_s": [pair[0] for pair in pairs], "fio_bytes_per_s": [pair[1] for pair in pairs], "ratio": median}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joj", default="target/release/joj")
    parser.add_argument("--dir", default=".")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", help="jobs whose line has one of these words, between commas")
    parser.add_argument("--gate", default="", help="a command that each run is started through")
    parser.add_argument("--json", help="all figures")
    parser.add_argument("--lab", metavar="DEVICE,FILESYSTEM", help="in the emulated machine")
    arguments = parser.parse_args()
    arguments.gate = arguments.gate.split()
    global LAB
    if arguments.lab:
        LAB, arguments.rounds, arguments.joj = tuple(arguments.lab.split(",")), 1, str(pathlib.Path(arguments.joj).resolve())
    if shutil.which("fio") is None:
        print("SKIPPED fio_compare: fio is missing (apt-get install fio)")
        return
    wanted = lambda name: any(word in name for word in arguments.only.split(","))
    figures = []
    print("| job | joj KiB/s | fio KiB/s | joj / fio | interval |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="fio-compare-", dir=arguments.dir) as place:
        place = "/data" if LAB else place
        for job in RW:
            for way in READ_WAYS if "read" in job else WAYS:
                name = f"bench {job}, {way}"
                if not wanted(name) or (job == "append" and way in ("polled", "mmap", "mmap-sync")):
                    continue
                pairs = in_turn(arguments.rounds, *bench_pair(arguments, place, job, way))
                if pairs is None:
                    print(f"| {name} | refused here | | | |")
                else:
                    figures.append(line(name, pairs))
        for record in (4096, 131072):
            if not wanted(f"probe {record // 1024}k"):
                continue
            jobs, ours, theirs = probe_pair(arguments, place, record)
            rounds = in_turn(arguments.rounds, ours, theirs)
            for index, job in enumerate(jobs):
                pairs = [(ours[index], theirs[index]) for ours, theirs in rounds]
                figures.append(line(f"probe {job}, {record // 1024} KiB", pairs))
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(figures, file)


main()
