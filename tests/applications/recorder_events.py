#!/usr/bin/env python3
"""Goal: what waldio is worth to Home Assistant's recorder: bytes and flushes for each change of a sensor, on the disk and on a card.

Method: Home Assistant's core and recorder as they come from PyPI (recorder_home.py), with sensors that change ten times a second. Its
default commits every five seconds with synchronous=NORMAL; with `commit_interval: 0` it commits each change with FULL. waldio gets
in with LD_PRELOAD. `joj trace` counts what the program asks of the disk. The database must hold every change.
The card is emulated: `joj record` records both settings with stock SQLite, and `joj replay --lab --as` makes their commits on
it, through SQLite as it is and with waldio. Once for each side the recorder is killed: what stood in the database, as another process
read it, must be there.

    tests/applications/recorder_events.py --json recorder.json.gz      as root, a quarter of an hour
    tests/applications/recorder_events.py --quick                      checks that it works

Needs Home Assistant from PyPI, which it installs below target/applications: a minute or three the first time.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

import measuring
from measuring import Failure, Skip

HERE = pathlib.Path(__file__).resolve().parent
#: All of it, without which pip looks for versions that fit for minutes. The last Home Assistant for Debian's Python 3.11.
REQUIREMENTS = HERE / "recorder_requirements.txt"
#: The setting's `commit_interval`, and waldio's variables; None is stock SQLite.
SIDES = {
    "every 5 s: stock NORMAL": (5, None),
    "every 5 s: waldio bounded": (5, {"WALDIO_DURABILITY": "bounded"}),
    "every 5 s: waldio bounded, embedded": (5, {"WALDIO_DURABILITY": "bounded", "WALDIO_LAYOUT": "embedded"}),
    "each change: stock FULL": (0, None),
    "each change: waldio full": (0, {"WALDIO_DURABILITY": "full"}),
    "each change: waldio full, embedded": (0, {"WALDIO_DURABILITY": "full", "WALDIO_LAYOUT": "embedded"}),
    "each change: waldio bounded": (0, {"WALDIO_DURABILITY": "bounded"}),
}
RATE = 10
KILL_AFTER = 30
DATABASE = "home-assistant_v2.db"
CARD = {"device": "transcend-card-s3", "filesystem": "ext4"}


class Recorder:
    """Home Assistant, its environment, and what it is measured with."""

    def __init__(self, options, changes):
        self.options, self.changes = options, changes
        self.home = measuring.TARGET / "applications/recorder"
        self.python = self.home / "venv/bin/python"
        self.preload = self.home / "libwaldio-preload.so"

    def prepare(self):
        if not os.path.exists("/usr/bin/python3.11"):
            raise Skip("there is no Python 3.11, the last one that this Home Assistant is for beside 3.12")
        measuring.run(["/usr/bin/python3.11", "-m", "venv", self.home / "venv"], "no virtual environment")
        pip = [self.python, "-m", "pip", "install", "--quiet", "--no-deps", "-r", REQUIREMENTS]
        measuring.run(pip, "Home Assistant cannot be installed here")
        shutil.copy(self.options.library, self.home / "libwaldio.so")
        measuring.run([measuring.ROOT / "packages/preload/build.sh", self.preload], "no library to preload")

    def versions(self):
        ask = "import sqlite3, sys, sqlalchemy as s, homeassistant.const as h; "
        ask += "print(sys.version.split()[0], sqlite3.sqlite_version, s.__version__, h.__version__)"
        told = measuring.run([self.python, "-c", ask], "no versions").split()
        return dict(zip(["python", "sqlite", "sqlalchemy", "homeassistant"], told))

    def command(self, side, directory, changes):
        return list(map(str, [self.python, HERE / "recorder_home.py", directory, SIDES[side][0], changes, RATE]))

    def environment(self, side):
        variables = SIDES[side][1]
        preload = {} if variables is None else {**variables, "LD_PRELOAD": str(self.preload), "WALDIO_PRELOAD": "verbose"}
        return measuring.clean_environment(PYTHONDONTWRITEBYTECODE="1", **preload)

    def run(self, side, directory, changes, before=()):
        """A whole life, behind the words `before`; the database must hold each change."""
        environment = self.environment(side)
        if before:
            # joj itself goes without.
            words = [f"{name}={environment.pop(name)}" for name in list(environment) if name.startswith(("WALDIO_", "LD_PRELOAD"))]
            before = [*before, "env", *words]
        command = [*map(str, before), *self.command(side, directory, changes)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)
        if done.returncode != 0 or f"changes {changes}\n" not in done.stdout:
            raise Failure(f"{side}: status {done.returncode}: {done.stderr[-2000:]}")
        told = "loaded" in done.stderr
        if told != (SIDES[side][1] is not None):
            raise Failure(f"{side}: waldio says {done.stderr[-2000:]!r}")
        self.check_rows(side, directory, changes)

    def check_rows(self, side, directory, changes):
        path = os.path.join(directory, DATABASE)
        measuring.intact(path)
        with contextlib.closing(sqlite3.connect(path)) as connection:
            rows = connection.execute("SELECT count(*) FROM states").fetchone()[0]
        if rows != changes:
            raise Failure(f"{side}: {changes} changes, {rows} rows")

    def on_the_disk(self, side, directory):
        """What its changes ask of the disk: a life with them, less one without."""
        lives = [self.traced(side, directory, changes) for changes in (0, self.changes)]
        return {"side": side, "without_changes": lives[0], "with_changes": lives[1]} | self.each(*lives)

    def traced(self, side, directory, changes):
        home, summary = os.path.join(directory, f"home-{changes}"), os.path.join(directory, "trace.json")
        os.mkdir(home)
        self.run(side, home, changes, [self.options.joj, "trace", "--json", summary, "--"])
        with open(summary) as file:
            trace = json.load(file)
        return {
            "commits": trace["commits"]["total"],
            "syncs": sum(row["calls"] for row in trace["sync_calls"]),
            "flushes": sum(row["flushes"] for row in trace["sync_calls"]),
            "written_bytes": trace["own"]["written_bytes"],
            "lost_events": trace["lost"],
        }

    def each(self, without, whole):
        names = [name for name in ("flushes", "syncs", "written_bytes") if name in whole]
        return {f"{name}_each": (whole[name] - without[name]) / self.changes for name in names}

    def record(self, interval, directory):
        """Recordings of that setting with stock SQLite: without changes, and with them."""
        side = next(name for name, (its, variables) in SIDES.items() if its == interval and variables is None)
        recordings = []
        for changes in (0, self.changes):
            home = os.path.join(directory, f"recorded-{interval}-{changes}")
            os.mkdir(home)
            recordings.append(home + ".joj")
            self.run(side, home, changes, [self.options.joj, "record", "-o", recordings[-1], "--"])
        return recordings

    def on_the_card(self, side, recordings):
        """The same commits on the emulated card."""
        lives = [self.replayed(side, recording) for recording in recordings]
        return {"side": side, "without_changes": lives[0], "with_changes": lives[1]} | self.each(*lives)

    def sqlite(self):
        """The library that Home Assistant's Python has loaded: it calls fdatasync, as joj's own does not."""
        ask = "import sqlite3; print(*{line.split()[-1] for line in open('/proc/self/maps') if 'libsqlite3.so' in line})"
        return measuring.run([self.python, "-c", ask], "no libsqlite3").strip()

    def replayed(self, side, recording):
        interval, variables = SIDES[side]
        words = [self.options.joj, "replay", recording, "--lab", "--json", "-", "--synchronous", "normal" if interval else "full"]
        words += [word for name, value in CARD.items() for word in (f"--{name}", value)]
        words += ["--sqlite", self.sqlite()]
        words += ["--as", "wal"] if variables is None else ["--as", "waldio", "--waldio", self.options.library]
        environment = measuring.clean_environment(**(variables or {}))
        done = subprocess.run(list(map(str, words)), env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failure(f"{side}, on the card: {done.stderr[-2000:]} {done.stdout[-1000:]}")
        row = json.loads(done.stdout)["rows"][0]["outcome"]["replayed"]["replayed"]
        found = {name: row[name] for name in ("commits", "commit_times", "device")}
        # The card has no cache to flush: what it shows is how often somebody waited for it.
        return found | {"syncs": sum(row["syncs"].values()), "written_bytes": row["device"]["written_bytes"]}

    def seen(self, side, path):
        """The changes that another process with the same environment reads; none where there is no table yet."""
        ask = "import sqlite3, sys; print(*(row for row, in sqlite3.connect(sys.argv[1]).execute('SELECT state_id FROM states')))"
        read = subprocess.run([self.python, "-c", ask, path], env=self.environment(side), capture_output=True, text=True, check=False)
        return set(map(int, read.stdout.split())) if read.returncode == 0 else set()

    def kill(self, side, directory):
        """What another process saw before SIGKILL is there when it was started again."""
        path, seen = os.path.join(directory, DATABASE), set()
        with open(os.path.join(directory, "words"), "w") as words:
            command = self.command(side, directory, 100_000)
            process = subprocess.Popen(command, env=self.environment(side), stdout=words, stderr=words, start_new_session=True)
        deadline = time.monotonic() + 120
        while len(seen) < KILL_AFTER and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.2)
            if os.path.exists(path + "-wal"):
                seen = self.seen(side, path)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if len(seen) < KILL_AFTER:
            raise Failure(f"{side}: only {len(seen)} changes were there in 120 s")
        again = subprocess.run(self.command(side, directory, 1), env=self.environment(side), capture_output=True, text=True, check=False)
        if again.returncode != 0:
            raise Failure(f"{side}: after the kill it does not start again: {again.stderr[-2000:]}")
        measuring.intact(path)
        with contextlib.closing(sqlite3.connect(path)) as reader:
            kept = {row for (row,) in reader.execute("SELECT state_id FROM states")}
        if seen - kept:
            raise Failure(f"{side}: {len(seen)} changes were seen before the kill, and {len(seen - kept)} of them are lost")
        return {"side": side, "seen": len(seen), "kept": len(kept)}


def show(told):
    print("\n| | on the disk: flushes each | KiB each | on the card: syncs each | KiB each | s in commits |\n|---|---|---|---|---|---|")
    card = {row["side"]: row for row in told["card"]}
    for row in told["disk"]:
        cells = [f"{row['flushes_each']:.2f}", f"{row['written_bytes_each'] / 1024:.1f}"]
        if replayed := card.get(row["side"]):
            seconds = replayed["with_changes"]["commit_times"]["sum_ns"] / 1e9
            cells += [f"{replayed['syncs_each']:.2f}", f"{replayed['written_bytes_each'] / 1024:.1f}", f"{seconds:.3f}"]
        print(f"| {row['side']} | " + " | ".join(cells + [""] * (5 - len(cells))) + " |")


def main():
    options = measuring.options(__doc__, ["the recorder"])
    application, judge = Recorder(options, 30 if options.quick else 300), measuring.Judge("recorder")
    try:
        if os.geteuid() != 0:
            raise Skip("joj counts as root alone")
        for file in (options.library, options.joj):
            if not file.exists():
                raise Skip(f"{file} is not there: make build")
        application.prepare()
    except Skip as reason:
        print(f"SKIPPED recorder: {reason}\n0 passed, 0 failed, 1 skipped")
        return 0
    told = {"version": 1, "command": sys.argv[1:], "application": "recorder", "versions": application.versions()}
    told |= {"changes": application.changes, "rate": RATE, "emulated": CARD, "disk": [], "card": [], "kills": []}
    with measuring.new_place(options) as directory:
        told["machine"] = measuring.machine(directory)
        for side in SIDES:
            with tempfile.TemporaryDirectory(dir=directory) as place:
                told["disk"].append(judge.attempt(lambda: application.on_the_disk(side, place)))
            with tempfile.TemporaryDirectory(dir=directory) as place:
                told["kills"].append(judge.attempt(lambda: application.kill(side, place)))
        if not options.quick:
            for interval in (5, 0):
                recordings = judge.attempt(lambda: application.record(interval, directory))
                for side in [name for name, (its, _) in SIDES.items() if its == interval and recordings]:
                    told["card"].append(judge.attempt(lambda: application.on_the_card(side, recordings)))
    for name in ("disk", "card", "kills"):
        told[name] = list(filter(None, told[name]))
    measuring.write_json(options, told | {"failures": judge.failures})
    show(told)
    return judge.count()


if __name__ == "__main__":
    sys.exit(main())
