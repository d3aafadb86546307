"""A comparison finds what was planted, with its size, and where nothing changed it says so as often as it promises."""

import json
import math
import random

import pyarrow.compute
import table_files
from fleets import FleetTest, answers, command, even, generate, load, planted

#: What was planted: the factor, and where nothing was.
FACTORS = {"flushes_per_commit": 1.0}
#: How the logarithm of a device's ratio may be spread where nothing changed: in all of these either way is as likely.
SPREADS = {
    "normal": lambda chance: chance.gauss(0, 0.3),
    "two values": lambda chance: chance.choice((-0.3, 0.3)),
    "rare and large": lambda chance: chance.choice((-3, 3)) if chance.random() < 0.1 else chance.gauss(0, 0.05),
    "heavy tails": lambda chance: chance.gauss(0, 0.3) / math.sqrt(chance.gammavariate(1, 1)),
    "most are the same": lambda chance: chance.choice((-0.5, 0.5)) if chance.random() < 0.3 else 0.0,
}
DEVICES = (2, 5, 13, 14, 17, 25)
ROUNDS = 120


def verdicts(chance: random.Random, devices: int, spread, factor: float, zeros: float = 0.0) -> list[str]:
    """Of one comparison: each metric has devices of its own. A share of the devices has 0 in one of the versions."""
    from joj.comparison import METRICS, difference

    told = []
    for metric in METRICS:
        pairs = []
        for _ in range(devices):
            level = math.exp(chance.gauss(0, 1))
            pair = [level, level * factor * math.exp(spread(chance))]
            if chance.random() < zeros:
                pair[chance.randrange(2)] = 0.0
            pairs.append((pair[0], pair[1]))
        told.append(difference(metric, pairs).verdict)
    return told


class Comparison(FleetTest):
    def test_the_planted_regression_is_found_with_its_size_and_no_other(self) -> None:
        from joj.comparison import compare

        for row in compare(load(planted()), "app_version", "1.0", "2.0"):
            factor = FACTORS.get(row.metric, answers(planted())["regression"])
            self.assertEqual(row.verdict, "none" if factor == 1 else "regression", row)
            self.assertEqual((row.devices, row.left_out), (answers(planted())["pairs"], 0))
            self.assertTrue(row.low <= factor <= row.high and abs(row.ratio / factor - 1) < 0.1, row)

    def test_a_label_may_be_called_like_a_figure(self) -> None:
        from joj.comparison import METRICS, compare

        labels = (*METRICS, "commits", "traces", "keys", "values", "label_device", "label_device_id", "label_app_version")
        place = self.copy(40)
        for path in place.glob("*/*.parquet"):
            own = table_files.read(path)[1]["labels"]
            table_files.change(path, {"labels": own | {label: f"v{own.get('app_version', '')}" for label in labels}})
        # With more threads the quantiles of two questions may differ.
        fleet = load(place, threads=1)
        expected = compare(fleet, "app_version", "1.0", "2.0")
        self.assertGreater(expected[0].devices, 10)
        for label in labels:
            self.assertEqual(compare(fleet, label, "v1.0", "v2.0"), expected, label)

    def test_devices_that_are_in_no_pair_are_counted(self) -> None:
        place = self.copy(40)
        by_device: dict[str, dict[str, str]] = {}
        for path in (place / "commits").iterdir():
            labels = table_files.read(path)[1]["labels"]
            if "device_id" in labels:
                by_device.setdefault(labels["device_id"], {})[labels["app_version"]] = path.name
        whole = [there for _, there in sorted(by_device.items()) if len(there) == 2]
        alone = [there for there in by_device.values() if len(there) == 1]

        def change(name: str, what) -> None:
            for table in ("commits", "runs"):
                what(place / table / name)

        def without_commits(path) -> None:
            rows, header = table_files.read(path)
            table_files.write(path, rows.filter(pyarrow.compute.not_equal(rows["kind"], "commit")), header)

        def without_device(path) -> None:
            rows, header = table_files.read(path)
            header["labels"].pop("device_id")
            table_files.change(path, header, {"device_id": [""] * rows.num_rows})

        # One loses its first version, three their second; two have no commits of one version, and one has none at all.
        for there, versions, how in zip(whole, ("1.0", "2.0", "2.0", "2.0", "1.0", "2.0", "both"), "lllloon", strict=False):
            for version in ("1.0", "2.0") if versions == "both" else (versions,):
                if how == "l":
                    change(there[version], lambda path: path.unlink())
                else:
                    without_commits(place / "commits" / there[version])
        unknown = whole[7]
        change(unknown["1.0"], without_device)
        change(unknown["2.0"], without_device)
        self.assertEqual(alone, [])
        before = sum("device_id" not in table_files.read(path)[1]["labels"] for path in (place / "commits").iterdir()) - 2
        page, answers = self.folder() / "page.html", self.folder() / "answers.json"
        told = command(place, "--compare", "app_version=1.0,2.0", "--html", page, "--json", answers)
        said = json.loads(answers.read_text())
        sides = {"compared": len(whole) - 8, "only_before": 3, "only_after": 1, "without_commits": 3, "traces_without_device_id": 2}
        self.assertEqual((said["comparison_devices"], before), ([sides], 0))
        self.assertEqual({row["devices"] + row["left_out"] for row in said["comparison"]}, {sides["compared"]})
        for text in (told.stdout, page.read_text()):
            self.assertIn("Devices of the comparison, and those that it leaves out", text)
            self.assertIn("without_commits", text)
        # What only commits know.
        told = command(place, "--compare", "journal_mode=wal,delete", "--json", answers)
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertEqual(json.loads(answers.read_text())["comparison_devices"][0]["without_commits"], 0)

    def test_that_nothing_can_be_paired_is_told_with_numbers(self) -> None:
        place = self.copy(2)
        path = next(path for path in (place / "commits").iterdir() if table_files.read(path)[1]["labels"]["app_version"] == "2.0")
        rows, header = table_files.read(path)
        table_files.write(path, rows.slice(0, 0), header)
        told = self.refused(place, "--compare", "app_version=1.0,2.0")
        self.assertIn("0 devices have 1.0 alone, 0 have 2.0 alone, and 1 have no commits of one of them", told)

    def test_versions_with_unequal_numbers_of_commits_get_no_verdict(self) -> None:
        from joj.comparison import compare

        for version in ("1.0", "2.0"):
            for share, verdicts in ((0.95, {"none", "regression"}), (0.8, {"unequal"})):
                place = self.copy(80)
                for path in (place / "commits").iterdir():
                    rows, header = table_files.read(path)
                    if header["labels"].get("app_version") == version:
                        table_files.write(path, rows.slice(0, int(share * rows.num_rows)), header)
                for row in compare(load(place), "app_version", "1.0", "2.0"):
                    checkpoints = row.metric == "kib_with_checkpoints"
                    self.assertIn(row.verdict, {"unequal"} if checkpoints else verdicts, row)
                    self.assertEqual(row.low is None, row.verdict == "unequal")
                    ratio = row.commits_after / row.commits_before
                    self.assertAlmostEqual(ratio if version == "2.0" else 1 / ratio, share, delta=0.05)

    def test_none_is_found_where_none_is(self) -> None:
        from joj.comparison import compare

        fleets = [even(), *(generate(f"small-{seed}", "--fleet", "30", "--regression", "1", "--seed", str(seed)) for seed in range(20, 24))]
        for place in fleets:
            for row in compare(load(place), "app_version", "1.0", "2.0"):
                self.assertEqual(row.verdict, "none", f"{place.name}: {row}")

    def test_checkpoints_are_judged_where_each_device_has_as_many_commits(self) -> None:
        from joj.comparison import _with_commits, difference

        found = difference("kib_with_checkpoints", [(1.0, 1.25)] * 20)
        for commits, verdict in (([(64, 64)] * 20, "regression"), ([(64, 64)] * 19 + [(63, 64)], "unequal")):
            self.assertEqual(_with_commits(found, commits).verdict, verdict)

    def test_of_few_devices_nothing_is_said(self) -> None:
        from joj.comparison import PAIRS_MIN, difference

        few = [(1.0, 1.5)] * (PAIRS_MIN - 1)
        self.assertEqual(difference("any", few).verdict, "too few")
        self.assertEqual(difference("any", [*few, (1.0, 1.5)]).verdict, "regression")
        self.assertEqual(difference("any", []).verdict, "too few")

    def test_false_verdicts_are_as_rare_as_is_said(self) -> None:
        """No more than the stated share of comparisons calls anything a change: for each spread, and each number of devices."""
        from joj.comparison import ERROR

        chance = random.Random(11)
        for name, spread in SPREADS.items():
            for zeros in (0.0, 0.2):
                false = 0
                for devices in DEVICES:
                    of_size = sum(set(verdicts(chance, devices, spread, 1, zeros)) - {"none", "too few"} != set() for _ in range(ROUNDS))
                    self.assertLessEqual(of_size, upper(ROUNDS, ERROR), f"{name}, {devices} devices, zeros {zeros}")
                    false += of_size
                self.assertLessEqual(false, ROUNDS * len(DEVICES) * ERROR, f"{name}, zeros {zeros}")

    def test_a_change_that_each_device_has_is_found(self) -> None:
        chance = random.Random(12)
        small = lambda chance: chance.gauss(0, 0.05)  # noqa: E731
        for devices in (20, 40):
            for factor, verdict in ((1.25, "regression"), (0.8, "improvement")):
                for _ in range(20):
                    self.assertEqual(set(verdicts(chance, devices, small, factor)), {verdict}, f"{devices} {factor}")

    def test_what_is_0_before_or_after_counts(self) -> None:
        from joj.comparison import difference

        for before, after, ratio, verdict in [
            ([40.0] * 50, [0.0] * 50, 0.0, "improvement"),
            ([0.0] * 50, [40.0] * 50, None, "regression"),
            ([40.0] * 50, [0.0] * 40 + [40.1] * 10, 0.2005, "improvement"),
            ([0.0] * 50, [0.0] * 50, None, "none"),
        ]:
            told = difference("joj_kib_per_commit", list(zip(before, after, strict=True)))
            self.assertEqual((told.devices, told.verdict), (50, verdict), told)
            if ratio is None:
                self.assertIsNone(told.ratio, told)
            else:
                self.assertAlmostEqual(told.ratio, ratio, places=6, msg=told)

    def test_the_slow_devices_are_the_outliers(self) -> None:
        from joj.outliers import outliers

        # Of 60 traces each model has six devices: too few to say what is usual, though one is slow.
        few = generate("few", "--fleet", "60", "--seed", "3")
        self.assertEqual(answers(few)["outliers"], [])
        for place in (planted(), even(), few):
            found = {row.device_id for row in outliers(load(place))}
            self.assertEqual(found, set(answers(place)["outliers"]), place)


def upper(rounds: int, share: float) -> float:
    """So many of the rounds, at most, but for one of a thousand runs of a test."""
    return rounds * share + 3.1 * math.sqrt(rounds * share)
