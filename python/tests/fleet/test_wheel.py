"""The wheel: two builds of it are the same, and it says what it needs."""

import build_wheel
from fleets import FleetTest


class Wheel(FleetTest):
    def test_two_wheels_are_the_same(self) -> None:
        place = self.folder()
        one, other = (build_wheel.build(place / name) for name in "ab")
        self.assertEqual((one.name, one.read_bytes()), (other.name, other.read_bytes()))
