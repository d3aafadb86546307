"""Files with right checksums that joj does not write: they are damaged, and no engine sees them."""

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
