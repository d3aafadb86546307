"""The wheel: two builds of it are the same, and it says what it needs."""

import tomllib

import build_wheel
from fleets import FleetTest


class Wheel(FleetTest):
    def test_two_wheels_are_the_same(self) -> None:
        place = self.folder()
        one, other = (build_wheel.build(place / name) for name in "ab")
        self.assertEqual((one.name, one.read_bytes()), (other.name, other.read_bytes()))

    def test_each_folder_is_a_package_in_it(self) -> None:
        project = tomllib.loads((build_wheel.HERE / "pyproject.toml").read_text())
        _, files = build_wheel.contents("0")
        folders = {name.rpartition("/")[0].replace("/", ".") for name in files if name.startswith("joj/")}
        self.assertEqual(folders, set(project["tool"]["setuptools"]["packages"]))
