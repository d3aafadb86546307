"""What the measurements of applications share: the four sides, rounds that alternate them, servers, the place, the JSON.

An application (django_requests.py, kine_puts.py) is an object with

    name, shapes            its name, and the loads that it is measured under
    prepare()               fetches and builds what it needs; raises Skip with the reason where it cannot
    begin(side, shape, directory, environment, trace)    starts its server on a new database there; a Server
    load(server, shape)     loads the server; figures by name. `acknowledged` is how many writes were answered as done
    rows(directory)         how many of these the database holds, read with the stock SQLite of this Python
    kill(side, directory, environment)    loads a server, kills it with SIGKILL, opens the database again; how many writes were
                            answered, and the set of those that are lost
    versions()              what it was measured with
    figures, columns        the names of its figures that have a median; heads of the table, with what makes a cell of figures
"""

import argparse
import contextlib
import gzip
import json
import os
import pathlib
import platform
import shutil
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
SIDES = ["stock FULL", "stock NORMAL", "waldio full", "waldio bounded"]
IMAGE_BYTES = 1 << 30
STOP_SECONDS = 60
#: Of the processors; measured while nothing of ours runs.
BUSY_SHARE_MAX = 0.15


class Skip(Exception):
    """Why an application cannot be measured here."""


class Failure(Exception):
    """What an application, or waldio in it, got wrong."""


def options(description, shapes):
    """The words of the command line, the same for all applications."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one short round, nothing counted with joj, any load: what `make soak` runs")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, each of all sides (default: 3)")
    parser.add_argument("--shapes", nargs="+", choices=shapes, default=shapes, metavar="SHAPE", help="of: " + ", ".join(shapes))
    place = os.environ.get("JOJ_TEST_DIR", "/var/tmp")
    parser.add_argument("--directory", default=place, help=f"where the databases lie for the time (default: {place})")
    parser.add_argument("--image", choices=["ext4", "xfs"], help="on such a filesystem in an image file in DIRECTORY (as root)")
    library = os.environ.get("WALDIO_LIBRARY", TARGET / "release/libwaldio.so")
    parser.add_argument("--library", type=pathlib.Path, default=library, help="libwaldio.so (default: the release build)")
    joj = TARGET / "release/joj"
    parser.add_argument("--joj", type=pathlib.Path, default=joj, help="counts flushes, as root, in a round of its own (default: release)")
    parser.add_argument("--json", type=pathlib.Path, help="all figures as JSON; compressed if the name ends with .gz")
    parser.add_argument("--load-max", type=float, default=1.5, help="measure nothing above this load average (default: 1.5)")
    parser.add_argument("--load-wait", type=float, default=240, metavar="SECONDS", help="how long to wait for it (default: 240)")
    parsed = parser.parse_args()
    if parsed.rounds < 1:
        parser.error("--rounds is 1 or more")
    if not os.access(parsed.directory, os.W_OK | os.X_OK):
        parser.error(f"nothing can be made in {parsed.directory}; name another --directory")
    # Servers, mounts and directories are taken away on the way out.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    parsed.library = parsed.library.resolve()
    return parsed


def stop(number, _frame):
    print(f"stopped by {signal.Signals(number).name}; nothing is left of this run", file=sys.stderr)
    sys.exit(128 + number)


class Server:
    """A program in a session of its own, so that a kill takes its children too."""

    def __init__(self, command, environment, directory, port):
        self.directory, self.port, self.log = directory, port, os.path.join(directory, "server.log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                list(map(str, command)), env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def wait_until_it_listens(self):
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.05)
        words = self.words()
        self.kill()
        raise Failure(f"the server does not listen: {words[-2000:]}")

    def words(self):
        with open(self.log, errors="replace") as log:
            return log.read()

    def program(self):
        """The process number of the server itself. Under `joj trace` it is joj's only child."""
        process = self.process.pid
        if os.path.basename(self.process.args[0]) != "joj":
            return process
        return int(pathlib.Path(f"/proc/{process}/task/{process}/children").read_text().split()[0])

    def stop(self):
        """Asks it to end, and waits; its exit status."""
        os.kill(self.program(), signal.SIGTERM)
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failure(f"the server did not end within {STOP_SECONDS} s of SIGTERM: {self.words()[-2000:]}") from None

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class LogWatch(threading.Thread):
    """The largest size that a log had, looked at every 10 ms."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.largest, self.ended = path, 0, threading.Event()

    def run(self):
        while not self.ended.wait(0.01):
            with contextlib.suppress(OSError):
                self.largest = max(self.largest, os.path.getsize(self.path))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join()


def clean_environment(**more):
    """This one without what would change the sides."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("WALDIO_", "PYTHON", "KINE_", "LD_PRELOAD"))}
    return {**clean, **more}


def free_port():
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return asked.getsockname()[1]


def run(command, why, **more):
    """Runs a step of the preparation; where it fails the application is skipped."""
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **more)
    except OSError as error:
        raise Skip(f"{why}: {error}") from None
    if done.returncode != 0:
        lines = " ".join((done.stderr or done.stdout).strip().splitlines()[-3:])
        raise Skip(f"{why}: {lines}")
    return done.stdout


@contextlib.contextmanager
def new_place(options):
    """A new directory on the filesystem that was asked for; nothing is left of it."""
    directory = tempfile.mkdtemp(prefix="joj-applications.", dir=options.directory)
    mounted = None
    try:
        if options.image:
            mounted = os.path.join(directory, "mounted")
            os.mkdir(mounted)
            image = os.path.join(directory, "image")
            # Written, not only made longer: a hole of the image would be allocated while it is measured.
            run(["dd", "if=/dev/zero", f"of={image}", "bs=1M", f"count={IMAGE_BYTES >> 20}", "conv=fsync"], "no image")
            run([f"mkfs.{options.image}", "-q", image], "no filesystem")
            run(["mount", "-o", "loop", image, mounted], "the image cannot be mounted")
        yield mounted or directory
    finally:
        if mounted:
            subprocess.run(["umount", mounted], check=False)
        shutil.rmtree(directory, ignore_errors=True)


def busy_share(seconds=0.5):
    """How much of the processors others use, while nothing of ours runs."""

    def read():
        with open("/proc/stat") as stat:
            times = list(map(int, stat.readline().split()[1:]))
        return sum(times) - times[3] - times[4], sum(times)

    busy, total = read()
    time.sleep(seconds)
    busy_after, total_after = read()
    return (busy_after - busy) / max(1, total_after - total)


def wait_for_idle(options):
    deadline = time.monotonic() + options.load_wait
    while os.getloadavg()[0] > options.load_max:
        if time.monotonic() > deadline:
            sys.exit(f"nothing was measured: the load average stays above {options.load_max}. End other programs, or --load-max.")
        time.sleep(5)


def machine(directory):
    """What the figures depend on."""
    mount = subprocess.run(
        ["findmnt", "--json", "--output", "FSTYPE,OPTIONS,SOURCE", "--target", directory], capture_output=True, text=True, check=False
    )
    filesystem = json.loads(mount.stdout)["filesystems"][0] if mount.returncode == 0 else None
    device = pathlib.Path("/sys/dev/block") / "{}:{}".format(os.major(os.stat(directory).st_dev), os.minor(os.stat(directory).st_dev))
    journals = pathlib.Path("/proc/fs/jbd2")
    if filesystem and filesystem["fstype"] == "ext4" and journals.exists():
        name = os.path.basename(os.path.realpath(filesystem["source"]))
        filesystem["journal"] = any(entry.name.split("-")[0] == name for entry in journals.iterdir())
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    with open("/proc/cpuinfo") as cpuinfo:
        models = {line.split(":", 1)[1].strip() for line in cpuinfo if line.startswith("model name")}
    return {
        "kernel": platform.release(),
        "processors": os.cpu_count(),
        "processor": sorted(models),
        "filesystem": filesystem,
        "device": {file.name: file.read_text().strip() for file in (device / "queue/write_cache", device / "queue/fua") if file.exists()},
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": commit.stdout.strip(),
    }


def one_round(application, side, shape, directory, trace=None):
    """A server on a new database, loaded and ended; its figures, checked against what the database holds."""
    figures = {"side": side, "shape": shape, "load_average_before": os.getloadavg()[0], "busy_before": round(busy_share(), 3)}
    place = tempfile.mkdtemp(dir=directory)
    server = None
    try:
        server = application.begin(side, shape, place, clean_environment(), trace or [])
        with LogWatch(os.path.join(place, "app.db-wal")) as watch:
            figures |= application.load(server, shape)
        figures["log_bytes_max"] = watch.largest
        status, server = server.stop(), None
        rows = application.rows(place)
        if rows != figures["acknowledged"]:
            raise Failure(f"{side}, {shape}: {figures['acknowledged']} were answered as done, {rows} are in the database (status {status})")
    finally:
        if server:
            server.kill()
        shutil.rmtree(place, ignore_errors=True)
    return figures


def counted(application, side, shape, directory, options):
    """The same under `joj trace`, for what the server and its children asked of the disk for each write that was answered."""
    summary = os.path.join(directory, "trace.json")
    figures = one_round(application, side, shape, directory, [options.joj, "trace", "--json", summary, "--"])
    with open(summary) as file:
        trace = json.load(file)
    os.unlink(summary)
    each = 1 / figures["acknowledged"]
    calls = trace["sync_calls"]
    return {
        "side": side,
        "shape": shape,
        "syncs_each": sum(row["calls"] for row in calls) * each,
        "flushes_each": sum(row["flushes"] for row in calls) * each,
        "bytes_each": trace["own"]["written_bytes"] * each,
        "lost_events": trace["lost"],
        "sync_calls": [{name: row[name] for name in ("call", "file_type", "calls", "flushes", "bytes")} for row in calls],
    }


class Judge:
    """Counts what held, as every suite does."""

    def __init__(self, name):
        self.name, self.passed, self.failures = name, 0, []

    def attempt(self, work):
        """What `work` gives, or nothing where it failed."""
        try:
            found = work()
        except (Failure, sqlite3.Error, OSError, subprocess.SubprocessError) as error:
            self.failures.append(f"{type(error).__name__}: {error}")
            print(f"FAILED {self.name}: {error}", flush=True)
            return None
        self.passed += 1
        return found

    def count(self):
        """The suite's last line; the exit status."""
        print(f"{self.passed} passed, {len(self.failures)} failed, 0 skipped")
        return 1 if self.failures else 0

    @staticmethod
    def kill(application, side, directory):
        """After SIGKILL everything that was answered is there."""
        place = tempfile.mkdtemp(dir=directory)
        try:
            acknowledged, missing = application.kill(side, place, clean_environment())
        finally:
            shutil.rmtree(place, ignore_errors=True)
        if missing:
            raise Failure(f"{side}: killed after {acknowledged} answers, and {len(missing)} of them are lost: {sorted(missing)[:5]}")
        return {"side": side, "acknowledged": acknowledged, "missing": 0}


def intact(path):
    """An integrity check with the stock SQLite of this Python."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        told = connection.execute("PRAGMA integrity_check").fetchone()[0]
    if told != "ok":
        raise Failure(f"integrity_check: {told}")


def medians(rounds, shapes, names):
    """By shape and side: the median of each figure over the rounds, and its lowest and highest."""
    found = []
    for shape in shapes:
        for side in SIDES:
            mine = [row for row in rounds if row["shape"] == shape and row["side"] == side]
            if mine:
                values = {name: [row[name] for row in mine] for name in names}
                found.append(
                    {"shape": shape, "side": side, "rounds": len(mine)}
                    | {name: {"median": statistics.median(all), "lowest": min(all), "highest": max(all)} for name, all in values.items()}
                )
    return found


def measure(application, options):
    """Everything: the preparation, the rounds, the counts, the kills, the JSON, the count line. The exit status."""
    judge = Judge(application.name)
    rounds, counts, kills = [], [], []
    try:
        if not options.library.exists():
            raise Skip(f"{options.library} is not there: make extension")
        application.prepare()
    except Skip as reason:
        print(f"SKIPPED {application.name}: {reason}\n0 passed, 0 failed, 1 skipped")
        return 0
    with new_place(options) as directory:
        if not options.quick:
            wait_for_idle(options)
        told = {"application": application.name, "machine": machine(directory), "versions": application.versions()}
        for number in range(1 if options.quick else options.rounds):
            for shape in options.shapes:
                # No side is always the first after a pause.
                turn = number % len(SIDES)
                for side in SIDES[turn:] + SIDES[:turn]:
                    found = judge.attempt(lambda: one_round(application, side, shape, directory))
                    if found:
                        rounds.append({"round": number + 1} | found)
                        print(f"{shape}, {side}: " + ", ".join(f"{head} {cell(found)}" for head, cell in application.columns), flush=True)
        if not options.quick and os.geteuid() == 0 and options.joj.exists():
            for shape in options.shapes:
                for side in SIDES:
                    counts.append(judge.attempt(lambda: counted(application, side, shape, directory, options)))
        for side in SIDES:
            kills.append(judge.attempt(lambda: judge.kill(application, side, directory)))
    told |= {"medians": medians(rounds, options.shapes, application.figures), "rounds": rounds}
    told |= {"counted": list(filter(None, counts)), "kills": list(filter(None, kills)), "failures": judge.failures}
    write_json(options, {"version": 1, "command": sys.argv[1:], **told})
    show(told, application)
    busy = sum(row["busy_before"] > BUSY_SHARE_MAX for row in rounds)
    if busy and not options.quick:
        print(f"{busy} of {len(rounds)} rounds began while others used the processors: run it again on an idle machine")
    return judge.count()


def write_json(options, told):
    if options.json:
        write = gzip.open if options.json.suffix == ".gz" else open
        with write(options.json, "wt") as file:
            json.dump(told, file, indent=1)


def show(told, application):
    """The table of the page, in Markdown."""
    counts = {(row["shape"], row["side"]): row for row in told["counted"]}
    heads = [head for head, _ in application.columns] + (["flushes each", "KiB each"] if counts else [])
    print("\n| | side | " + " | ".join(heads) + " |\n|" + "---|" * (len(heads) + 2))
    for row in told["medians"]:
        middle = {name: row[name]["median"] for name in application.figures}
        cells = [cell(middle) for _, cell in application.columns]
        if counts:
            count = counts.get((row["shape"], row["side"]))
            cells += [f"{count['flushes_each']:.2f}", f"{count['bytes_each'] / 1024:.1f}"] if count else ["", ""]
        print(f"| {row['shape']} | {row['side']} | {' | '.join(cells)} |")
    for row in told["kills"]:
        print(f"killed, {row['side']}: all {row['acknowledged']} that were answered are there")
