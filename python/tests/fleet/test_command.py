"""The command: its answers, its messages, and what it makes of names that nobody expects."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import unittest
import unittest.mock

import table_files
from fleets import JOJ, FleetTest, call, command, even, planted, process, work

#: The first lines of a program for which a few rows are too many for memory.
LARGE = "import sys, joj.__main__, joj.engines; joj.engines.MEMORY_ROWS = 0\n"


class Command(FleetTest):
    def test_it_says_what_is_wrong(self) -> None:
        for arguments, told in [
            ([work() / "nowhere"], "is no directory"),
            (["a" * 5000], "cannot read aaa"),
            ([""], "the name of a file or folder is empty"),
            ([self.folder()], "has no whole trace; `joj trace --export parquet=DIR` writes one"),
            ([even(), "--group-by", "colour"], "`colour` is no column and no label"),
            ([even(), "--compare", "app_version=1.0,9.9"], "no trace has app_version=9.9; there are 1.0, 2.0"),
            ([even(), "--compare", "app_version=1.0,1.0"], "app_version=1.0 is named twice"),
            ([even(), "--compare", "device=car-a,car-b"], "device cannot be compared by pairs of one device"),
            ([even(), "--compare", "device_id=a,b"], "device_id cannot be compared by pairs of one device"),
            ([even(), "--compare", "kind=commit,checkpoint"], "kind cannot be compared: all figures are those of commits"),
        ]:
            said = self.refused(*arguments)
            self.assertIn(told, said)
            self.assertEqual(said.count("\n"), 1, said)

    def test_a_wrong_command_line_is_one(self) -> None:
        for arguments, told in [
            (["--compare", "app_version"], "is no comparison"),
            (["--group-by", ","], "names no key"),
            (["--memory", "abc"], "is no amount of memory"),
            (["--memory", "1GB'; --"], "is no amount of memory"),
            (["--threads", "-1"], "is no number of threads"),
            (["--threads", "0"], "is no number of threads"),
            (["--threads", "100000"], "take 1 to 1024"),
            (["--threads", "1" * 5000], "take 1 to 1024"),
        ]:
            self.assertIn(told, self.refused(even(), *arguments, code=2))

    def test_a_key_that_is_named_twice_is_one(self) -> None:
        self.assertEqual(command(even(), "--group-by", "device,device").returncode, 0)

    def test_text_json_and_page_say_the_same(self) -> None:
        page, answers = work() / "fleet.html", work() / "fleet.json"
        keys = ["--group-by", "device,app_version", "--compare", "app_version=1.0,2.0"]
        result = command(planted(), *keys, "--html", page, "--json", answers)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        said = json.loads(answers.read_text())
        self.assertEqual(said["totals"]["traces"], 154)
        self.assertEqual(said["comparison"][0]["verdict"], "regression")
        for text in (result.stdout, page.read_text()):
            self.assertIn("car-a", text)
            self.assertIn(f"{said['per_commit'][0]['kib_per_commit']:.3f}", text)
            self.assertIn("12 files or folders are left out", text)

    def test_a_page_and_json_of_one_name_are_refused_before_any_work(self) -> None:
        place = self.folder()
        page = place / "page"
        with contextlib.chdir(place):
            for one, other in ((page, page), (page, "page"), (page, place / "x" / ".." / "page"), ("./page", place / "link")):
                (place / "link").unlink(missing_ok=True)
                (place / "link").symlink_to("page")
                # A folder without a trace has another message.
                told = self.refused(place, "--html", one, "--json", other, code=2)
                self.assertIn(f"--html and --json name one file, {pathlib.Path(one)}: name two", told)
            page.touch()
            os.link(page, place / "hard")
            self.assertIn("name one file", self.refused(place, "--html", page, "--json", "hard", code=2))
            self.assertIn("--html - is no file", self.refused(place, "--html", "-", "--json", "-", code=2))

    def test_no_table_is_written_over(self) -> None:
        place = self.folder()
        table = place / "trace.parquet"
        table.write_bytes(b"PAR1 and the rest")
        for option in ("--html", "--json"):
            self.assertIn(f"{option} {table} would be written over a trace", self.refused(place, option, table, code=2))
        result = call("results", place, "--json", table)
        self.assertEqual((result.returncode, "written over a recording" in result.stderr), (2, True), result.stderr)
        self.assertEqual(table.read_bytes(), b"PAR1 and the rest")

    def test_json_has_no_word_that_is_not_json(self) -> None:
        def refuse(word: str):
            raise AssertionError(word)

        # One pair: no interval.
        place = self.copy(2)
        result = command(place, "--compare", "app_version=1.0,2.0", "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        said = json.loads(result.stdout, parse_constant=refuse)
        self.assertEqual({(row["devices"], row["low"], row["verdict"]) for row in said["comparison"]}, {(1, None, "too few")})

    def test_what_cannot_be_written_is_named(self) -> None:
        place = self.copy(1)
        for option in ("--json", "--html"):
            self.assertIn("cannot write /dev/full: No space left", process(place, option, "/dev/full").stderr)
            self.assertIn("cannot write /nowhere/x: No such file", process(place, option, "/nowhere/x").stderr)
        with open("/dev/full", "w") as full:
            line = [sys.executable, "-m", "joj", "fleet", "report", str(place)]
            ended = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual((ended.returncode, ended.stderr), (1, "joj: cannot write standard output: No space left on device\n"))

    def test_help_that_cannot_be_written_is_named(self) -> None:
        with open("/dev/full", "w") as full:
            line = [sys.executable, "-m", "joj", "fleet", "report", "--help"]
            ended = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual((ended.returncode, ended.stderr), (1, "joj: cannot write standard output: No space left on device\n"))

    def test_output_that_nobody_reads_ends_quietly(self) -> None:
        place = self.copy(1)
        for arguments in ([place], [place, "--json", "-"], ["--help"]):
            reader, writer = os.pipe()
            os.close(reader)
            line = [sys.executable, "-m", "joj", "fleet", "report", *map(str, arguments)]
            ended = subprocess.run(line, stdout=writer, stderr=subprocess.PIPE, text=True)
            os.close(writer)
            self.assertEqual((ended.returncode, ended.stderr), (141, ""), arguments)

    def test_streams_that_are_closed_give_no_traceback(self) -> None:
        place = self.copy(1)
        closed = "joj: cannot write standard output: Bad file descriptor\n"
        for arguments, streams, code, told in [
            (place, ">&-", 1, closed),
            (f"{place} --json -", ">&-", 1, closed),
            ("--help", ">&-", 1, closed),
            (place, ">&- 2>&-", 1, ""),
            # What is said is no answer: it is not to stand there instead.
            (place, "<&- >/dev/null 2>&-", 0, ""),
            (f"{planted()} --json -", "2>&- | tail -c 2", 0, "}\n"),
            ("nowhere", "2>&-", 1, ""),
            ("nowhere", "2>/dev/full", 1, ""),
            ("", "2>/dev/full", 2, ""),
        ]:
            line = f"set -o pipefail; {sys.executable} -m joj fleet report {arguments} {streams}"
            ended = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=work())
            self.assertEqual((ended.returncode, ended.stdout + ended.stderr), (code, told), (arguments, streams))

    def test_what_cannot_be_read_is_named_in_each_command(self) -> None:
        # Root may read everything: a name that is too long is refused to everybody.
        name = "a" * 5000
        for arguments in (("report", name), ("results", name)):
            ended = call(*arguments)
            self.assertEqual((ended.returncode, ended.stdout), (1, ""))
            self.assertRegex(ended.stderr, "^joj: cannot read a{5000}: File name too long; name what this user can read\n$")
        ended = call("export", name, "--out", self.folder() / "out", "--joj", JOJ)
        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stdout, "a{5000}: File name too long")

    def test_an_empty_name_is_not_the_working_directory(self) -> None:
        place = self.copy(1)
        with contextlib.chdir(place):
            for arguments in (("report", ""), ("results", ""), ("export", "", "--out", "x"), ("export", "runs", "--out", "")):
                ended = call(*arguments)
                self.assertEqual((ended.returncode, ended.stdout), (1, ""), arguments)
                self.assertIn("joj: the name of a file or folder is empty", ended.stderr)
            self.assertEqual(sorted(os.listdir()), ["commits", "runs"])

    def test_a_url_is_no_name_of_a_file_and_its_password_is_not_told(self) -> None:
        place = self.copy(1)
        url = "s3://key:secret@bucket/x"
        with contextlib.chdir(place):
            for arguments in (("results", url), ("export", url, "--out", "x"), ("export", "runs", "--out", url)):
                ended = call(*arguments)
                self.assertEqual((ended.returncode, ended.stdout), (1, ""), arguments)
                self.assertIn("joj: a URL is no name of a file or folder", ended.stderr)
                self.assertNotIn("secret", ended.stderr)
            self.assertEqual(sorted(os.listdir()), ["commits", "runs"])

    def test_a_working_directory_that_is_gone_is_named(self) -> None:
        place = self.folder() / "gone"
        place.mkdir()
        with contextlib.chdir(place):
            place.rmdir()
            for arguments in (("results", "x"), ("export", "x", "--out", "y")):
                self.assertIn("is below the working directory, which was removed", call(*arguments).stderr)

    def test_a_page_that_does_not_fit_is_gone(self) -> None:
        place, page = self.copy(1), self.folder() / "page.html"
        # 1,024 bytes are less than the page has, and than DuckDB's file of kept rows would have.
        program = "import sys, joj.fleet, joj.__main__; joj.fleet.SMALL_FILE_ROWS = 0; sys.exit(joj.__main__.main())"
        line = f"ulimit -f 1; trap '' XFSZ; exec {sys.executable} -c '{program}' fleet report {place} --html {page}"
        ended = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
        self.assertEqual((ended.returncode, page.exists()), (1, False), ended.stderr)
        self.assertIn(f"cannot write {page}: File too large", ended.stderr)

    def test_kept_rows_are_gone_afterwards(self) -> None:
        place, kept = self.copy(1), self.folder() / "it's"
        program = f"{LARGE}sys.exit(joj.__main__.main(['fleet', 'report', {str(place)!r}]))"

        def report() -> subprocess.CompletedProcess:
            line = [sys.executable, "-c", program]
            return subprocess.run(line, capture_output=True, text=True, env=os.environ | {"TMPDIR": str(kept)})

        self.assertIn(f"cannot make a folder in {kept}: No such file", report().stderr)
        kept.mkdir()
        ended = report()
        self.assertEqual((ended.returncode, ended.stderr, list(kept.iterdir())), (0, "", []))
        self.assertEqual(ended.stdout, command(place).stdout)

    def test_a_long_query_writes_no_progress(self) -> None:
        program = (
            "from joj.engines import connect\n"
            "engine = connect('duckdb').values('one', {'number': [1]}).get_backend()\n"
            "engine.raw_sql('SET progress_bar_time = 0')\n"
            "engine.raw_sql('CREATE TABLE many AS SELECT hash(range) FROM range(3000000)')"
        )
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "", ""))

    def test_a_killed_report_leaves_no_kept_rows(self) -> None:
        place, kept = self.copy(1), self.folder()
        program = (
            f"{LARGE}import os, signal, joj.report as report\n"
            "make = report.make\n"
            "report.make = lambda *asked: (make(*asked), os.kill(os.getpid(), signal.SIGKILL))\n"
            f"joj.__main__.main(['fleet', 'report', {str(place)!r}])"
        )
        ended = subprocess.run([sys.executable, "-c", program], env=os.environ | {"TMPDIR": str(kept)})
        self.assertEqual((ended.returncode, list(kept.iterdir())), (-signal.SIGKILL, []))

    def test_what_ends_a_report_of_a_directory_leaves_nothing(self) -> None:
        """Neither kept rows nor what DuckDB's memory does not hold, and nothing in the working directory at any time."""
        place, kept, here = self.copy(1), self.folder(), self.folder()
        program = (
            f"{LARGE}import os, signal, joj.engines as engines\n"
            "connect = engines._duckdb\n"
            "def spill_and_end(*options):\n"
            "    engine = connect('100MB', 2)\n"
            "    connection = engine.values('one', {'number': [1]}).get_backend()\n"
            "    connection.raw_sql('CREATE TEMP TABLE many AS SELECT hash(range) AS a, hash(range + 1) AS b FROM range(15000000)')\n"
            "    print(len(os.listdir()), sum(len(files) for _, _, files in os.walk(os.environ['TMPDIR'])) > 0)\n"
            "    sys.stdout.flush()\n"
            "    os.kill(os.getpid(), signal.SIGTERM)\n"
            "engines._duckdb = spill_and_end\n"
            f"joj.__main__._end(joj.__main__.main(['fleet', 'report', {str(place)!r}]))"
        )
        line = [sys.executable, "-c", program]
        ended = subprocess.run(line, capture_output=True, text=True, cwd=here, env=os.environ | {"TMPDIR": str(kept)})
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (130, "0 True\n", "joj: stopped\n"))
        self.assertEqual((list(kept.iterdir()), list(here.iterdir())), ([], []))

    def test_a_place_for_files_that_duckdb_cannot_use_is_named(self) -> None:
        place, kept = self.copy(1), self.folder()
        for name, told in ((b"\xff", "which is no UTF-8"), (b"a\\b", "no `\\` and no `?`"), (b"a?", "no `\\` and no `?`")):
            there = os.fsencode(kept) + b"/" + name
            os.mkdir(there)
            ended = process(place, TMPDIR=os.fsdecode(there))
            self.assertEqual((ended.returncode, ended.stdout, ended.stderr.count("\n")), (1, "", 1), ended.stderr)
            self.assertRegex(ended.stderr, f"^joj: TMPDIR is .*{re.escape(told)}")
            self.assertIn("name another place: TMPDIR=DIR", ended.stderr)

    def test_an_empty_place_for_files_is_not_the_working_directory(self) -> None:
        from joj import temporary

        with unittest.mock.patch.dict(os.environ, {"TMPDIR": ""}):
            self.assertEqual(temporary.place(), "/var/tmp")
        gone = self.folder() / "gone"
        gone.mkdir()
        with contextlib.chdir(gone), unittest.mock.patch.dict(os.environ, {"TMPDIR": "here"}):
            # Who goes to another directory finds his files again.
            self.assertEqual(temporary.place(), os.path.abspath("here"))
            place = even()
            gone.rmdir()
            self.assertIn("TMPDIR is here below a working directory that was removed", command(place).stderr)

    def test_ctrl_c_is_no_traceback(self) -> None:
        with unittest.mock.patch("joj.command.report.run", side_effect=KeyboardInterrupt):
            ended = command(even())
        self.assertEqual((ended.returncode, ended.stderr), (130, "joj: stopped\n"))

    def test_ctrl_c_while_a_library_is_imported_is_no_traceback(self) -> None:
        program = (
            "import os, runpy, signal, sys\n"
            "class Finder:\n"
            "    def find_spec(self, name, path, target=None):\n"
            "        if name == wanted:\n"
            # Python notes it where it passes such a text, as some libraries have.
            "            exec('os.kill(os.getpid(), signal.SIGINT)')\n"
            "wanted = sys.argv.pop(1)\n"
            "sys.meta_path.insert(0, Finder())\n"
            "runpy.run_module('joj', run_name='__main__', alter_sys=True)"
        )
        for name in ("argparse", "joj.command.line", "joj.engines", "ibis", "pyarrow", "duckdb"):
            line = [sys.executable, "-c", program, name, "fleet", "report", str(even())]
            ended = subprocess.run(line, capture_output=True, text=True)
            self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (130, "", "joj: stopped\n"), name)

    def test_the_package_imports_nothing_that_takes_long(self) -> None:
        program = "import sys, joj; print(*(name for name in sys.modules if name.partition('.')[0] in ('ibis', 'pyarrow', 'duckdb', 'argparse')))"
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        self.assertEqual((ended.returncode, ended.stdout.strip()), (0, ""))

    def test_what_comes_at_the_end_is_too_late_to_stop_anything(self) -> None:
        program = (
            "import atexit, os, signal, sys\n"
            "atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))\n"
            "import joj.__main__ as line\n"
            f"line._end(line.main(['fleet', 'report', {str(self.copy(1))!r}]))"
        )
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))

    def test_ctrl_c_ends_a_query(self) -> None:
        program = (
            "import os, signal, sys, threading, duckdb, joj.__main__, joj.command.report as report\n"
            "def run(_):\n"
            "    threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
            # Who asks computes then, and looks for signals: while others compute it may sleep until they are done.
            "    duckdb.sql('SET threads = 1')\n"
            "    duckdb.sql('SELECT sum(hash(range)) FROM range(100000000000000)').fetchall()\n"
            "report.run = run\n"
            "sys.exit(joj.__main__.main(['fleet', 'report', 'traces']))"
        )
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
        self.assertEqual((ended.returncode, ended.stderr), (130, "joj: stopped\n"))

    def test_labels_and_paths_do_nothing_to_a_terminal(self) -> None:
        place = self.copy(1)
        for path in place.glob("*/*.parquet"):
            rows, header = table_files.read(path)
            name = "\x1b[31mred\u202e"
            table_files.change(path, {"labels": {"device": name}}, {"device": [name] * rows.num_rows})
        bad = os.fsencode(place / "runs") + b"/\xff\x1b.parquet"
        with open(bad, "wb") as file:
            file.write(b"no table")
        page, answers = work() / "odd.html", work() / "odd.json"
        result = process(place, "--html", page, "--json", answers)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        for told in (result.stdout, page.read_text()):
            self.assertNotIn("\x1b", told)
            self.assertNotIn("\u202e", told)
            self.assertIn("\\u{1b}[31mred\\u{202e}", told)
            self.assertIn("\\u{dcff}", told)
        self.assertEqual(json.loads(answers.read_text())["per_commit"][0]["device"], "\x1b[31mred\u202e")

    def test_an_encoding_that_lacks_a_letter_is_no_error(self) -> None:
        place = self.copy(1)
        for path in place.glob("*/*.parquet"):
            rows, _ = table_files.read(path)
            table_files.change(path, {"labels": {"device": "日本"}}, {"device": ["日本"] * rows.num_rows})
        result = process(place, PYTHONIOENCODING="ascii")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("\\u65e5\\u672c", result.stdout)

    def test_spark_without_java_is_told(self) -> None:
        try:
            import pyspark  # noqa: F401
        except ImportError:
            told = "python3 -m pip install 'ibis-framework[pyspark]'"
        else:
            told = "it needs a JDK"
        result = process(even(), "--engine", "spark", PATH="/nonexistent", JAVA_HOME="")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertNotIn("Traceback", result.stderr)
        self.assertIn(told, result.stderr)

    @unittest.skipUnless(shutil.which("java"), "Spark needs a JDK (package default-jdk-headless), and there is no java")
    def test_a_master_that_is_none_is_told(self) -> None:
        result = process(even(), "--engine", "spark", "--master", "nonsense")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("is --master nonsense right?", result.stderr)
        self.assertNotIn("JDK", result.stderr)
