#!/usr/bin/env python3
"""Goal: what applications cost in each journal mode, and that a recording made in any mode tells what any other costs.

Method: each recording is replayed as each mode in the emulated machine, on each filesystem, at once and with the user's think time. On a
directory of this machine it is recorded as each mode (`--record`). Each of these recordings is replayed as each mode. Calls for durability
and bytes have to be those of the recording that was made in that mode. The emulated machine has the commits per second: there the truth is
the first replay in that mode. By hand, never in `make test`: with two applications it takes twenty minutes.

    tests/replay_modes.py --directory /mnt/card facebook=facebook.joj twitter=twitter.joj
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

MODES = ["delete", "truncate", "persist", "wal", "waldio"]


# waldio as it is but for the space ahead of need: how much of that a short run writes is a matter of when its thread runs. In the emulated
# machine it runs at the same moments each time.
STRICT = {"WALDIO_STRICT": "1"}


def run(words, more_environment=None):
    environment = {**os.environ, **(more_environment or {})}
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: {done.returncode}\n{done.stderr}")
    return done.stdout


class Bench:
    def __init__(self, options):
        self.options = options

    def words(self, recording, mode, order):
        words = [self.options.joj, "replay", recording, "--as", mode, "--order", order, "--sqlite", self.options.sqlite, "--json", "-"]
        return words + (["--waldio", self.options.waldio] if mode == "waldio" and self.options.waldio else [])

    def here(self, recording, mode, *more):
        return json.loads(run(self.words(recording, mode, "fast") + [self.options.directory, *more], STRICT))

    def lab(self, recording, mode, order, filesystems):
        lists = ["--lab", "--device", self.options.device, "--filesystem", ",".join(filesystems)]
        result = json.loads(run(self.words(recording, mode, order) + lists))
        self.machine = result["machine"]
        return {row["filesystem"]: row["outcome"]["replayed"]["replayed"] for row in result["rows"]}


def syncs(row):
    return sum(row["syncs"].values())


def of_cell(found, own):
    return {
        "commits": found["commits"] - own["commits"],
        "syncs": syncs(found) - syncs(own),
        "bytes": found["written_bytes"] / own["written_bytes"] - 1,
    }


def costs(bench, name, recording, filesystems):
    rows = {order: {mode: bench.lab(recording, mode, order, filesystems) for mode in MODES} for order in ("fast", "dependent")}
    print(f"\n| {name} | commits | syncs | KiB | " + " | ".join(f"{fs}: KiB, s, with think time s" for fs in filesystems) + " |")
    print("|" + "---|" * (4 + len(filesystems)))
    for mode in MODES:
        fast, dependent = rows["fast"][mode], rows["dependent"][mode]
        first = fast[filesystems[0]]
        cells = [
            f"{fast[fs]['device']['written_bytes'] / 1024:,.0f}, {fast[fs]['elapsed_ns'] / 1e9:.3f},"
            f" {dependent[fs]['commit_times']['sum_ns'] / 1e9:.3f}"
            for fs in filesystems
        ]
        counted = f"{first['commits']} | {syncs(first)} | {first['written_bytes'] / 1024:,.0f}"
        print(f"| {mode} | {counted} | {' | '.join(cells)} |", flush=True)
    return rows


def each_as_each(bench, name, recording, truth, filesystem):
    out, recorded, own, cells = bench.options.out, {}, {}, {}
    for mode in MODES:
        recorded[mode] = out / f"{name}-{mode}.joj"
        bench.here(recording, mode, "--record", recorded[mode])
    for source in MODES:
        for mode in MODES:
            result = bench.here(recorded[source], mode)
            cells[source, mode] = {"replayed": result["replayed"]}
            if source == mode:
                own[mode] = result["recorded"]
    print(f"\n| {name}: recorded as | " + " | ".join(f"as {mode}" for mode in MODES) + " |")
    print("|" + "---|" * (1 + len(MODES)))
    for source in MODES:
        texts = []
        for mode in MODES:
            cell = cells[source, mode]
            cell["off"] = of_cell(cell["replayed"], own[mode])
            cell["lab"] = bench.lab(recorded[source], mode, "fast", [filesystem])[filesystem]
            cell["lab_off"] = of_cell(cell["lab"], truth[mode])
            cell["lab_off"]["commits_per_s"] = cell["lab"]["commits_per_s"] / truth[mode]["commits_per_s"] - 1
            off, lab_off = cell["off"], cell["lab_off"]
            texts.append(
                f"{off['syncs']:+}, {off['bytes']:+.2%}; lab {lab_off['syncs']:+}, {lab_off['bytes']:+.2%},"
                f" {lab_off['commits_per_s']:+.1%}"
            )
        print(f"| {source} | " + " | ".join(texts) + " |", flush=True)
    return {"own": own, "cells": {f"{source} as {mode}": cell for (source, mode), cell in cells.items()}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", nargs="+", metavar="NAME=RECORDING")
    parser.add_argument("--directory", required=True, help="on a disk of this machine, ext4 for instance")
    parser.add_argument("--joj", default="target/release/joj")
    parser.add_argument("--sqlite", default="system")
    parser.add_argument("--waldio", help="the extension [default: libwaldio.so beside joj]")
    parser.add_argument("--out", default="replay_modes", type=pathlib.Path)
    parser.add_argument("--filesystem", default="ext4,f2fs")
    parser.add_argument("--device", default="galaxy-s5-emmc")
    options = parser.parse_args()
    options.out.mkdir(exist_ok=True)
    bench, result = Bench(options), {}
    filesystems, recordings = options.filesystem.split(","), dict(named.split("=", 1) for named in options.recordings)
    for name, recording in recordings.items():
        result[name] = {"costs": costs(bench, name, recording, filesystems)}
    for name, recording in recordings.items():
        truth = {mode: row[filesystems[0]] for mode, row in result[name]["costs"]["fast"].items()}
        result[name]["each_as_each"] = each_as_each(bench, name, recording, truth, filesystems[0])
    summary = {"device": options.device, "machine": bench.machine, "recordings": result}
    (options.out / "summary.json").write_text(json.dumps(summary, indent=1))


if __name__ == "__main__":
    main()
