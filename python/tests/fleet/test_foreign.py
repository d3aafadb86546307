"""Files with right checksums that joj does not write: they are damaged, and no engine sees them."""

import dataclasses
import json
import pathlib
from unittest import mock

import pyarrow
import table_files
from fleets import FleetTest, load, names


def foreign_columns(rows: pyarrow.Table) -> dict[str, pyarrow.Table]:
    """Rows whose columns joj does not write, by what is told of them."""
    column = rows["kind"].combine_chunks()
    number = pyarrow.array([1] * rows.num_rows)

    def further(name: str, values: pyarrow.Array, nullable: bool = False) -> pyarrow.Table:
        return rows.append_column(pyarrow.field(name, values.type, nullable), values)

    within = pyarrow.StructArray.from_arrays([column], fields=[pyarrow.field("trace_id", column.type, nullable=False)])
    return {
        "'DEVICE' is none that joj writes": further("DEVICE", column),
        "'Kind' is none that joj writes": further("Kind", column),
        "'\u212aind' is none": further("\u212aind", column),
        "has the column device twice": further("device", column),
        "has the column later twice": rows.append_column("later", number).append_column("later", number),
        "'' is none": further("", column),
        "'a.b' is none": further("a.b", column),
        "'a b' is none": further("a b", column),
        "'inner.trace_id' is none": further("inner", within),
        "'later' is none that joj writes": further("later", number.cast("int32")),
        "'later' is none that joj writes ": further("later", number.cast("float64")),
        "'later' is none that joj writes  ": further("later", number.cast(pyarrow.time64("ns"))),
        "'later.list.element' is none": further("later", pyarrow.array([[1]] * rows.num_rows)),
    }


#: How pyarrow can pack a file that an engine cannot read.
FOREIGN_PACKING = {
    "BROTLI": {"compression": "brotli"},
    "LZ4": {"compression": "lz4"},
    "BYTE_STREAM_SPLIT": {"use_dictionary": False, "column_encoding": {"written_bytes": "BYTE_STREAM_SPLIT"}},
}
#: And how both can.
KNOWN_PACKING = [
    *({"compression": name} for name in ("none", "snappy", "gzip", "zstd")),
    {"use_dictionary": False},
    {"use_dictionary": False, "column_encoding": {"written_bytes": "DELTA_BINARY_PACKED", "kind": "DELTA_BYTE_ARRAY"}},
    {"data_page_version": "2.0"},
]


#: Of a row, what joj does not write, and what is told of it: by table and column.
FOREIGN_ROWS: dict[str, list[tuple[str, object, str]]] = {
    "commits": [
        *((name, -9, f"its rows say -9 for `{name}`, and that is a number, 0 or more") for name in
          ("duration_ns", "written_bytes", "journal_of_journal_bytes", "flushes", "fsyncs", "sqlite_work")),
        ("kind", "vacuum", "its rows say 'vacuum' for `kind`, and that is one of commit, checkpoint, recovery"),
        ("kind", "", "its rows say '' for `kind`"),
        ("journal_mode", "WAL", "its rows say 'WAL' for `journal_mode`"),
        ("sync_mode", "extra", "its rows say 'extra' for `sync_mode`, and that is one of full, normal, none, empty"),
    ],
    "runs": [
        *((name, -9, f"its rows say -9 for `{name}`, and that is a number, 0 or more") for name in
          ("issued_ns", "completed_ns", "byte_length", "sqlite_work")),
        ("issued_ns", 2**63 - 1, "a request of its rows was complete before it was issued"),
        ("operation", "erase", "its rows say 'erase' for `operation`"),
    ],
}
for of_table in FOREIGN_ROWS.values():
    of_table += [(name, "other", f"its rows say 'other' for `{name}`, and its header says '") for name in
                 ("trace_id", "device", "device_id", "kernel", "sqlite_build", "labels")]


def with_value(path: pathlib.Path, column: str, value: object) -> None:
    """Writes a file anew with this value in one of its rows."""
    rows, _ = table_files.read(path)
    values = rows[column].to_pylist()
    values[rows.num_rows // 2] = value
    table_files.change(path, {}, {column: values})


def no_text(path: pathlib.Path, column: str) -> None:
    """Writes a file anew with texts that are no UTF-8 in a column."""
    rows, header = table_files.read(path)
    place = rows.schema.get_field_index(column)
    values = pyarrow.array([b"a\xff"] * rows.num_rows, pyarrow.binary()).view(pyarrow.string())
    table_files.write(path, rows.set_column(place, rows.schema.field(place), values), header)


class Foreign(FleetTest):
    def assert_damaged(self, place: pathlib.Path, path: pathlib.Path, told: str, check: str = "full") -> None:
        """One of two traces is left out, because of this file."""
        from joj.files import take_inventory

        found = take_inventory(place, check)
        self.assertEqual((len(found.traces), found.left_out), (1, 1), told)
        reason = next(problem.reason for problem in found.problems if problem.path == str(path))
        self.assertRegex(reason, "^damaged: ")
        self.assertIn(told.strip(), reason)

    def test_further_columns_are_called_and_typed_as_joj_does_it(self) -> None:
        place = self.copy(2)
        path = place / "commits" / names()[0]
        rows, header = table_files.read(path)
        for told, changed in foreign_columns(rows).items():
            table_files.write(path, changed, header)
            for check in ("full", "footer"):
                self.assert_damaged(place, path, told, check)

    def test_columns_of_a_later_joj_cost_no_answer(self) -> None:
        from joj import questions

        place = self.copy(3)
        for number in (1, 0, 2):
            path = place / "commits" / names()[number]
            rows, header = table_files.read(path)
            later = pyarrow.array([number] * rows.num_rows)
            table_files.write(path, rows.append_column("later_2", later).append_column("other", rows["kind"]), header)
            for small_file_rows in (5_000, 0):
                with mock.patch("joj.fleet.SMALL_FILE_ROWS", small_file_rows):
                    fleet = load(place)
                    self.assertEqual(sum(row["commits"] for row in fleet.rows(questions.per_commit(fleet))), 600)

    def test_what_not_every_engine_unpacks_is_damage(self) -> None:
        from joj import questions

        place = self.copy(2)
        path = place / "commits" / names()[0]
        rows, header = table_files.read(path)
        for told, packing in FOREIGN_PACKING.items():
            table_files.write(path, rows, header, **packing)
            for check in ("full", "footer"):
                self.assert_damaged(place, path, f" is packed with {told}, which not every engine reads", check)
        for packing in KNOWN_PACKING:
            table_files.write(path, rows, header, **packing)
            fleet = load(place)
            self.assertEqual(sum(row["commits"] for row in fleet.rows(questions.per_commit(fleet))), 400, packing)

    def test_words_to_an_engine_in_the_metadata_are_damage(self) -> None:
        place = self.copy(2)
        path = place / "runs" / names()[0]
        rows, header = table_files.read(path)
        for key, value in (("org.apache.spark.sql.parquet.row.metadata", "{}"), ("geo", "no JSON")):
            table_files.write_text(path, rows, json.dumps(header), further={key: value})
            self.assert_damaged(place, path, f"its metadata has '{key[:10]}")

    def test_a_row_that_joj_does_not_write_is_damage(self) -> None:
        place = self.copy(2)
        for table, changes in FOREIGN_ROWS.items():
            path = place / table / names()[0]
            whole = path.read_bytes()
            for number, (column, value, told) in enumerate(changes):
                with_value(path, column, value)
                # Rows that are kept in memory or in a file, and rows that stay in their files.
                small, memory = ((5_000, 1_000_000), (5_000, 0), (5_000, 500), (0, 0))[number % 4]
                with mock.patch("joj.fleet.SMALL_FILE_ROWS", small), mock.patch("joj.engines.MEMORY_ROWS", memory):
                    self.assert_left_out(place, path, f"damaged: {told}")
                path.write_bytes(whole)
        self.assertEqual(load(place).inventory.problems, [])

    def assert_left_out(self, place: pathlib.Path, path: pathlib.Path, told: str) -> None:
        """A report of two traces leaves out one, because of this file, and answers for the other one."""
        from joj import questions

        fleet = load(place)
        self.assertEqual((len(fleet.inventory.traces), fleet.inventory.left_out), (1, 1), told)
        reasons = {problem.path: problem.reason for problem in fleet.inventory.problems}
        self.assertEqual(len(reasons), 2)
        self.assertIn(told, reasons.pop(str(path)))
        self.assertRegex(*reasons.values(), "its trace has no whole file of")
        self.assertEqual(sum(row["commits"] for row in fleet.rows(questions.per_commit(fleet))), 200)

    def test_rows_are_left_alone_where_the_end_of_a_file_is_checked(self) -> None:
        place = self.copy(2)
        with_value(place / "commits" / names()[0], "duration_ns", -9)
        self.assertEqual(len(load(place, check="footer").inventory.traces), 2)

    def test_an_application_is_that_of_the_label(self) -> None:
        place = self.copy(2)
        for table in ("commits", "runs"):
            path = place / table / names()[0]
            labels = table_files.read(path)[1]["labels"]
            table_files.change(path, {"labels": labels | {"application": "mail"}})
        path = place / "commits" / names()[0]
        self.assert_left_out(place, path, "for `application`, and its header says 'mail'")
        table_files.change(path, {}, {"application": ["mail"] * table_files.read(path)[0].num_rows})
        self.assertEqual(load(place).inventory.problems, [])

    def test_labels_with_any_letters_are_those_of_the_rows(self) -> None:
        place = self.copy(1)
        labels = {"device": 'a"\\/\b\n\x01\x7f\u2028é日\U0001f600', "Z": "", "a": "'"}
        for path in place.glob("*/*.parquet"):
            table_files.change(path, {"labels": labels})
        self.assertEqual(load(place).inventory.problems, [])

    def test_a_second_copy_counts_where_the_first_one_is_damaged(self) -> None:
        place = self.copy(2)
        self.copy(2, place / "z")
        with_value(place / "commits" / names()[0], "kind", "vacuum")
        found = load(place).inventory
        self.assertEqual((len(found.traces), found.left_out, len(found.problems)), (2, 0, 4))
        self.assertIn(str(place / "z/commits" / names()[0]), [trace.files["commits"] for trace in found.traces])

    def test_what_stops_an_engine_is_left_out(self) -> None:
        place = self.copy(6)
        no_text(place / "commits" / names()[0], "file_path")
        no_text(place / "runs" / names()[3], "file_type")
        table_files.spoil(place / "runs" / names()[4])
        for check in ("full", "footer"):
            fleet = load(place, check=check)
            self.assertEqual((len(fleet.inventory.traces), fleet.inventory.left_out), (3, 3))
            told = {problem.path: problem.reason for problem in fleet.inventory.problems if "no whole file" not in problem.reason}
            self.assertEqual(len(told), 3)
            for path, reason in told.items():
                what = "" if names()[4] in path else "UTF-?8"
                self.assertRegex(reason, f"^damaged: duckdb cannot read it: .*{what}")

    def test_an_engine_that_reads_nothing_any_more_damages_no_file(self) -> None:
        import duckdb

        from joj import JojError, engines

        for error in (duckdb.OutOfMemoryException("Out of Memory Error: no room"), duckdb.Error("it has ended")):
            def connect(*_: object, error: Exception = error, **options: object):
                def refuse(*_: object) -> None:
                    raise error

                return dataclasses.replace(engines.connect("duckdb"), fetch=refuse)

            with mock.patch("joj.fleet.connect", connect):
                self.assertRaisesRegex(JojError, f"duckdb stopped: {error}", load, self.copy(2))
