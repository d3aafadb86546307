#!/usr/bin/env python3
"""Goal: what `joj whatif` forecasts of a configuration is what the program takes when it runs in that configuration itself.

Method: both in the emulated machine, whose clock counts instructions. Each program runs there in each configuration, without a recorder: that
is the truth. In the same machine it is recorded as it is, and `joj whatif` forecasts from the recording. A run begins in a directory that is on
the disk, on the same empty filesystem, and what a run left is removed and made durable before the next. By hand, never in `make test`: it takes
a quarter of an hour.

    tests/whatif_truth.py [--joj target/release/joj] [--out DIR] [--device galaxy-s5-emmc] [--filesystem ext4] [--only TEXT]
"""
import argparse
import ctypes
import json
import os
import pathlib
import shutil
import statistics
import struct
import subprocess
import sys
import time

CONFIGURATIONS = ["recorded", "all-in-ram", "no-sync", "wal", "waldio", "waldio-bounded", "wal-normal"]
# A connection in the mode that the configuration asks for.
HEAD = """
import os, sqlite3, threading, time
mode, waldio = os.environ["MODE"], os.environ["WALDIO"]
if mode.startswith("waldio"):
    loader = sqlite3.connect(":memory:"); loader.enable_load_extension(True); loader.load_extension(waldio)
def connect(name):
    db = sqlite3.connect(name, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA journal_mode=" + ("DELETE" if mode == "recorded" else "WAL"))
    db.execute("PRAGMA synchronous=" + ("NORMAL" if mode == "wal-normal" else "FULL"))
    return db
"""
INSERTS = HEAD + """
db = connect("app.db"); db.execute("CREATE TABLE t(a INTEGER PRIMARY KEY, b, c)")
for n in range(200): db.execute("INSERT INTO t(b, c) VALUES (?, ?)", (n, "x" * 100))
db.close()
"""
PAUSES = HEAD + """
db = connect("app.db"); db.execute("CREATE TABLE t(a INTEGER PRIMARY KEY, b, c)")
for n in range(100):
    db.execute("INSERT INTO t(b, c) VALUES (?, ?)", (n, "x" * 100)); time.sleep(0.002)
db.close()
"""
UPDATES = HEAD + """
db = connect("app.db"); db.execute("CREATE TABLE t(a INTEGER PRIMARY KEY, b, c)")
db.execute("BEGIN"); [db.execute("INSERT INTO t(b, c) VALUES (?, ?)", (n, "x" * 300)) for n in range(3000)]; db.execute("COMMIT")
for n in range(100):
    db.execute("UPDATE t SET b = b + 1 WHERE a = ?", (n * 29 + 1,)); db.execute("SELECT count(*) FROM t WHERE b > 9").fetchall()
db.close()
"""
LAUNCH = HEAD + """
os.mkdir("cache")
for n in range(40):
    with open("cache/%d" % n, "wb") as file: file.write(bytes(20000))
    sum(range(30000))
for name in ("settings.db", "history.db"):
    db = connect(name); db.execute("CREATE TABLE t(a INTEGER PRIMARY KEY, b)")
    for n in range(20): db.execute("INSERT INTO t(b) VALUES (?)", ("x" * 200,)); sum(range(20000))
    db.close()
"""
SAVES = HEAD + """
db = connect("index.db"); db.execute("CREATE TABLE t(a INTEGER PRIMARY KEY, b)")
for number in range(40):
    with open("new", "wb") as file:
        file.write(bytes(20000)); file.flush(); os.fsync(file.fileno())
    os.rename("new", "save%d" % number)
    db.execute("INSERT INTO t(b) VALUES (?)", ("save%d" % number,))
db.close()
"""
THREADS = HEAD + """
def log():
    with open("log", "wb", buffering=0) as file:
        for n in range(100): file.write(bytes(500)); os.fdatasync(file.fileno()); time.sleep(0.001)
db = connect("app.db"); db.execute("CREATE TABLE t(a INTEGER PRIMARY KEY, b)")
thread = threading.Thread(target=log); thread.start()
for n in range(80): db.execute("INSERT INTO t(b) VALUES (?)", ("x" * 100,))
thread.join(); db.close()
"""
PROGRAMS = {
    "inserts": INSERTS,
    "inserts, 2 ms between": PAUSES,
    "a load, updates, reads": UPDATES,
    "a launch: caches, two databases": LAUNCH,
    "files saved, an index": SAVES,
    "two threads: a log, inserts": THREADS,
}


def ignore_syncs():
    """Between fork and exec: a seccomp filter that answers 0 to calls for durability."""
    calls = {"x86_64": (74, 75, 277, 26, 306, 162)}[os.uname().machine]
    code = struct.pack("HBBI", 0x20, 0, 0, 0)
    for number in calls:
        code += struct.pack("HBBI", 0x15, 0, 1, number) + struct.pack("HBBI", 0x06, 0, 0, 0x0005_0000)
    code += struct.pack("HBBI", 0x06, 0, 0, 0x7FFF_0000)
    buffer = ctypes.create_string_buffer(code)
    filter = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer)))
    if ctypes.CDLL(None, use_errno=True).prctl(22, 2, ctypes.byref(filter), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


def in_guest(joj, waldio, program):
    """All runs of one program; prints how long each took."""
    taken = {}
    for configuration in [*CONFIGURATIONS, "again", "record"]:
        above = "/tmp" if configuration == "all-in-ram" else "/data"
        place = pathlib.Path(above, "app", "files")
        place.mkdir(parents=True)
        os.sync()
        is_mode = configuration.startswith("wal")
        environment = dict(os.environ, MODE=configuration if is_mode else "recorded", WALDIO=waldio)
        if configuration == "waldio-bounded":
            environment["WALDIO_DURABILITY"] = "bounded"
        words = [sys.executable, "-c", PROGRAMS[program]]
        if configuration == "record":
            words = [joj, "record", "-o", "/tmp/app.joj", "--"] + words
        filter = ignore_syncs if configuration == "no-sync" else None
        began = time.monotonic_ns()
        subprocess.run(words, cwd=place, env=environment, preexec_fn=filter, check=True)
        taken[configuration] = time.monotonic_ns() - began
        shutil.rmtree(place.parent)
        os.sync()
    print(json.dumps(taken))


def run(words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joj", type=pathlib.Path, default=pathlib.Path("target/release/joj"))
    parser.add_argument("--python", default="/usr/bin/python3", help="one whose sqlite3 loads extensions")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("whatif-truth"))
    parser.add_argument("--device", default="galaxy-s5-emmc")
    parser.add_argument("--filesystem", default="ext4")
    parser.add_argument("--only", default="")
    parser.add_argument("--in-guest", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.in_guest:
        return in_guest(*options.in_guest)
    options.out.mkdir(parents=True, exist_ok=True)
    joj = str(options.joj.resolve())
    waldio = str(options.joj.resolve().parent / "libwaldio.so")
    disk = ["--device", options.device, "--filesystem", options.filesystem]
    errors, table = [], {}
    print("| program | " + " | ".join(CONFIGURATIONS) + " |\n|" + "---|" * (len(CONFIGURATIONS) + 1))
    for number, program in enumerate(PROGRAMS):
        if options.only not in program:
            continue
        out = options.out / str(number)
        out.mkdir(exist_ok=True)
        own = [options.python, str(pathlib.Path(__file__).resolve()), "--in-guest", joj, waldio, program]
        said = run([joj, "lab", "exec", *disk, "--take", "/tmp/app.joj", "--take-to", str(out), "--", *own])
        found = [line for line in said.splitlines() if line.startswith("{")]
        if len(found) != 1:
            sys.exit(f"{program}: no times: {said}")
        taken = json.loads(found[0])
        forecast = out / "whatif.json"
        run([joj, "whatif", str(out / "app.joj"), *disk, "--sqlite", "system", "--json", str(forecast)])
        result = json.loads(forecast.read_text())["disks"][0]["outcome"]["measured"]
        rows = {row["configuration"]: row["outcome"] for row in result["rows"]}
        cells, own_errors = [], {}
        for configuration in CONFIGURATIONS:
            found = rows[configuration].get("measured")
            if found is None:
                cells.append(f"{taken[configuration] / 1e9:.3f} s: {rows[configuration]}")
                continue
            error = found["elapsed_ns"]["median"] / taken[configuration] - 1
            own_errors[configuration] = error
            cells.append(f"{taken[configuration] / 1e9:.3f} s: {error:+.1%}")
        errors += own_errors.values()
        again = taken["again"] / taken["recorded"] - 1
        recorder = result["recorded_ns"] / taken["again"] - 1
        table[program] = {"taken": taken, "errors": own_errors, "again": again, "recorder": recorder}
        print(f"| {program} | " + " | ".join(cells) + f" |  again {again:+.1%}, recorded {recorder:+.1%}", flush=True)
        (options.out / "summary.json").write_text(json.dumps(table, indent=1))
    sizes = [abs(error) for error in errors]
    print(f"{len(sizes)} forecasts: mean {statistics.mean(sizes):.1%}, median {statistics.median(sizes):.1%}, worst {max(sizes):.1%}")


if __name__ == "__main__":
    main()
