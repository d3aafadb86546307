"""A fleet in a bucket says what the same fleet says in a directory; what cannot be fetched is named, and nothing stays behind. `make soak` asks.

The bucket is that of moto, a server of S3's protocol on loopback, in an environment of its own.
"""

import functools
import gc
import io
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import unittest
import urllib.parse
import urllib.request
from collections.abc import Callable
from unittest import mock

import environments
from fleets import FleetTest, command, even, generate, names, work

TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", pathlib.Path(__file__).resolve().parents[3] / "target"))
MOTO = ["moto[s3,server]==5.2.5"]
SERVER = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(*server.get_host_and_port(), flush=True)
sys.stdin.read()
"""
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "made-up", "AWS_SECRET_ACCESS_KEY": "made-up"}
#: moto looks at the name, not at the signature.
AUTHORIZATION = "AWS4-HMAC-SHA256 Credential=made-up/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
#: An object's name may have all of this.
FOLDER = "a b+%20 [é]"
TRACES = 16
#: With more threads the quantiles of two reports differ.
ALIKE = ("--threads", "1", "--json", "-")


@functools.cache
def fleet() -> pathlib.Path:
    """With a damaged file of every eighth trace, in folders with names of their own, and what is still being written."""
    place = generate("bucket", "--fleet", str(TRACES), "--damaged", str(TRACES // 8), "--seed", "5")
    (place / "commits").rename(place / FOLDER)
    (place / "1.part").mkdir()
    (place / "1.part/x.parquet").touch()
    (place / "0123456789abcdef.parquet.part").touch()
    return place


class BucketTest(FleetTest):
    """A server with the fleet in the bucket `fleets`."""

    @classmethod
    def setUpClass(cls) -> None:
        environment = TARGET / "s3-environment"
        try:
            environments.make(environment, MOTO)
        except environments.NoNetwork as error:
            raise unittest.SkipTest(f"no environment with moto: {error}") from error
        line = [environment / "bin/python", "-c", SERVER]
        cls.server = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        cls.addClassCleanup(cls.end)
        cls.address = ":".join(cls.server.stdout.readline().split())
        cls.enterClassContext(mock.patch.dict(os.environ, {**CREDENTIALS, "AWS_EC2_METADATA_DISABLED": "true"}))
        cls.put("fleets")
        for path in sorted(path for path in fleet().rglob("*") if path.is_file()):
            cls.put(f"fleets/of/{path.relative_to(fleet())}", path.read_bytes())

    @classmethod
    def end(cls) -> None:
        cls.server.communicate()

    @classmethod
    def put(cls, name: str, data: bytes = b"", method: str = "PUT") -> None:
        headers = {"Content-Type": "application/octet-stream", "Authorization": AUTHORIZATION}
        request = urllib.request.Request(f"http://{cls.address}/{urllib.parse.quote(name)}", data, headers, method=method)
        urllib.request.urlopen(request, timeout=60).close()

    def setUp(self) -> None:
        # Where the copies are, and nothing else.
        self.place = self.folder()
        self.enterContext(mock.patch.dict(os.environ, {"TMPDIR": str(self.place)}))

    def url(self, rest: str = "fleets/of", address: str | None = None) -> str:
        return f"s3://{rest}?endpoint_override={address or self.address}&scheme=http"

    def left(self) -> list[pathlib.Path]:
        gc.collect()
        return list(self.place.iterdir())

    def meanwhile(self, change: Callable[[], None]) -> None:
        """Something happens between the listing and the fetching, in this test."""
        from joj import objects

        def reach(*arguments):
            reached = objects.reach(*arguments)
            change()
            return reached

        self.enterContext(mock.patch("joj.fleet.reach", reach))


class Bucket(BucketTest):
    def test_it_says_what_the_directory_says(self) -> None:
        expected = json.loads(command(fleet(), *ALIKE).stdout)
        self.assertEqual(expected["totals"]["traces"], TRACES - TRACES // 8)
        for check in ("full", "footer"):
            result = command(self.url(), "--check", check, *ALIKE)
            self.assertEqual(result.returncode, 0, result.stderr)
            first, *problems = result.stderr.splitlines()
            told = rf"joj: fetches {2 * TRACES} files, 0\.\d MiB, of s3://fleets/of into {self.place}/joj-fleet-\w+, which is removed"
            self.assertRegex(first, told)
            self.assertEqual(len(problems), 1 + len(expected["problems"]))
            found = json.loads(result.stdout.replace("s3://fleets/of/", f"{fleet()}/"))
            for said in (expected, found):
                said["problems"].sort(key=lambda problem: (problem["path"], problem["reason"]))
            self.assertEqual(found, expected)
            self.assertEqual(self.left(), [])

    def test_tables_are_there_as_long_as_somebody_has_them(self) -> None:
        import joj

        loaded = joj.load(self.url())
        rows, commits = loaded.inventory.rows("commits"), loaded.commits.filter(loaded.commits.flushes >= 0)
        del loaded
        self.assertEqual(len(self.left()), 1)
        self.assertEqual(commits.count().execute(), rows)
        del commits
        self.assertEqual(self.left(), [])

    def test_a_name_may_have_anything(self) -> None:
        """As it stands, and as a URL has it; beside it lies another folder, of which nothing is read."""
        name = names()[0]
        for folder in ("of#2", "my fleet", "é", "100%", "[a]", "a\\b", "%zz"):
            for table in ("commits", "runs"):
                self.put(f"fleets/{folder}/{table}/{name}", (even() / table / name).read_bytes())
            for written in (folder, urllib.parse.quote(folder)):
                result = command(self.url(f"fleets/{written}"), "--json", "-")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(json.loads(result.stdout)["totals"]["traces"], 1, written)

    def test_a_name_that_the_client_does_not_ask_for_is_named(self) -> None:
        name = names()[0]
        self.put("names")
        for place in ("x/../commits", "x//runs", "./commits", "commits", "runs"):
            self.put(f"names/f/{place}/{name}", (even() / place.rpartition("/")[2] / name).read_bytes())
        said = json.loads(command(self.url("names/f"), "--json", "-").stdout)
        self.assertEqual(said["totals"]["traces"], 1)
        left_out = {problem["path"]: problem["reason"] for problem in said["problems"]}
        self.assertEqual(set(left_out), {f"s3://names/f/{place}/{name}" for place in ("x/../commits", "x//runs", "./commits")})
        self.assertEqual(set(left_out.values()), {"cannot be fetched: a part of its name is empty, `.` or `..`; copy it to another name"})

    def test_what_vanishes_or_changes_meanwhile_is_named(self) -> None:
        names = sorted(path.name for path in (fleet() / "runs").iterdir())[:3]
        whole = [(fleet() / "runs" / name).read_bytes() for name in names]
        self.addCleanup(lambda: [self.put(f"fleets/of/runs/{name}", data) for name, data in zip(names, whole, strict=True)])

        def change() -> None:
            self.put(f"fleets/of/runs/{names[0]}", method="DELETE")
            self.put(f"fleets/of/runs/{names[1]}", whole[1][:-1])
            # As many bytes, and not those that were written.
            self.put(f"fleets/of/runs/{names[2]}", whole[2][:100] + b"changed" + whole[2][107:])

        self.meanwhile(change)
        said = json.loads(command(self.url(), "--json", "-").stdout)
        problems = {problem["path"]: problem["reason"] for problem in said["problems"]}
        for name, reason in zip(names, ("it was removed after it was listed", "it was changed meanwhile", "is not what was written"), strict=True):
            self.assertIn(reason, problems[f"s3://fleets/of/runs/{name}"])
            self.assertEqual(problems[f"s3://fleets/of/{FOLDER}/{name}"], "its trace has no whole file of runs")
        self.assertEqual(said["totals"]["traces_left_out"], TRACES // 8 + 3 + 1)

    def test_where_nothing_more_comes_there_is_no_answer(self) -> None:
        self.put("gone")
        for number in range(25):
            self.put(f"gone/{number:016x}.parquet", b"PAR1")
        self.meanwhile(lambda: [self.put(f"gone/{number:016x}.parquet", method="DELETE") for number in range(1, 25)])
        said = self.refused(self.url("gone"))
        self.assertRegex(said, r"joj: 20 objects of s3://gone in a row cannot be fetched, the last one s3://gone/0{14}14.parquet: it was removed")
        self.assertEqual(self.left(), [])

    def test_it_says_what_is_wrong(self) -> None:
        for url, told in [
            (self.url("nowhere/x"), "cannot list s3://nowhere/x: .*; name a bucket that is there"),
            (self.url("fleets/nowhere"), "cannot list s3://fleets/nowhere: .*; name a folder that is there"),
            (self.url("user:secret@fleets/nowhere"), "cannot list s3://fleets/nowhere: "),
            ("s3://user:sec/ret@fleets/x", "this s3:// is no URL, as no bucket has a `:`; write / and @ of a password"),
            (self.url("fleets/of#3"), "cannot list s3://fleets/of#3: .*; name a folder that is there"),
            (self.url("fleets/of") + "#2", "cannot list s3://fleets/of: "),
            (self.url("fleets/of?x/y"), "cannot list s3://fleets/of: Unexpected query parameter .*; write . of a name as %3F"),
            (self.url("fleets/\udcff"), "cannot list s3://fleets/"),
            (self.url("fleets/of", "127.0.0.1:9"), "Failed to connect to 127.0.0.1:9.*; is the network there"),
            ("ftp://host/x", "Unrecognized filesystem type in URI: ftp://host/x; take s3://, gs://, hdfs:// or file://"),
        ]:
            said = self.refused(url)
            self.assertRegex(said, told)
            self.assertNotIn("sec", said)
            # On a busy machine it may take a second.
            lines = [line for line in said.splitlines() if not line.startswith("joj: lists ")]
            self.assertEqual(len(lines), 1, said)
        self.put("empty")
        self.addCleanup(self.put, "empty", method="DELETE")
        self.assertIn("s3://empty has no whole trace", self.refused(self.url("empty")))
        self.assertEqual(self.left(), [])

    def test_credentials_that_are_none_are_named(self) -> None:
        # From the next request on.
        self.put("moto-api/reset-auth", b"0", method="POST")
        self.addCleanup(self.put, "moto-api/reset-auth", b"inf", method="POST")
        self.assertRegex(self.refused(self.url()), "cannot list s3://fleets/of: .*; AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, say")

    def test_without_hadoop_that_is_said(self) -> None:
        # A process of its own: a JDK is looked for once.
        result = self.process("hdfs://127.0.0.1:9/fleet", JAVA_HOME="/nowhere", HADOOP_HOME="/nowhere")
        self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (1, "", 1), result.stderr)
        self.assertIn("cannot list hdfs://127.0.0.1:9/fleet", result.stderr)
        self.assertRegex(result.stderr, r"hdfs:// needs (a JDK|Hadoop) \(")

    def process(self, *arguments: object, before: str = "", **environment: str) -> subprocess.CompletedProcess:
        line = [sys.executable, "-c", before + "import sys, joj.__main__; sys.exit(joj.__main__.main())", "fleet", "report", *map(str, arguments)]
        return subprocess.run(line, capture_output=True, text=True, cwd=work(), env={**os.environ, **environment})

    def test_spark_is_refused(self) -> None:
        said = self.refused(self.url(), "--engine", "spark")
        self.assertIn("joj: s3://fleets/of: Spark's workers do not see what is fetched", said)

    def test_without_room_nothing_is_left(self) -> None:
        with mock.patch("shutil.disk_usage", return_value=shutil._ntuple_diskusage(1, 1, 1000)):
            said = self.refused(self.url())
        self.assertRegex(said, rf"[\d,]+ bytes of s3://fleets/of are to be fetched, and 1,000 are free; make room in {self.place}")
        self.assertEqual(self.left(), [])
        # No file may be longer: what is there does not end as it should.
        limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)); "
        result = self.process(self.url(), before=limit)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertRegex(result.stderr, r"joj: cannot write .*: File too large; make room")
        self.assertEqual(self.left(), [])

    def test_what_ends_it_leaves_nothing(self) -> None:
        """Also where the server says nothing any more."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            line = [sys.executable, "-m", "joj", "fleet", "report", self.url()]
            started = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=work())
            self.assertIn("joj: fetches", started.stderr.readline())
            if number == signal.SIGTERM:
                self.server.send_signal(signal.SIGSTOP)
                self.addCleanup(self.server.send_signal, signal.SIGCONT)
            started.send_signal(number)
            # The client would try for 100 s.
            told, said = started.communicate(timeout=60)
            self.server.send_signal(signal.SIGCONT)
            self.assertEqual((started.returncode, told, said), (130, "", "joj: stopped\n"))
            self.assertEqual(self.left(), [])


class Url(FleetTest):
    """Without a server of S3."""

    def test_a_file_url_is_a_directory(self) -> None:
        place = self.folder()
        self.copy(1, place / "a")
        # Beside the one without it.
        for name in ("a#b", "a b", "é", "a?b", "100%", "[a]"):
            self.copy(2, place / name)
            # Only what follows a `?` would be options.
            written = f"file://{place}/{name.replace('?', '%3F')}"
            for url in (written, (place / name).as_uri(), written.replace("file", "FILE")):
                result = command(url, *ALIKE)
                self.assertEqual(result.stdout, command(place / name, *ALIKE).stdout, url)
                self.assertEqual(result.returncode, 0, result.stderr)

    def test_it_says_what_is_wrong(self) -> None:
        for url, told in [
            ("file:///nowhere", "/nowhere is no directory"),
            (f"file://{work()}?x=y", r"a file:// has no options; write \? of a name as %3F"),
            ("file://", "file:// names no directory of this machine; write file:///FOLDER"),
            ("file://host/x", "file://host/x names no directory of this machine"),
            ("s3://", "s3:// names no bucket; write s3://BUCKET/FOLDER"),
            ("s3://?scheme=http", "s3:// names no bucket"),
            ("s3:///x", "s3:// names no bucket"),
            ("s3://user:secret@/x", "s3:// names no bucket"),
            ("gs://", "gs:// names no bucket"),
            ("s3://user:12/secret@bucket", "this s3:// is no URL, as no bucket has a `:`"),
            ("s3://127.0.0.1:9000/x", "another server as .endpoint_override=HOST:PORT"),
            ("s3://us:secret@er@bucket/x", "this s3:// is no URL; write / and @ of a password"),
            ("FTP://host/x y", "Unrecognized filesystem type in URI: ftp://host/x y; take s3://, gs://, hdfs:// or file://"),
        ]:
            said = self.refused(url)
            self.assertRegex(said, told)
            self.assertNotIn("secret", said)
            lines = [line for line in said.splitlines() if not line.startswith("joj: lists ")]
            self.assertEqual(len(lines), 1, said)

    def test_what_ends_it_ends_it_while_a_server_is_asked_that_answers_nothing(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            url = f"s3://bucket/of?endpoint_override=127.0.0.1:{server.getsockname()[1]}&scheme=http"
            environment = {**os.environ, **CREDENTIALS, "AWS_EC2_METADATA_DISABLED": "true"}
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                line = [sys.executable, "-m", "joj", "fleet", "report", url]
                started = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
                self.addCleanup(started.wait)
                self.addCleanup(started.kill)
                self.assertEqual(started.stderr.readline(), "joj: lists s3://bucket/of\n")
                started.send_signal(number)
                # The client would try for longer.
                told, said = started.communicate(timeout=60)
                self.assertEqual((started.returncode, told, said), (130, "", "joj: stopped\n"))


class Shown(unittest.TestCase):
    def test_who_sits_there_sees_how_far_it_is(self) -> None:
        from joj.command import fetching
        from joj.objects import Progress

        steps = [Progress("s3://b", "/f", 9, 9 << 20, done, done << 20) for done in range(10)]
        for is_terminal, seconds, lines in ((True, 0.5, 8), (True, 0.05, 0), (False, 0.5, 0)):
            said = io.StringIO()
            said.isatty = lambda is_terminal=is_terminal: is_terminal
            times = iter(step * seconds for step in range(10))
            with mock.patch("sys.stderr", said), mock.patch("time.monotonic", lambda times=times: next(times)):
                shown = fetching.Shown()
                for step in steps:
                    shown(step)
            first, _, rest = said.getvalue().partition("\n")
            self.assertIn("joj: fetches 9 files, 9.0 MiB, of s3://b into /f", first)
            self.assertEqual(rest.count("\r"), lines, rest)
            self.assertEqual(rest.endswith("\r9 of 9 files, 9.0 of 9.0 MiB\n"), lines > 0, rest)


if "JOJ_SOAK_SECONDS" not in os.environ:
    # It takes 18 s of processor time.
    del Bucket
