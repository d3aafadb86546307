#!/usr/bin/env python3
"""Goal: what waldio is worth to a site on Django and gunicorn: its longest request, p99, requests a second.

Method: 32 clients (ab) post to the site of django_site.py, which inserts a row in a transaction of each request. One process of 16
threads, then four processes of 4 threads, with stock SQLite (synchronous FULL and NORMAL) and with waldio (full and bounded). A
thread keeps its connection, and in the shapes "..., new connections" each request opens the database, as is Django's default. The
rows in the database must be as many as the requests that were answered with 200. Once for each side the server is killed: what it
had answered must be there.

    tests/applications/django_requests.py --json django.json.gz      some ten minutes; as root it counts flushes, too
    tests/applications/django_requests.py --quick                    checks that it works; its figures say nothing

Needs ab (package apache2-utils), and Django and gunicorn from PyPI, which it installs below target/applications.
"""

import contextlib
import http.client
import os
import pathlib
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

import measuring
from measuring import Failure, Skip

HERE = pathlib.Path(__file__).resolve().parent
REQUIREMENTS = ["Django==5.2.19", "gunicorn==27.0.1"]
SHAPES = {
    "1 process of 16 threads": (1, 16, "kept"),
    "4 processes of 4 threads": (4, 4, "kept"),
    "1 process of 16 threads, new connections": (1, 16, "new"),
    "4 processes of 4 threads, new connections": (4, 4, "new"),
}
CLIENTS = 32
WARM_UP = 320
BODY = "x" * 100
# Longer than the site's own timeout: a request that waits for the lock is measured, not given up.
PATIENCE_SECONDS = 90


class Django:
    """The site, its environment, and its load."""

    name = "django"
    figures = ["requests_per_second", "p50_ms", "p99_ms", "longest_ms", "locked", "log_bytes_max"]
    columns = [
        ("longest request, ms", lambda row: f"{row['longest_ms']:,.0f}"),
        ("p99, ms", lambda row: f"{row['p99_ms']:.0f}"),
        ("p50, ms", lambda row: f"{row['p50_ms']:.1f}"),
        ("requests/s", lambda row: f"{row['requests_per_second']:,.0f}"),
        ("database is locked", lambda row: f"{row['locked']:.0f}"),
        ("largest log, MB", lambda row: f"{row['log_bytes_max'] / 1e6:.1f}"),
    ]

    def __init__(self, options, requests):
        self.options, self.requests = options, requests
        self.home = measuring.TARGET / "applications/django"
        self.python = self.home / "venv/bin/python"

    def prepare(self):
        if not shutil.which("ab"):
            raise Skip("ab is missing (package apache2-utils)")
        system = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
        measuring.run([system, "-m", "venv", self.home / "venv"], "no virtual environment")
        pip = [self.python, "-m", "pip", "install", "--quiet"]
        measuring.run([*pip, *REQUIREMENTS], "Django and gunicorn cannot be installed here")
        wheel = measuring.run(
            [sys.executable, measuring.ROOT / "packages/python/build_wheel.py", self.options.library, self.home], "no wheel of waldio"
        )
        measuring.run([*pip, "--no-index", "--force-reinstall", wheel.strip()], "the wheel cannot be installed")

    def versions(self):
        ask = "import sqlite3, sys, django as d, gunicorn as g; print(sys.version.split()[0], sqlite3.sqlite_version, d.__version__, g.__version__)"
        told = measuring.run([self.python, "-c", ask], "no versions").split()
        banner = measuring.run(["ab", "-V"], "no ab").splitlines()[0]
        return dict(zip(["python", "sqlite", "django", "gunicorn"], told)) | {"ab": banner}

    def begin(self, side, shape, directory, environment, trace):
        processes, threads, connections = SHAPES[shape]
        database = os.path.join(directory, "app.db")
        environment |= {"SITE_SIDE": side, "SITE_DATABASE": database, "SITE_CONNECTIONS": connections, "PYTHONPATH": str(HERE)}
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        if not os.path.exists(database):
            done = subprocess.run([self.python, HERE / "django_site.py"], env=environment, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise Failure(f"{side}: no table: {done.stderr}")
        port = measuring.free_port()
        gunicorn = [self.python, "-m", "gunicorn", "--worker-class", "gthread", "--workers", processes, "--threads", threads]
        gunicorn += ["--bind", f"127.0.0.1:{port}", "--no-control-socket", "django_site:application"]
        server = measuring.Server([*trace, *gunicorn], environment, directory, port)
        server.wait_until_it_listens()
        self.check_side(server, side)
        return server

    def check_side(self, server, side):
        """Each side is what its name says, or nothing is measured."""
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_SECONDS)
        connection.request("GET", "/state")
        answer = connection.getresponse()
        told = answer.read().decode()
        connection.close()
        expected = {
            "stock FULL": '{"waldio": null, "journal_mode": "wal", "synchronous": 2}',
            "stock NORMAL": '{"waldio": null, "journal_mode": "wal", "synchronous": 1}',
            "waldio full": '{"waldio": "active: with synchronous=FULL',
            "waldio bounded": '{"waldio": "active: COMMIT does not wait',
        }[side]
        if not told.startswith(expected):
            server.kill()
            raise Failure(f"{side}: the site says {told}\n{server.words()[-2000:]}")

    def ab(self, server, requests):
        """What ab tells of so many requests: its text, and its table of percentiles."""
        with tempfile.TemporaryDirectory() as scratch:
            body, table = os.path.join(scratch, "body"), os.path.join(scratch, "percentiles.csv")
            with open(body, "w") as file:
                file.write(BODY)
            command = ["ab", "-q", "-r", "-n", requests, "-c", CLIENTS, "-s", PATIENCE_SECONDS, "-p", body, "-T", "text/plain", "-e", table]
            command.append(f"http://127.0.0.1:{server.port}/add")
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise Failure(f"ab: {done.stderr}\n{server.words()[-2000:]}")
            with open(table) as file:
                percentiles = dict(line.strip().split(",") for line in file.readlines()[1:])
        return done.stdout, percentiles

    def load(self, server, _shape):
        answered = self.answered(self.ab(server, WARM_UP)[0])
        begun = time.monotonic()
        text, percentiles = self.ab(server, self.requests)
        measured = self.answered(text)
        # A traceback names it once, in its last line.
        locked = len(re.findall(r"^django\.db\.utils\.OperationalError: database is locked", server.words(), re.MULTILINE))
        return {
            "acknowledged": answered + measured,
            "refused": self.requests - measured,
            "requests_per_second": float(re.search(r"Requests per second:\s+([\d.]+)", text)[1]),
            "p50_ms": float(percentiles["50"]),
            "p99_ms": float(percentiles["99"]),
            "longest_ms": int(re.search(r"100%\s+(\d+) \(longest request\)", text)[1]),
            "locked": locked,
            "seconds": time.monotonic() - begun,
        }

    @staticmethod
    def answered(text):
        """How many were answered with 200."""
        complete = int(re.search(r"Complete requests:\s+(\d+)", text)[1])
        others = re.search(r"Non-2xx responses:\s+(\d+)", text)
        return complete - (int(others[1]) if others else 0)

    def rows(self, directory):
        path = os.path.join(directory, "app.db")
        measuring.intact(path)
        with contextlib.closing(sqlite3.connect(path)) as connection:
            return connection.execute("SELECT count(*) FROM entry").fetchone()[0]

    def kill(self, side, directory, environment):
        shape = next(iter(self.options.shapes))
        server = self.begin(side, shape, directory, environment, [])
        acknowledged, stopped = set(), threading.Event()
        enough = min(2000, self.requests // 3)

        def post(client):
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_SECONDS)
            number = 0
            while not stopped.is_set():
                text = f"{client}-{number}"
                try:
                    connection.request("POST", "/add", body=text)
                    answer = connection.getresponse()
                    answer.read()
                except (OSError, http.client.HTTPException):
                    # gunicorn ends a connection after some requests, or it was killed.
                    connection.close()
                else:
                    if answer.status == 200:
                        acknowledged.add(text)
                number += 1

        clients = [threading.Thread(target=post, args=(number,)) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(acknowledged) < enough and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(random.uniform(0, 0.02))
        server.kill()
        stopped.set()
        for client in clients:
            client.join()
        if len(acknowledged) < enough:
            raise Failure(f"{side}: only {len(acknowledged)} requests were answered in {PATIENCE_SECONDS} s: {server.words()[-2000:]}")
        # The site itself opens what the kill left, and goes on.
        self.begin(side, shape, directory, environment, []).stop()
        path = os.path.join(directory, "app.db")
        measuring.intact(path)
        with contextlib.closing(sqlite3.connect(path)) as connection:
            kept = {text for (text,) in connection.execute("SELECT text FROM entry")}
        return len(acknowledged), acknowledged - kept


if __name__ == "__main__":
    options = measuring.options(__doc__, list(SHAPES))
    if options.quick and options.shapes == list(SHAPES):
        options.shapes = options.shapes[:2]
    sys.exit(measuring.measure(Django(options, 600 if options.quick else 6000), options))
