"""docs/fleet_notebook.md has the answers and pictures that its blocks make; `make soak` asks."""

import os
import pathlib
import sys

from fleets import FleetTest

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Notebook(FleetTest):
    def test_it_is_what_its_blocks_say(self) -> None:
        sys.path.append(str(ROOT / "python/notebook"))
        import make

        place = self.folder()
        page = make.PAGE.read_text()
        self.assertEqual(make.made(page, place), page)
        drawn = {path.name: path.read_text() for path in place.iterdir()}
        self.assertGreaterEqual(len(drawn), 4)
        for name, picture in drawn.items():
            self.assertEqual((ROOT / "docs/pictures" / name).read_text(), picture, name)


if "JOJ_SOAK_SECONDS" not in os.environ:
    # It takes 19 s of processor time.
    del Notebook
