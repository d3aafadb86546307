#!/usr/bin/env python3
"""How strong waldio's tests are: a seeded sample of mutants of what writes, flushes, locks and checkpoints, and which tests notice.

    tests/mutants.py [--sample 100] [--seed 1] [--place DIRECTORY] [--list]

A mutant is one change that cargo-mutants makes to the source: another operator, a function that returns at once. The sample is
worked on in rounds, each with more tests than the one before, and a round takes only those that none noticed so far. Works on a
copy of the last commit in DIRECTORY (default: one for each commit, below the target directory), which is kept: a round that was
done is not run again. Two hours or more on 2 cores. Prints those that nobody noticed; the last line counts.
"""

import argparse
import glob
import os
import random
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))


def tests_of(names):
    """Arguments of cargo that choose these test programs."""
    return [word for name in names.split() for word in ("--test", name)]


# What writes, flushes, locks and checkpoints, below crates/.
FILES = """
waldio/src: connection/* connection/handle/* connection/log_file/* database/* checkpoint/* write_lock/* write_lock/*/* durability/*
 durability/flush/* log/*
waldio/src/sqlite/vfs: checkpoint_locks database_sync embedding last_close log_methods main_file/* taking_back waiter
waldio/src/ffi: kernel/fork_word kernel/lock_probe kernel/shared_page wal_index
blockio/src: aligned real/*
"""
# Bugs that are planted on purpose, text for people, and what unit tests are made of.
WITHOUT = r"planted|impl (fmt::)?(Debug|Display)|tests::"

# Name, features, what of the tests, and seconds after which a test that hangs has noticed. The crash tests look at fewer states
# first: most of what they would notice shows at once. "quick" takes tests of a few seconds.
FEW = {"CRASH_EXTRA": "20", "CRASH_SAMPLES": "2", "CRASH_GROUP_LENGTH": "2", "GENERATOR_PROGRAMS": "15"}
CRASHES = "crash crash_planted"
QUICK = """real_failed_commit real_files real_last_close real_probe real_options real_delayed_flush real_durable_reads real_group
    real_convert real_embedded crash_planted generator_named"""
ROUNDS = [
    ("unit", "waldio/planted-bugs", ["--lib"], {}, 60),
    ("quick", "waldio/planted-bugs", tests_of(QUICK), {}, 300),
    ("few", "waldio/planted-bugs", tests_of(CRASHES), FEW, 400),
    ("real", "waldio/planted-bugs", tests_of("real_* generator_named generator_real"), {}, 600),
    ("model", "waldio/model,waldio/planted-bugs", tests_of("model_group"), {}, 300),
    ("all", "waldio/planted-bugs", tests_of(CRASHES), {}, 1200),
]


def chosen_files():
    """Paths of FILES, as cargo-mutants takes them."""
    files, folder = [], ""
    for word in FILES.split():
        if word.endswith(":"):
            folder = word[:-1]
        else:
            files.append(f"crates/{folder}/{word}.rs")
    if gone := [file for file in files if not glob.glob(os.path.join(ROOT, file))]:
        sys.exit(f"FILES names what is not there: {' '.join(gone)}")
    return files


def list_mutants(tree):
    """Names of all mutants of the files below `tree`."""
    command = ["cargo", "mutants", "--list", "--colors", "never", "--workspace", "--exclude-re", WITHOUT]
    command += [word for file in chosen_files() for word in ("--file", file)]
    listed = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        how = "cargo install cargo-mutants --version 25.3.1 --locked; later ones do not filter all mutants by name"
        sys.exit(f"cargo mutants --list fails ({how}): {listed.stderr.strip()}")
    return listed.stdout.splitlines()


def copy(place):
    """The last commit's tree in a directory of its own."""
    tree = os.path.join(place, "tree")
    if not os.path.isdir(tree):
        subprocess.run(["git", "clone", "--quiet", ROOT, tree], check=True)
    return tree


def read_names(path):
    """Lines of a file that cargo-mutants wrote, or none."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as lines:
        return lines.read().splitlines()


def play(place, tree, round_, mutants):
    """Runs one round on `mutants`; a list for each of the ways in which one ends."""
    name, features, arguments, settings, timeout_seconds = round_
    output = os.path.join(place, name)
    results = os.path.join(output, "mutants.out")
    if mutants and not os.path.exists(os.path.join(output, "done")):
        pattern = "^(" + "|".join(re.escape(mutant).replace("/", r"\/") for mutant in mutants) + ")$"
        command = [
            "cargo", "mutants", "--in-place", "--no-shuffle", "--no-times", "--colors", "never", "--workspace", "--features", features,
            "--test-package", "waldio,blockio" if name == "unit" else "waldio", "--timeout", str(timeout_seconds), "--re", pattern,
            "--output", output, *(f"--cargo-arg={word}" for word in arguments),
        ]  # fmt: skip
        os.makedirs(output, exist_ok=True)
        environment = {**os.environ, **settings, "CARGO_TARGET_DIR": os.path.join(place, "target")}
        status = subprocess.run(command, cwd=tree, env=environment, check=False).returncode
        # 2: some were missed; 3: some hung.
        if status not in (0, 2, 3):
            sys.exit(f"round {name}: cargo mutants ended with status {status}; {results} has its logs")
        with open(os.path.join(output, "done"), "w", encoding="utf-8") as file:
            file.write("\n".join(mutants))
    ends = {end: read_names(os.path.join(results, f"{end}.txt")) for end in ("caught", "timeout", "missed", "unviable")}
    if sorted(sum(ends.values(), [])) != sorted(mutants):
        sys.exit(f"round {name}: {results} tells of other mutants; remove {place} to begin again")
    return ends


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=100, help="how many mutants, those among them that do not compile (default: 100)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (default: 1)")
    parser.add_argument("--place", help="where the copy and the results are kept")
    parser.add_argument("--list", action="store_true", help="prints the sample and runs nothing")
    options = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    place = os.path.abspath(options.place or os.path.join(TARGET, f"mutants-{commit}-{options.sample}-{options.seed}"))
    tree = ROOT if options.list else copy(place)
    everyone = sorted(list_mutants(tree))
    sample = random.Random(options.seed).sample(everyone, min(options.sample, len(everyone)))
    print(f"{len(sample)} of {len(everyone)} mutants, seed {options.seed}", flush=True)
    if options.list:
        print("\n".join(sample))
        return
    left, unviable, lines = sample, 0, []
    for round_ in ROUNDS:
        ends = play(place, tree, round_, left)
        noticed = ends["caught"] + ends["timeout"]
        unviable += len(ends["unviable"])
        lines.append(f"{round_[0]}: {len(noticed)} of {len(left) - len(ends['unviable'])} noticed, {len(ends['timeout'])} by hanging")
        left = ends["missed"]
    print("\n".join(lines + [f"missed: {mutant}" for mutant in left]))
    viable = len(sample) - unviable
    print(f"{viable - len(left)} of {viable} noticed; {unviable} did not compile")


if __name__ == "__main__":
    main()
