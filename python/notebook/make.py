#!/usr/bin/python3
"""Makes docs/fleet_notebook.md anew: runs the Python in it, and puts below each block what it says.

    target/fleet-environment/bin/python python/notebook/make.py      with the joj of JOJ, or target/debug/joj

A block may make rows, text or a picture in docs/pictures; its last line is what is shown. Text of the page stays as it is. One thread
computes, so the same fleet has the same answers. The fleet is made up, below a directory that is removed.
"""

import ast
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/fleet_notebook.md"
JOJ = pathlib.Path(os.environ.get("JOJ", ROOT / "target/debug/joj"))
BEGIN, END = "<!-- answer -->\n", "<!-- end -->\n"
#: A block, and the answer that stands below it, if there is one.
BLOCK = re.compile(rf"```python\n(.*?)```\n(?:\n{BEGIN}.*?{END})?", re.DOTALL)
#: A block that makes the fleet.
GENERATE = re.compile(r"```text\njoj (trace-generate .*?) --out fleet\n```\n")


def markdown(rows: list[dict]) -> str:
    """Rows as a table of Markdown; numbers to the right."""
    from joj.text import cell

    names = list(rows[0])
    ends = ["---" if any(isinstance(row[name], str) for row in rows) else "--:" for name in names]
    lines = [names, ends, *([cell(row[name]).replace("|", "\\|") for name in names] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def shown(value: object, fleet: object) -> str:
    """What a block's last line says."""
    if isinstance(value, pathlib.Path):
        return f"![{value.stem.replace('_', ' ')}](pictures/{value.name})\n"
    if isinstance(value, str):
        return f"```text\n{value}\n```\n"
    if not isinstance(value, list):
        value = fleet.rows(value)
    return markdown(value) if value else "none\n"


def run(code: str, names: dict) -> object:
    """Runs a block; its last line's value."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, str(PAGE), "exec"), names)
    return eval(compile(ast.Expression(last.value), str(PAGE), "eval"), names) if last else None


def made(page: str, pictures: pathlib.Path) -> str:
    """The page with its answers; its pictures are written there."""
    options = GENERATE.search(page)[1].split()
    names: dict = {"PICTURES": pictures}

    def answered(block: re.Match) -> str:
        value = run(block[1], names)
        if value is None:
            return f"```python\n{block[1]}```\n"
        return f"```python\n{block[1]}```\n\n{BEGIN}\n{shown(value, names.get('fleet'))}\n{END}"

    before = os.getcwd()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as work:
        os.chdir(work)
        try:
            subprocess.run([JOJ, *options, "--out", "fleet"], check=True, stdout=subprocess.DEVNULL)
            return BLOCK.sub(answered, page)
        finally:
            os.chdir(before)


def main() -> None:
    if not JOJ.is_file():
        sys.exit(f"{JOJ} is not there: cargo build -p joj")
    sys.path[:0] = [str(ROOT / "python"), str(pathlib.Path(__file__).parent)]
    sys.dont_write_bytecode = True
    PAGE.write_text(made(PAGE.read_text(), ROOT / "docs/pictures"))


if __name__ == "__main__":
    main()
