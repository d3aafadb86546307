#!/usr/bin/env python3
"""Goal: a replay takes as long as the program itself, on the recorded device and on others, and writes as much.

Method: both in the emulated machine, whose clock counts instructions. Each program is run and recorded on every device and filesystem. The
first of these recordings is replayed on all of them, and each on its own. The truth is the time from the first call to the last in the
recording of the program there. Each program works in a directory that is on the disk before it begins, as a replay does: in a filesystem's
root, inodes lie elsewhere. By hand, never in `make test`: it takes ten minutes.

    tests/replay_time.py [--joj target/release/joj] [--out DIR] [--filesystem ext4,f2fs] [--device galaxy-s5-emmc,transcend]
"""
import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys

PLACE = "/data/app/files"

SAVES = """
import os
for number in range(60):
    with open("new", "wb") as file:
        file.write(bytes(20000)); file.flush(); os.fsync(file.fileno())
    os.rename("new", "settings")
    os.fsync(os.open(".", os.O_RDONLY))
    sum(range(20000))
"""
LOADS = """
import sqlite3
db = sqlite3.connect("app.db", isolation_level=None)
db.execute("PRAGMA journal_mode=WAL"); db.execute("PRAGMA synchronous=FULL"); db.execute("CREATE TABLE t(a INTEGER PRIMARY KEY, b, c)")
db.execute("BEGIN"); [db.execute("INSERT INTO t(b, c) VALUES (?, ?)", (n, "x" * 300)) for n in range(3000)]; db.execute("COMMIT")
for n in range(100):
    db.execute("UPDATE t SET b = b + 1 WHERE a = ?", (n * 29 + 1,)); db.execute("SELECT count(*) FROM t WHERE b > 9").fetchall()
"""


def programs(joj, python):
    mobibench = [joj, "mobibench", "-p", PLACE]
    return {
        "INSERT, DELETE": mobibench + ["-d", "0", "-n", "200", "-j", "0"],
        "INSERT, WAL": mobibench + ["-d", "0", "-n", "200", "-j", "3"],
        "UPDATE, TRUNCATE": mobibench + ["-d", "1", "-n", "200", "-j", "1"],
        "random writes, fsync": mobibench + ["-f", "1024", "-r", "4", "-a", "1", "-y", "2"],
        "files saved": [python, "-c", SAVES],
        "a load, updates, reads": [python, "-c", LOADS],
    }


def run(words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(words)}: {done.returncode}\n{done.stderr}")


def replayed(joj, recording, devices, filesystems, out):
    lists = ["--device", ",".join(devices), "--filesystem", ",".join(filesystems)]
    run([joj, "replay", str(recording), "--lab", *lists, "--json", str(out)])
    rows = json.loads(out.read_text())["rows"]
    return {(row["filesystem"], row["device"]): row["outcome"]["replayed"] for row in rows}


def blocks(device):
    return {"kib": device["written_bytes"] / 1024, "flushes": device["flushes"]}


def executed(joj, lists, out, words):
    """What the device got of a command, for each pair."""
    run([joj, "lab", "exec", *lists, "--json", str(out), *words])
    rows = json.loads(out.read_text())["rows"]
    return {(row["filesystem"], row["device"]): blocks(row["outcome"]["ran"]["device"]) for row in rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joj", default="target/release/joj")
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--out", default="replay_time", type=pathlib.Path)
    parser.add_argument("--filesystem", default="ext4,f2fs")
    parser.add_argument("--device", default="galaxy-s5-emmc,transcend")
    options = parser.parse_args()
    DEVICES, FILESYSTEMS = options.device.split(","), options.filesystem.split(",")
    joj = str(pathlib.Path(options.joj).resolve())
    options.out.mkdir(exist_ok=True)
    pairs = [(filesystem, device) for device in DEVICES for filesystem in FILESYSTEMS]
    same, other, table = [], [], {}
    lists = ["--device", ",".join(DEVICES), "--filesystem", ",".join(FILESYSTEMS)]
    # A replay counts from its first call on; the program's count has the making of its directory as well.
    directory = executed(joj, lists, options.out / "directory.json", ["--", "/bin/sh", "-c", f"mkdir -p {PLACE} && sync"])
    print("| program | " + " | ".join(f"{filesystem}, {device}" for filesystem, device in pairs) + " |")
    print("|" + "---|" * (len(pairs) + 1))
    for number, (name, program) in enumerate(programs(joj, options.python).items()):
        app = f"{number}.joj"
        record = [joj, "record", "-o", f"/tmp/{app}", "--", *program]
        begin = ["/bin/sh", "-c", f"mkdir -p {PLACE} && sync && cd {PLACE} && exec {shlex.join(record)}"]
        take = ["--take", f"/tmp/{app}", "--take-to", str(options.out)]
        by_program = executed(joj, lists, options.out / f"program-{number}.json", [*take, "--", *begin])
        recordings = {pair: options.out / f"{pair[0]}-{pair[1]}-{app}" for pair in pairs}
        own = {}
        for pair in pairs:
            out = options.out / f"own-{pair[0]}-{pair[1]}-{number}.json"
            own[pair] = replayed(joj, recordings[pair], [pair[1]], [pair[0]], out)[pair]
        crossed = replayed(joj, recordings[pairs[0]], DEVICES, FILESYSTEMS, options.out / f"crossed-{number}.json")
        cells = []
        for pair in pairs:
            truth = own[pair]["recorded_elapsed_ns"]
            at_home, from_first = own[pair]["elapsed_ns"] / truth - 1, crossed[pair]["elapsed_ns"] / truth - 1
            same.append(abs(at_home))
            if pair != pairs[0]:
                other.append(abs(from_first))
            program_blocks, replay_blocks = by_program[pair], blocks(own[pair]["device"])
            program_blocks = {what: number - directory[pair][what] for what, number in program_blocks.items()}
            kib = replay_blocks["kib"] / program_blocks["kib"] - 1
            flushes = replay_blocks["flushes"] - program_blocks["flushes"]
            cells.append(f"{truth / 1e9:.3f} s: {at_home:+.1%}, {from_first:+.1%}; KiB {kib:+.1%}, flushes {flushes:+}")
            differ = sum(calls["differ"] for calls in own[pair]["by_call"].values())
            table[f"{name}, {pair[0]}, {pair[1]}"] = {
                "truth_ns": truth, "same": at_home, "from_first": from_first,
                "program": program_blocks, "replay": replay_blocks, "calls": own[pair]["calls"], "differ": differ,
            }
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    for what, errors in (("on the recorded device", same), ("on another", other)):
        print(f"{what}: mean {statistics.mean(errors):.1%}, median {statistics.median(errors):.1%}, worst {max(errors):.1%}")
    (options.out / "summary.json").write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
