#!/usr/bin/env python3
"""Goal: what waldio is worth to kine, the etcd that k3s keeps in SQLite: how long a put takes, puts a second, flushes for each.

Method: kine as it is (kine/serve registers waldio and calls it), with the parameters of its own default but cache=private and the
synchronous of each side. 1, 16 and 64 etcd clients (kine/load) put new keys of 1,024 bytes for some seconds: stock SQLite
(synchronous FULL and NORMAL, kine's default) and waldio (full and bounded). The database must hold as many of these keys as there
were puts that returned. Once for each side kine is killed: what it had acknowledged must be there.

    tests/applications/kine_puts.py --json kine.json.gz      some ten minutes; as root it counts flushes, too
    tests/applications/kine_puts.py --image ext4             the same on a filesystem with a journal
    tests/applications/kine_puts.py --quick                  checks that it works; its figures say nothing

Needs Go and gcc, and kine with what it is made of from the Go proxy: below target/applications, some minutes the first time.
"""

import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import measuring
from measuring import Failure, Skip

HERE = pathlib.Path(__file__).resolve().parent
SHAPES = {"1 client": 1, "16 clients": 16, "64 clients": 64}
#: Of kine's drivers/sqlite, but for the last two.
PARAMETERS = "_journal_mode=WAL&_busy_timeout=30000&_txlock=immediate&_stmt_cache_size=20&cache=private&_synchronous="
WARM_UP_SECONDS = 0.5
PATIENCE_SECONDS = 90


class Kine:
    """The server, built with waldio inside, and its load."""

    name = "kine"
    figures = ["puts_per_second", "p50_ms", "p99_ms", "longest_ms", "failed_puts", "log_bytes_max"]
    columns = [
        ("longest put, ms", lambda row: f"{row['longest_ms']:,.0f}"),
        ("p99, ms", lambda row: f"{row['p99_ms']:.1f}"),
        ("p50, ms", lambda row: f"{row['p50_ms']:.2f}"),
        ("puts/s", lambda row: f"{row['puts_per_second']:,.0f}"),
        ("failed puts", lambda row: f"{row['failed_puts']:.0f}"),
        ("largest log, MB", lambda row: f"{row['log_bytes_max'] / 1e6:.1f}"),
    ]

    def __init__(self, options, seconds):
        self.options, self.seconds = options, seconds
        self.home = measuring.TARGET / "applications/kine"

    def prepare(self):
        for tool in ("go", "gcc"):
            if not shutil.which(tool):
                raise Skip(f"{tool} is missing")
        module = measuring.TARGET / "applications/go-module"
        measuring.run([measuring.ROOT / "packages/go/build_module.sh", module, self.options.library], "no Go module of waldio")
        shutil.copytree(HERE / "kine", self.home, dirs_exist_ok=True)
        go = {"cwd": self.home, "env": {**os.environ, "CGO_ENABLED": "1"}}
        measuring.run(["go", "mod", "download"], "kine cannot be fetched here", **go)
        for program in ("serve", "load"):
            measuring.run(["go", "build", "-mod=readonly", "-o", f"bin/{program}", f"./{program}"], f"{program} is not built", **go)

    def versions(self):
        listed = measuring.run(["go", "version", "-m", self.home / "bin/serve"], "no versions").split("\n")
        wanted = {"github.com/k3s-io/kine", "github.com/mattn/go-sqlite3", "go.etcd.io/etcd/client/v3"}
        modules = {words[1]: words[2] for words in map(str.split, listed) if len(words) > 2 and words[1] in wanted}
        return {"go": listed[0].split()[-1], **modules}

    def begin(self, side, _shape, directory, environment, trace):
        durability, level = {
            "stock FULL": ("", "FULL"),
            "stock NORMAL": ("", "NORMAL"),
            "waldio full": ("full", "FULL"),
            "waldio bounded": ("bounded", "NORMAL"),
        }[side]
        dsn = os.path.join(directory, "app.db") + "?" + PARAMETERS + level
        environment |= {"KINE_DATABASE": dsn, **({"WALDIO_DURABILITY": durability} if durability else {"KINE_WALDIO": "off"})}
        port = measuring.free_port()
        command = [*trace, self.home / "bin/serve", "--listen-address", f"tcp://127.0.0.1:{port}", "--endpoint", f"sqlite://{dsn}"]
        server = measuring.Server([*command, "--metrics-bind-address", "0"], environment, directory, port)
        server.wait_until_it_listens()
        self.check_side(server, side)
        return server

    def check_side(self, server, side):
        """Each side is what its name says, or nothing is measured."""
        os.kill(server.program(), signal.SIGUSR1)
        deadline = time.monotonic() + 10
        while "\nstate " not in "\n" + server.words() and time.monotonic() < deadline:
            time.sleep(0.02)
        expected = {
            "stock FULL": "state wal 2 inactive:",
            "stock NORMAL": "state wal 1 inactive:",
            "waldio full": "state wal 2 active: with synchronous=FULL",
            "waldio bounded": "state wal 1 active: COMMIT does not wait",
        }[side]
        if expected not in server.words():
            server.kill()
            raise Failure(f"{side}: kine says {server.words()[-2000:]}")

    def command(self, server, clients, seconds, prefix, *more):
        words = [self.home / "bin/load", "-address", f"http://127.0.0.1:{server.port}", "-clients", clients, "-seconds", seconds]
        return list(map(str, [*words, "-prefix", prefix, *more]))

    def put(self, server, clients, seconds, prefix):
        done = subprocess.run(self.command(server, clients, seconds, prefix), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failure(f"the load: {done.stderr}\n{server.words()[-2000:]}")
        return json.loads(done.stdout)

    def load(self, server, shape):
        clients = SHAPES[shape]
        warm = self.put(server, clients, WARM_UP_SECONDS, "/put/warm/")
        found = self.put(server, clients, self.seconds, "/put/")
        return found | {
            "acknowledged": warm["acknowledged"] + found["acknowledged"],
            "failed_puts": sum(warm["errors"].values()) + sum(found["errors"].values()),
            "slow_statements": server.words().count("Slow SQL"),
        }

    @staticmethod
    def keys(directory):
        path = os.path.join(directory, "app.db")
        measuring.intact(path)
        with contextlib.closing(sqlite3.connect(path)) as connection:
            return [key for (key,) in connection.execute("SELECT name FROM kine WHERE name GLOB '/put/*'")]

    def rows(self, directory):
        return len(self.keys(directory))

    def kill(self, side, directory, environment):
        server = self.begin(side, "", directory, environment, [])
        load = subprocess.Popen(self.command(server, 16, PATIENCE_SECONDS, "/put/", "-acks"), stdout=subprocess.PIPE, text=True)
        # A server that stalls would have this wait for ever.
        giving_up = threading.Timer(PATIENCE_SECONDS, load.kill)
        giving_up.start()
        acknowledged, enough = set(), 500 if self.options.quick else 2000
        for line in load.stdout:
            if line.startswith("ack ") and line.endswith("\n"):
                acknowledged.add(line.split()[1])
                if len(acknowledged) == enough:
                    time.sleep(random.uniform(0, 0.02))
                    server.kill()
                    load.kill()
        giving_up.cancel()
        load.wait()
        if len(acknowledged) < enough:
            server.kill()
            raise Failure(f"{side}: only {len(acknowledged)} puts returned in {PATIENCE_SECONDS} s: {server.words()[-2000:]}")
        # kine itself opens what the kill left: it makes a checkpoint and a VACUUM.
        self.begin(side, "", directory, environment, []).stop()
        return len(acknowledged), acknowledged - set(self.keys(directory))


if __name__ == "__main__":
    options = measuring.options(__doc__, list(SHAPES))
    sys.exit(measuring.measure(Kine(options, 1 if options.quick else 5), options))
