"""A file that is not whole is named, skipped and counted: whatever byte was changed, and whatever is missing."""

import contextlib
import gc
import json
import os
import pathlib
import random
import shutil
import socket
from collections.abc import Callable, Iterator
from unittest import mock

import pyarrow
import pyarrow.parquet
import table_files
from fleets import FleetTest, answers, command, load, names, planted


def inventory(*arguments):
    from joj.files import take_inventory

    return take_inventory(*arguments)


NO_NUMBER = (None, "5", -1, 1.5, True, [], {}, 2**64, float("nan"))
NO_TEXT = (None, 5, [], {}, True, "\ud800")
#: Of each word of a header, what joj does not write.
IMPOSSIBLE: dict[str, tuple[object, ...]] = {
    "version": (*NO_NUMBER[:-2], 0, 1),
    "writer": NO_TEXT,
    "table": (*NO_TEXT, "", "waits"),
    "rows": (*NO_NUMBER, 0),
    "span_ns": NO_NUMBER,
    "lost": NO_NUMBER[1:],
    "trace_id": (*NO_TEXT, "", "0" * 15, "0" * 17, "G" * 16, "2024-13-45"),
    "export_id": (*NO_TEXT, "", "0" * 15),
    "kernel": NO_TEXT,
    "labels": (None, 5, "a", [], [["device", "a"]], {"device": 5}, {"device": None}, {"device": ["a"]}, {"": "a"}, {"a b": "c"},
               {"device": "\udfff"}, {"kind": "a"}, {"trace_id": "a"}, {"Kernel": "a"}, {"DEVICE": "a"}, {"byte_length": "a"}),
    "filesystems": (None, 5, "ext4", {}, [None], [5]),
}

#: The engine keeps the rows of files with fewer: as it is, and of none.
SMALL_FILE_ROWS = (5_000, 0)


def first(place: pathlib.Path) -> pathlib.Path:
    return sorted((place / "commits").iterdir())[0]


def without_end(path: pathlib.Path) -> None:
    whole = path.read_bytes()
    end = end_of(whole)
    path.write_bytes(whole[:end] + bytes(len(whole) - 8 - end) + whole[-8:])


def without_rows(path: pathlib.Path) -> None:
    """All but ten of them: a whole file of its own."""
    rows, header = table_files.read(path)
    table_files.write(path, rows.slice(0, 10), header)


@contextlib.contextmanager
def changed_after_the_check(place: pathlib.Path, small_file_rows: int, change: Callable[[pathlib.Path], None]) -> Iterator[None]:
    """A fleet that is loaded meanwhile has its first file changed between the check and the engine."""

    def check_and_change(*arguments: object):
        found = inventory(*arguments)
        change(first(place))
        return found

    with mock.patch("joj.fleet.take_inventory", check_and_change), mock.patch("joj.fleet.SMALL_FILE_ROWS", small_file_rows):
        yield


def end_of(data: bytes) -> int:
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little")


class Damage(FleetTest):
    def test_damaged_files_are_named_and_counted(self) -> None:
        expected = answers(planted())
        found = load(planted()).inventory
        named = {problem.path for problem in found.problems if problem.reason.startswith("damaged")}
        self.assertEqual(named, set(expected["damaged"]))
        self.assertEqual((found.left_out, len(found.problems)), (6, 12))
        told = command(planted()).stdout
        self.assertIn("12 files or folders are left out, and with them 6 traces", told)
        for path in expected["damaged"]:
            self.assertIn(f"{path}: damaged: ", told)

    def test_any_flipped_bit_is_found(self) -> None:
        from joj.integrity import why_not_whole

        chance = random.Random(5)
        for table in ("commits", "runs"):
            path = next((self.copy() / table).iterdir())
            whole = path.read_bytes()
            self.assertIsInstance(why_not_whole(str(path), True), dict)
            end = end_of(whole)
            # Each byte of the end, and some of the rest.
            for at in (*range(end, len(whole)), *range(8), *(chance.randrange(8, end) for _ in range(300))):
                flipped = bytes([whole[at] ^ 1 << chance.randrange(8)])
                with open(path, "r+b") as file:
                    file.seek(at)
                    file.write(flipped)
                    file.flush()
                    self.assertIsInstance(why_not_whole(str(path), True), str, f"byte {at} of {table}")
                    file.seek(at)
                    file.write(whole[at : at + 1])

    def test_a_cut_file_and_a_longer_one_are_named_and_counted(self) -> None:
        for table in ("commits", "runs"):
            place = self.copy()
            path = next((place / table).iterdir())
            whole = path.read_bytes()
            end = end_of(whole)
            changed = [whole[:at] for at in (0, 3, 7, 8, 100, end, len(whole) // 2, len(whole) - 1)]
            for data in (*changed, whole + b"\0", whole[:end] + whole[end + 1 :], whole[:-8] + b"\xff\xff\xff\x7fPAR1"):
                path.write_bytes(data)
                found = inventory(place)
                self.assertEqual((found.traces, found.left_out), ([], 1), f"{len(data)} bytes of {table}")
                self.assertIn(str(path), [problem.path for problem in found.problems])
            path.write_bytes(whole)
            self.assertEqual(inventory(place).left_out, 0)

    def test_a_newer_file_is_refused_with_what_helps(self) -> None:
        place = self.copy()
        path = next((place / "runs").iterdir())
        table_files.change(path, {"version": 3, "writer": "joj 9.1.0"})
        told = self.refused(place)
        self.assertIn(f"{path} is of version 3 of the tables", told)
        self.assertIn("install the package of joj 9.1.0", told)

    def test_a_flipped_version_is_damage_and_no_newer_file(self) -> None:
        place = self.copy(2)
        path = sorted((place / "runs").iterdir())[0]
        path.write_bytes(path.read_bytes().replace(b'"version":2', b'"version":3'))
        found = inventory(place)
        self.assertEqual((len(found.traces), found.left_out), (1, 1))

    def test_an_older_file_is_named_with_what_to_do(self) -> None:
        place = self.copy(2)
        path = sorted((place / "runs").iterdir())[0]
        rows, header = table_files.read(path)
        old = {"joj_table": json.dumps({**header, "version": 1}, separators=(",", ":")), "joj_checksums": "{}"}
        pyarrow.parquet.write_table(rows.replace_schema_metadata(old), path)
        found = inventory(place)
        self.assertEqual((len(found.traces), found.left_out), (1, 1))
        self.assertIn("of version 1 of the tables, which this package does not read: export its trace again", found.problems[0].reason)

    def test_halves_of_two_exports_are_no_trace(self) -> None:
        place = self.copy()
        table_files.change(next((place / "runs").iterdir()), {"export_id": "0" * 16})
        found = inventory(place)
        self.assertEqual((found.traces, found.left_out, len(found.problems)), ([], 1, 2))
        self.assertIn("commits and runs are of two exports", found.problems[0].reason)

    def test_half_of_another_export_costs_no_whole_trace(self) -> None:
        for other in ("a", "z"):
            for table in ("commits", "runs"):
                place = self.copy()
                shutil.copytree(place / table, place / other / table)
                half = next((place / other / table).iterdir())
                table_files.change(half, {"export_id": "0" * 16})
                found = inventory(place)
                self.assertEqual((len(found.traces), found.left_out), (1, 0), (other, table))
                whole = found.traces[0].files[table]
                self.assertEqual(whole, str(place / table / half.name))
                told = [(problem.path, problem.reason) for problem in found.problems]
                self.assertEqual(told, [(str(half), f"the same trace as {whole}, of another export")])

    def test_a_header_that_joj_does_not_write_is_damage(self) -> None:
        place = self.copy(2)
        for table in ("commits", "runs"):
            path = place / table / names()[0]
            whole, (rows, header) = path.read_bytes(), table_files.read(path)
            for key in header:
                changed = [{**header, key: value} for value in IMPOSSIBLE[key]]
                for one in (*changed, {other: header[other] for other in header if other != key}):
                    table_files.write_text(path, rows, json.dumps(one))
                    self.assert_damaged(place, path, f"{key}: {one.get(key, 'is not there')!r}")
            for text in ("", "[", "null", "[]", "7", '"a"', "[" * 100_000, '{"version":1e999}', '{"version":' + "9" * 5000 + "}"):
                table_files.write_text(path, rows, text)
                self.assert_damaged(place, path, text[:40])
            path.write_bytes(whole)
        self.assertEqual(len(inventory(place).traces), 2)

    def test_checksums_that_joj_does_not_write_are_damage(self) -> None:
        place = self.copy(2)
        path = place / "runs" / names()[0]
        rows, header = table_files.read(path)
        table_files.write(path, rows, header)
        told = json.dumps({**header, "rows": rows.num_rows}, separators=(",", ":"))
        own = json.loads(pyarrow.parquet.read_metadata(path).metadata[b"joj_checksums"])
        group = own["groups"][0]
        groups = [None, {}, "a", [None], [[]], [["a", 1]], [[group[0], None]], [[-1, 0], group], [], [group * 2]]
        changed = [None, [], 7, {}, *({**own, "header": value} for value in (None, "a", -1, [])), *({**own, "groups": one} for one in groups)]
        for check in ("full", "footer"):
            for one in changed:
                table_files.write_text(path, rows, told, json.dumps(one))
                self.assert_damaged(place, path, repr(one), check)
        table_files.write_text(path, rows, told, json.dumps(own))
        self.assertEqual(len(inventory(place).traces), 2)

    def test_columns_that_joj_does_not_write_are_damage(self) -> None:
        place = self.copy(2)
        path = place / "commits" / names()[0]
        rows, header = table_files.read(path)
        place_of = rows.schema.get_field_index("written_bytes")
        none = pyarrow.field("written_bytes", pyarrow.int64())
        text = pyarrow.field("written_bytes", pyarrow.string(), nullable=False)
        for changed in (
            rows.drop_columns(["kind"]),
            rows.set_column(place_of, text, rows["written_bytes"].cast("string")),
            rows.set_column(place_of, none, rows["written_bytes"]),
            rows.set_column(place_of, text.with_type(pyarrow.timestamp("us")), rows["written_bytes"].cast(pyarrow.timestamp("us"))),
        ):
            table_files.write(path, changed, header)
            self.assert_damaged(place, path, str(changed.schema.field(place_of)))
        # A later joj may write more of them.
        table_files.write(path, rows.append_column("later", rows["kind"]), header)
        self.assertEqual(len(inventory(place).traces), 2)

    def test_the_columns_are_those_that_joj_writes(self) -> None:
        from joj.headers import COLUMNS

        for table in ("commits", "runs"):
            schema = table_files.read(self.copy(1) / table / names()[0])[0].schema
            is_text = [field.name for field in schema if field.type == pyarrow.string()]
            numbers = [field.name for field in schema if field.type == pyarrow.int64() and not field.nullable]
            optional = [field.name for field in schema if field.type == pyarrow.int64() and field.nullable]
            self.assertEqual([sorted(known.split()) for known in COLUMNS[table]], [sorted(is_text), sorted(numbers), sorted(optional)])

    def assert_damaged(self, place: pathlib.Path, path: pathlib.Path, what: str, check: str = "full") -> None:
        """One of two traces is left out, because of this file."""
        found = inventory(place, check)
        self.assertEqual((len(found.traces), found.left_out), (1, 1), what)
        reason = next(problem.reason for problem in found.problems if problem.path == str(path))
        self.assertRegex(reason, "^damaged: |is of version 1 of the tables", what)

    def test_folders_are_the_users_and_a_second_copy_of_a_trace_does_not_count(self) -> None:
        from joj import questions

        place = self.copy()
        (place / "device=wrong/day=1").mkdir(parents=True)
        (place / "runs").rename(place / "device=wrong/day=1/runs")
        fleet = load(place)
        self.assertEqual((len(fleet.inventory.traces), fleet.inventory.problems), (1, []))
        self.assertNotEqual(fleet.rows(questions.flushes(fleet))[0]["device"], "wrong")
        shutil.copytree(place / "commits", place / "again")
        found = load(place).inventory
        self.assertEqual(len(found.traces), 1)
        self.assertIn("the same trace as", found.problems[0].reason)

    def test_paths_are_no_patterns(self) -> None:
        from joj import questions

        for name, beside in (("a*", "ab"), ("a?", "ab"), ("[ab]", "a"), ("{a,b}", "a"), ("a\\b", "ab"), ("a b%20", "ab"),
                             ("a\\*", "ab"), ("\\[a]", "a"), ("\udcff", "a")):
            place = self.folder()
            self.copy(1, place / name)
            # The same trace beside it: read as well, it would count twice.
            self.copy(1, place / beside)
            fleet = load(place)
            self.assertEqual(len(fleet.inventory.traces), 1)
            self.assertEqual(fleet.rows(questions.per_commit(fleet))[0]["commits"], 200, name)

    def test_a_name_that_is_a_pattern_costs_no_other_trace_its_answer(self) -> None:
        from joj import questions

        place = self.copy(4)
        odd = ("\\", "a\\*", "[a]", "\udcff")
        for number, name in enumerate(odd):
            for table in ("commits", "runs"):
                (place / table / names()[number]).rename(place / table / f"{name}.parquet")
        for small_file_rows in SMALL_FILE_ROWS:
            with mock.patch("joj.fleet.SMALL_FILE_ROWS", small_file_rows):
                fleet = load(place)
                self.assertEqual((len(fleet.inventory.traces), fleet.inventory.problems), (4, []))
                self.assertEqual(sum(row["commits"] for row in fleet.rows(questions.per_commit(fleet))), 800)

    def test_links_to_odd_names_are_gone_with_the_fleet(self) -> None:
        links = self.folder()
        with mock.patch.dict(os.environ, {"TMPDIR": str(links)}):
            fleet = load(self.copy(1, self.folder() / "a*"))
            runs = fleet.runs
            del fleet
            gc.collect()
            self.assertEqual(len(list(links.iterdir())), 1)
            self.assertGreater(runs.count().execute(), 0)
            del runs
            gc.collect()
            self.assertEqual(list(links.iterdir()), [])

    def test_what_spark_passes_over_is_named(self) -> None:
        from functools import partial

        from joj.engines import why_not_taken

        place = self.copy(3)
        for number, name in enumerate(("_a", "\udcff")):
            (place / "runs" / names()[number]).rename(place / "runs" / f"{name}.parquet")
        self.assertEqual(len(inventory(place).traces), 3)
        found = inventory(place, "full", partial(why_not_taken, "spark"))
        self.assertEqual((len(found.traces), found.left_out, len(found.problems)), (1, 2, 4))
        self.assertIn("Spark passes over files", found.problems[0].reason)
        self.assertIn("is no UTF-8", found.problems[1].reason)

    def test_what_is_no_file_is_named_and_not_opened(self) -> None:
        place = self.copy(1)
        os.mkfifo(place / "pipe.parquet")
        (place / "device.parquet").symlink_to("/dev/zero")
        with contextlib.chdir(place), socket.socket(socket.AF_UNIX) as server:
            server.bind("socket.parquet")
            found = inventory(place)
        told = [(os.path.basename(problem.path), problem.reason) for problem in found.problems]
        self.assertEqual(told, [(f"{what}.parquet", f"it is a {what}, and no file") for what in ("device", "pipe", "socket")])
        self.assertEqual((len(found.traces), found.left_out), (1, 0))

    def test_a_pipe_that_takes_a_name_meanwhile_keeps_nobody_waiting(self) -> None:
        from joj.integrity import why_not_whole

        pipe = self.folder() / "pipe.parquet"
        os.mkfifo(pipe)
        with mock.patch("os.stat", return_value=os.stat(__file__)):
            self.assertIsInstance(why_not_whole(str(pipe), True), str)

    def test_links_are_followed_once_and_what_cannot_be_read_is_named(self) -> None:
        place, elsewhere = self.folder(), self.copy(1)
        (place / "day").symlink_to(elsewhere)
        (place / "again").symlink_to(place)
        (place / "gone.parquet").symlink_to(place / "nowhere")
        found = inventory(place)
        self.assertEqual(len(found.traces), 1)
        self.assertEqual([(problem.path, problem.reason) for problem in found.problems],
                         [(str(place / "gone.parquet"), "cannot be read: No such file or directory")])
        self.assertEqual(found.left_out, 0)

    def test_a_folder_that_cannot_be_read_is_named(self) -> None:
        place = self.copy(1)
        locked = place / "locked"
        locked.mkdir()
        scan = os.scandir

        def refuse(path):
            if str(path) == str(locked):
                raise PermissionError(13, "Permission denied", str(locked))
            return scan(path)

        # Root reads everything: the refusal is made.
        with mock.patch("os.scandir", refuse):
            found = inventory(place)
        self.assertEqual((len(found.traces), [problem.path for problem in found.problems]), (1, [str(locked)]))

    def test_files_that_are_no_trace_are_no_trace_left_out(self) -> None:
        place = self.copy(1)
        pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), place / "foreign.parquet")
        (place / "notes.parquet").write_text("no Parquet file at all")
        part = place / "runs" / f"{names()[0]}.4711-0.part"
        part.write_bytes(b"PAR1")
        found = inventory(place)
        self.assertEqual((len(found.traces), found.left_out, len(found.problems)), (1, 0, 3))
        self.assertIn("no table of joj's", {problem.path: problem.reason for problem in found.problems}[str(place / "foreign.parquet")])
        (place / "runs" / names()[0]).unlink()
        found = inventory(place)
        self.assertEqual((len(found.traces), found.left_out, len(found.problems)), (0, 1, 4))

    def test_what_is_packed_or_called_otherwise_is_named(self) -> None:
        place = self.copy(4)
        packed = ((place / "runs" / names()[0], ".gz"), (place / "commits" / names()[1], ".zst"), (place / "runs" / names()[2], ".bak"))
        for path, ending in packed:
            path.rename(f"{path}{ending}")
        for name in ("day.tar.gz", "day.zip", "A.PARQUET", "notes.csv", "README", f".{names()[3]}.crc"):
            (place / name).touch()
        found = inventory(place)
        self.assertEqual((len(found.traces), found.left_out), (1, 3))
        told = {os.path.relpath(problem.path, place): problem.reason for problem in found.problems if "no whole file" not in problem.reason}
        endings = {f"{path.relative_to(place)}{ending}": ending for path, ending in packed[:2]} | {"day.tar.gz": ".gz", "day.zip": ".zip"}
        reasons = {name: f"it is packed ({ending}), and not looked into: unpack it" for name, ending in endings.items()}
        renamed = "its name does not end with .parquet: rename it, if it is whole"
        self.assertEqual(told, reasons | {f"runs/{names()[2]}.bak": renamed, "A.PARQUET": renamed})
        self.assertIn(f"{names()[0]}.gz: it is packed", command(place).stdout)

    def test_a_folder_with_the_name_of_a_table_is_a_folder(self) -> None:
        place = self.copy(1)
        (place / "runs").rename(place / "day.parquet")
        (place / "commits").rename(place / "day.parquet.gz")
        found = inventory(place)
        self.assertEqual((len(found.traces), found.problems), (1, []))

    def test_what_changes_after_the_check_is_named(self) -> None:
        from joj import JojError, questions

        for small_file_rows in SMALL_FILE_ROWS:
            place = self.copy(2)
            with changed_after_the_check(place, small_file_rows, without_end), self.assertRaises(JojError) as raised:
                fleet = load(place)
                fleet.rows(questions.per_commit(fleet))
            self.assertIn(f"duckdb stopped at {first(place)}: ", str(raised.exception))
            self.assertRegex(str(raised.exception), "; it was changed after the check: ask again$")

    def test_rows_that_the_engine_does_not_read_are_noticed(self) -> None:
        from joj import JojError

        for small_file_rows in SMALL_FILE_ROWS:
            place = self.copy(2)
            expected = inventory(place).rows("commits")
            left = expected - table_files.read(first(place))[0].num_rows + 10
            with changed_after_the_check(place, small_file_rows, without_rows):
                told = f"reads {left} rows of commits, and the files have {expected}.*{first(place).name}"
                self.assertRaisesRegex(JojError, told, load, place)

    def test_small_files_are_read_once(self) -> None:
        from joj import JojError, questions

        place = self.copy(2)
        fleet = load(place)
        asked = [questions.per_commit(fleet), questions.flushes(fleet, ["journal_mode"]), questions.files(fleet)]
        before = [fleet.rows(table) for table in asked]
        without_rows(first(place))
        next((place / "runs").iterdir()).unlink()
        self.assertEqual([fleet.rows(table) for table in asked], before)
        # What no question looks at is in the files alone.
        self.assertRaisesRegex(JojError, "duckdb stopped at .*cannot be read", fleet.rows, fleet.runs.select("disk"))

    def test_a_fleet_is_loaded_with_the_rows_that_were_checked(self) -> None:
        from joj import JojError
        from joj.files import Inventory

        with mock.patch.object(Inventory, "rows", lambda inventory, table: 1):
            self.assertRaisesRegex(JojError, "and the files have 1: one of the files was changed", load, self.copy(1))

    def test_impossible_values_of_a_device_cost_no_other_its_answer(self) -> None:
        place = self.copy(40)
        for table, columns in (("commits", {"duration_ns": -9, "written_bytes": -7}), ("runs", {"issued_ns": 1 - 2**63, "completed_ns": 2**63 - 1})):
            path = place / table / names()[0]
            rows = table_files.read(path)[0].num_rows
            table_files.change(path, {}, {name: [value] * rows for name, value in columns.items()})
        # A check of all bytes would leave these out.
        result = command(place, "--check", "footer", "--compare", "app_version=1.0,2.0", "--json", "-")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        flush_ns = [row["flush_ns"] for row in json.loads(result.stdout)["flushes"]]
        self.assertGreater(max(flush_ns), 2**63)

    def test_an_engine_that_takes_no_values_is_told(self) -> None:
        import duckdb

        from joj import JojError, questions

        def refuse(*_: object) -> None:
            raise duckdb.OutOfMemoryException("no room")

        fleet = load(self.copy(1))
        object.__setattr__(fleet.engine, "values", refuse)
        self.assertRaisesRegex(JojError, "duckdb stopped: no room", questions.wal_instead, fleet)
        self.assertRaisesRegex(JojError, "duckdb stopped: no room", questions.per_commit, fleet, ["app_version"])

    def test_bytes_that_were_not_looked_at_give_no_traceback(self) -> None:
        place = self.copy(2)
        path = sorted((place / "commits").iterdir())[0]
        whole = path.read_bytes()
        path.write_bytes(whole[:4] + b"\xff" * 2000 + whole[2004:])
        told = self.refused(place, "--check", "footer")
        self.assertIn(f"{path}: damaged: row group 0 is not what was written; `--check full` leaves it out", told)
        self.assertEqual(command(place).returncode, 0)
