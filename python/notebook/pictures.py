"""Pictures of rows as SVG, without any library: bars, spans, intervals, points."""

import math
import pathlib
from collections.abc import Sequence
from html import escape

WIDTH = 760
#: Of what stands at the left of a row.
LABEL_WIDTH = 150
#: Room at the right, for a value.
VALUE_WIDTH = 70
TOP = 54
COLOURS = ("#6b8fb8", "#d07b30", "#5a9a68")
GREY, INK = "#d8d8d8", "#222222"


class Picture:
    """Shapes on a white ground. Values go to places by `place`."""

    def __init__(self, title: str, height: int, low: float, high: float, is_log: bool = False) -> None:
        self.height = height
        self._is_log = is_log
        self._low, self._high = (math.log(value) if is_log else value for value in (low, high))
        self._shapes: list[str] = []
        self.text(10, 22, title, size=15)

    def place(self, value: float) -> float:
        """How far to the right a value is."""
        value = math.log(value) if self._is_log else value
        share = (value - self._low) / (self._high - self._low)
        return LABEL_WIDTH + share * (WIDTH - LABEL_WIDTH - VALUE_WIDTH)

    def text(self, x: float, y: float, text: str, anchor: str = "start", size: int = 12) -> None:
        """A text on a line."""
        self._shapes.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{INK}">{escape(text)}</text>')

    def line(self, x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 1) -> None:
        """A straight line."""
        self._shapes.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>')

    def box(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        """A filled rectangle."""
        self._shapes.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>')

    def dot(self, x: float, y: float, radius: float, colour: str) -> None:
        """A filled circle."""
        self._shapes.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}" fill-opacity="0.75"/>')

    def ticks(self, values: Sequence[float], unit: str) -> None:
        """Grey lines from top to bottom with their values below."""
        bottom = self.height - 24
        for value in values:
            self.line(self.place(value), TOP - 8, self.place(value), bottom, GREY)
            self.text(self.place(value), bottom + 16, f"{value:g} {unit}".strip(), "middle")

    def legend(self, names: Sequence[str]) -> None:
        """What the colours mean."""
        for number, name in enumerate(names):
            x = LABEL_WIDTH + 170 * number
            self.box(x, 32, 10, 10, COLOURS[number])
            self.text(x + 15, 41, name)

    def save(self, path: pathlib.Path) -> None:
        """Writes the file."""
        shapes = "\n".join(self._shapes)
        path.write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{self.height}" '
            f'viewBox="0 0 {WIDTH} {self.height}" font-family="sans-serif">\n'
            f'<rect width="{WIDTH}" height="{self.height}" fill="#ffffff"/>\n{shapes}\n</svg>\n'
        )


def _decades(low: float, high: float) -> list[float]:
    """1, 10, 100 around the values."""
    return [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def bars(path: pathlib.Path, title: str, unit: str, values: dict[str, dict[str, float]]) -> None:
    """For each row a bar of each series; they begin at 0."""
    series = list(dict.fromkeys(name for of_row in values.values() for name in of_row))
    step = 16 * len(series) + 12
    picture = Picture(title, TOP + step * len(values) + 6, 0, max(max(of_row.values()) for of_row in values.values()))
    picture.legend(series)
    for number, (row, of_row) in enumerate(values.items()):
        top = TOP + step * number
        picture.text(LABEL_WIDTH - 10, top + 8 * len(series) + 4, row, "end")
        for place, name in enumerate(series):
            end = picture.place(of_row[name])
            picture.box(LABEL_WIDTH, top + 16 * place, end - LABEL_WIDTH, 14, COLOURS[place])
            picture.text(end + 5, top + 16 * place + 11, f"{of_row[name]:.1f} {unit}")
    picture.save(path)


def spans(path: pathlib.Path, title: str, unit: str, values: dict[str, dict[str, tuple[float, float]]]) -> None:
    """For each row a line of each series, from one value to another; each step of the scale is ten times as much."""
    series = list(dict.fromkeys(name for of_row in values.values() for name in of_row))
    ends = [end for of_row in values.values() for pair in of_row.values() for end in pair]
    decades = _decades(min(ends), max(ends))
    step = 18 * len(series) + 12
    picture = Picture(title, TOP + step * len(values) + 28, decades[0], decades[-1], is_log=True)
    picture.legend(series)
    picture.ticks(decades, unit)
    for number, (row, of_row) in enumerate(values.items()):
        top = TOP + step * number + 8
        picture.text(LABEL_WIDTH - 10, top + 9 * len(series) - 4, row, "end")
        for place, name in enumerate(series):
            begin, end = (picture.place(value) for value in of_row[name])
            y = top + 18 * place
            picture.line(begin, y, end, y, COLOURS[place], 3)
            picture.dot(begin, y, 4, COLOURS[place])
            picture.box(end - 2, y - 6, 4, 12, COLOURS[place])
            picture.text(end + 7, y + 4, f"{of_row[name][1]:.1f} {unit}")
    picture.save(path)


def intervals(path: pathlib.Path, title: str, rows: Sequence[tuple[str, float, float, float]]) -> None:
    """For each row its name, a ratio and the ends of its interval, beside the line of 1."""
    ends = [1.0, *(value for row in rows for value in row[1:])]
    low, high = (math.floor(min(ends) * 20 - 1) / 20, math.ceil(max(ends) * 20) / 20)
    picture = Picture(title, TOP + 26 * len(rows) + 28, low, high)
    first = math.ceil(round(low * 10, 6))
    picture.ticks([number / 10 for number in range(first, math.floor(round(high * 10, 6)) + 1)], "")
    picture.line(picture.place(1), TOP - 8, picture.place(1), picture.height - 24, INK, 1.5)
    for number, (name, ratio, begin, end) in enumerate(rows):
        y = TOP + 26 * number + 8
        colour = COLOURS[1] if begin > 1 else COLOURS[2] if end < 1 else COLOURS[0]
        picture.text(LABEL_WIDTH - 10, y + 4, name, "end")
        picture.line(picture.place(begin), y, picture.place(end), y, colour, 3)
        picture.dot(picture.place(ratio), y, 5, colour)
        picture.text(picture.place(high) + 5, y + 4, f"{ratio:.3f}")
    picture.save(path)


def points(path: pathlib.Path, title: str, unit: str, values: dict[str, list[tuple[float, bool]]]) -> None:
    """For each row its values, those that are marked in another colour; each step of the scale is ten times as much."""
    every = [value for row in values.values() for value, _ in row]
    decades = _decades(min(every), max(every))
    picture = Picture(title, TOP + 34 * len(values) + 28, decades[0], decades[-1], is_log=True)
    picture.legend(["like its model", "outlier"])
    picture.ticks(decades, unit)
    for number, (row, of_row) in enumerate(values.items()):
        y = TOP + 34 * number + 12
        picture.text(LABEL_WIDTH - 10, y + 4, row, "end")
        for place, (value, is_marked) in enumerate(sorted(of_row)):
            # Side by side, and not on each other.
            above = 0 if is_marked else (3 * place % 5 - 2) * 4
            picture.dot(picture.place(value), y + above, 4 if is_marked else 2.5, COLOURS[is_marked])
    picture.save(path)
