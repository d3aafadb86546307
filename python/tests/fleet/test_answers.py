"""Counts and sums are those that were planted; quantiles are within their stated error; labels may be called anything."""

import pathlib
from unittest import mock

import table_files
from fleets import BY, FleetTest, answers, command, even, load, names, planted

#: Quantiles, and how far the rank of each may be off: docs/fleet.md says so.
RANK_ERRORS = {"p50": (0.5, 0.02), "p99": (0.99, 0.005)}
KIB = 1024


def check_sums(test: FleetTest, fleet, place: pathlib.Path) -> None:
    """All that is exact, beside answers.json."""
    from joj import questions

    expected = answers(place)
    found = {f"{row['device']} {row['app_version']}": row for row in fleet.rows(questions.per_commit(fleet, BY))}
    for row in fleet.rows(questions.flushes(fleet, BY)):
        found[f"{row['device']} {row['app_version']}"].update(row)
    test.assertEqual(set(found), set(expected["groups"]))
    for name, sums in expected["groups"].items():
        row = found[name]
        exact = {key: row[key] for key in ("traces", "commits", "written_bytes", "checkpoint_bytes", "flushes", "flush_ns")}
        test.assertEqual(exact, {key: sums[key] for key in exact}, name)
        means = {
            "kib_per_commit": sums["written_bytes"] / KIB,
            "kib_with_checkpoints": (sums["written_bytes"] + sums["checkpoint_bytes"]) / KIB,
            "joj_kib_per_commit": sums["journal_of_journal_bytes"] / KIB,
            "flushes_per_commit": sums["commit_flushes"],
            "fsync_share": sums["fsync_commits"],
        }
        for metric, total in means.items():
            test.assertAlmostEqual(row[metric], total / sums["commits"], delta=1e-9 * (1 + row[metric]), msg=f"{name} {metric}")
    whole = expected["whole"]
    modes = {f"{row['journal_mode']} {row['sync_mode']}": row["commits"] for row in fleet.rows(questions.modes(fleet))}
    test.assertEqual(modes, whole["modes"])
    by_name = {row["application"]: row["commits"] for row in fleet.rows(questions.applications(fleet))}
    test.assertEqual(by_name, whole["applications"])
    files = {row["file_path"]: row["written_bytes"] for row in fleet.rows(questions.files(fleet))}
    test.assertEqual(files, whole["files"])
    durations = fleet.commits.filter(fleet.commits.kind == "commit").duration_ns.sum().name("ns").as_table()
    test.assertEqual(fleet.rows(durations)[0]["ns"], whole["duration_ns"])
    check_totals(test, fleet, expected)
    check_wal(test, fleet, expected["models"])


def check_totals(test: FleetTest, fleet, expected: dict) -> None:
    from joj import report

    totals = report.make(fleet, ["device"]).totals
    whole = expected["whole"]
    unknown = totals["traces_without_device_id"]
    test.assertEqual((totals["traces"], totals["devices"] + unknown), (whole["traces"], expected["devices"]))
    test.assertEqual(unknown, sum(not trace.labels.get("device_id") for trace in fleet.inventory.traces))
    test.assertAlmostEqual(totals["days"], whole["span_ns"] / 86_400e9)


def check_wal(test: FleetTest, fleet, models: dict) -> None:
    from joj import questions

    found = {row["device"]: row for row in fleet.rows(questions.wal_instead(fleet))}
    test.assertEqual(set(found), set(models))
    test.assertTrue(any(row["saved_mib_per_day"] is None for row in found.values()), "each model has WAL")
    for model, sums in models.items():
        row, days = found[model], sums["span_ns"] / 86_400e9
        wal_commits = sums["commits"] - sums["rollback_commits"]
        test.assertEqual((row["rollback_commits"], row["wal_commits"]), (sums["rollback_commits"], wal_commits), model)
        test.assertAlmostEqual(row["days"], days)
        if not wal_commits or not sums["rollback_commits"]:
            test.assertIsNone(row["saved_mib_per_day"], model)
            continue
        wal_each = (sums["written_bytes"] - sums["rollback_bytes"] + sums["checkpoint_bytes"]) / wal_commits
        saved = (sums["rollback_bytes"] - wal_each * sums["rollback_commits"]) / KIB / KIB / days
        test.assertAlmostEqual(row["saved_mib_per_day"], saved, places=6, msg=model)


def check_quantiles(test: FleetTest, fleet, exact) -> None:
    """Each lies between the exact values of a rank that is a little lower and a little higher."""
    from joj import questions

    of_commits, of_flushes = durations(exact)
    for table, values_of, prefix in (
        (questions.per_commit(fleet, BY), of_commits, "commit"),
        (questions.flushes(fleet, BY), of_flushes, "flush"),
    ):
        for row in fleet.rows(table):
            values = sorted(values_of[row["device"], row["app_version"]])
            for name, (rank, error) in RANK_ERRORS.items():
                column = f"{prefix}_{name}_ms"
                low, high = (values[place(len(values), rank + way * error)] / 1e6 for way in (-1, 1))
                test.assertTrue(low <= row[column] <= high, f"{row}: {low} <= {column} <= {high}")


def durations(fleet) -> list[dict[tuple[str, str], list[int]]]:
    """By device and version: of each commit, and of each flush."""
    from joj.fleet import with_names

    commits = fleet.commits_by(BY)
    commits = commits.filter(commits.kind == "commit").mutate(took=lambda table: table.duration_ns)
    runs = fleet.runs_by(BY)
    runs = runs.filter(runs.operation == "flush").mutate(took=lambda table: table.completed_ns - table.issued_ns)
    found = []
    for table in (commits, runs):
        values: dict[tuple[str, str], list[int]] = {}
        for row in fleet.rows(with_names(table, BY).select(*BY, "took")):
            values.setdefault((row["device"], row["app_version"]), []).append(row["took"])
        found.append(values)
    return found


def place(count: int, rank: float) -> int:
    return max(0, min(count - 1, round(rank * count)))


class Answers(FleetTest):
    def test_counts_and_sums_are_exact_and_quantiles_within_their_error(self) -> None:
        # Of the last one the engine reads the files at each question, as those of longer traces.
        for made, small_file_rows in ((planted(), 5_000), (even(), 5_000), (even(), 0)):
            with mock.patch("joj.fleet.SMALL_FILE_ROWS", small_file_rows):
                fleet = load(made)
            check_sums(self, fleet, made)
            check_quantiles(self, fleet, fleet)

    def test_checkpoints_are_in_a_column_that_says_so(self) -> None:
        sums = answers(even())["models"]
        self.assertGreater(sums["server-a"]["checkpoint_bytes"], 0)
        self.assertEqual(sums["car-b"]["checkpoint_bytes"], 0)
        from joj import questions

        fleet = load(even())
        by_kind = fleet.rows(questions.per_commit(fleet, ["kind"]))
        self.assertEqual([(row["kind"], row["commits"] > 0, row["kib_with_checkpoints"]) for row in by_kind],
                         [("checkpoint", False, None), ("commit", True, None)])

    def test_labels_may_be_called_like_columns_of_an_answer(self) -> None:
        from joj import questions

        place = self.copy(4)
        for number, path in enumerate(sorted([*place.glob("*/*.parquet")], key=lambda path: path.stem)):
            table_files.change(path, {"labels": {"device": "A", "device_id": "1", "commits": "many", "Traces": "B", "kib": str(number // 2 % 2)}})
        fleet = load(place)
        for key, value, column in [("kib", "1", "kib"), ("commits", "many", "label_commits"), ("Traces", "B", "label_Traces")]:
            traces = 2 if key == "kib" else 4
            rows = fleet.rows(questions.per_commit(fleet, [key]))
            self.assertEqual([(row[column], row["traces"], row["commits"]) for row in rows][-1], (value, traces, 200 * traces), key)
            flushes = fleet.rows(questions.flushes(fleet, [key]))
            self.assertEqual([row.get(column, row.get(key)) for row in flushes][-1], value, key)
            self.assertEqual(len(fleet.rows(questions.modes(fleet, [key]))) > 0, True, key)
        from joj.comparison import compare

        self.assertRaisesRegex(Exception, "no trace has commits=few; there are", compare, fleet, "commits", "many", "few")

    def test_labels_that_differ_in_capitals_are_not_both_grouped_by(self) -> None:
        from joj import JojError, questions

        place = self.copy(2)
        for path in place.glob("*/*.parquet"):
            table_files.change(path, {"labels": {"app": "1", "App": "2"}})
        fleet = load(place)
        self.assertRaisesRegex(JojError, "`app` and `App` are one name", questions.per_commit, fleet, ["app", "App"])
        self.assertRaisesRegex(JojError, "no key to group by", questions.per_commit, fleet, [])

    def test_a_device_is_a_model_and_a_number(self) -> None:
        from joj import report

        place = self.copy(4)
        for path in place.glob("*/*.parquet"):
            model = "A" if path.stem < sorted(one.stem for one in (place / "runs").iterdir())[2] else "B"
            table_files.change(path, {"labels": {"device": model, "device_id": "1"}})
        totals = report.make(load(place), ["device"]).totals
        self.assertEqual((totals["devices"], totals["traces_without_device_id"]), (2, 0))

    def test_a_trace_that_names_no_device_is_none_in_the_headline(self) -> None:
        place = self.copy(3)
        self.assertNotIn("name no device", command(place).stdout)
        for table in ("commits", "runs"):
            table_files.change(place / table / names()[0], {"labels": {"device": "A", "device_id": ""}})
            table_files.change(place / table / names()[1], {"labels": {"device": "A"}})
        page = self.folder() / "page.html"
        told = command(place, "--html", page).stdout
        for text in (told, page.read_text()):
            self.assertIn("3 traces of 1 devices (2 name no device), ", text)

    def test_flushes_outside_commits_are_in_a_group_of_their_own(self) -> None:
        from joj import questions

        place = self.copy(1)
        path = next((place / "runs").iterdir())
        rows, _ = table_files.read(path)
        flushes = [row == "flush" for row in rows["operation"].to_pylist()]
        # Every second flush is for nobody known.
        kept = [work if number % 2 else None for number, work in enumerate(rows["sqlite_work"].to_pylist())]
        table_files.change(path, {}, {"sqlite_work": kept})
        alone = sum(is_flush and work is None for is_flush, work in zip(flushes, kept, strict=True))
        fleet = load(place)
        found = {row["application"]: row["flushes"] for row in fleet.rows(questions.flushes(fleet, ["application"]))}
        self.assertEqual(found["(no commit)"], alone)
        self.assertEqual(sum(found.values()), sum(flushes))

    def test_sums_may_be_larger_than_64_bits(self) -> None:
        from joj import questions, report

        place = self.copy(2)
        largest = 2**63 - 1
        for path in place.glob("*/*.parquet"):
            rows, _ = table_files.read(path)
            name = "written_bytes" if path.parent.name == "commits" else "byte_length"
            table_files.change(path, {}, {name: [largest] * rows.num_rows})
        fleet = load(place)
        (row,) = fleet.rows(questions.per_commit(fleet))
        self.assertEqual(row["written_bytes"], largest * row["commits"])
        self.assertGreater(fleet.rows(questions.files(fleet))[0]["written_bytes"], largest)
        report.make(fleet, ["device"])

    def test_days_of_a_model_are_those_of_its_traces(self) -> None:
        from joj import questions

        alone = self.folder() / "alone"
        model = "phone-a"
        for table in ("commits", "runs"):
            (alone / table).mkdir(parents=True)
            for path in (even() / table).iterdir():
                if table_files.read(path)[1]["labels"]["device"] == model:
                    (alone / table / path.name).write_bytes(path.read_bytes())
        whole, part = load(even()), load(alone)
        of_whole = {row["device"]: row for row in whole.rows(questions.wal_instead(whole))}
        self.assertEqual(of_whole[model], part.rows(questions.wal_instead(part))[0])


class TwoFleets(FleetTest):
    def test_each_answers_for_itself(self) -> None:
        from joj import questions

        one, other = load(self.copy(1)), load(self.copy(3))
        counts = [sum(row["commits"] for row in fleet.rows(questions.per_commit(fleet))) for fleet in (one, other, one)]
        self.assertEqual(counts, [200, 600, 200])
