#!/usr/bin/python3
"""Makes the wheel `joj` from this folder; prints its path.

    python/build_wheel.py DIRECTORY

Two builds give the same bytes. Only the standard library.
"""

import pathlib
import re
import sys
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "packages"))
import wheel_file  # noqa: E402


def version() -> str:
    """That of joj, which must be that of the package."""
    of_joj = wheel_file.version()
    of_package = re.search(r'^VERSION = "(.*)"', (HERE / "joj/version.py").read_text(encoding="utf-8"), re.MULTILINE)
    if of_package.group(1) != of_joj:
        sys.exit(f"python/joj/version.py says {of_package.group(1)}, and Cargo.toml {of_joj}: make them equal")
    return of_joj


def metadata(number: str) -> bytes:
    """What pyproject.toml says, as a wheel has it."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {number}",
        f"Summary: {project['description']}",
        f"License-Expression: {project['license']}",
        "License-File: LICENSE-APACHE",
        "License-File: LICENSE-MIT",
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {dependency}" for dependency in project["dependencies"]),
    ]
    for extra, dependencies in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {dependency}; extra == '{extra}'" for dependency in dependencies]
    lines += ["Description-Content-Type: text/markdown", "", ""]
    return "\n".join(lines).encode() + (HERE / "README.md").read_bytes()


def contents(number: str) -> tuple[str, dict[str, bytes]]:
    """Names in the wheel and their bytes, but for RECORD."""
    info = f"joj-{number}.dist-info"
    files = {}
    for path in sorted((HERE / "joj").rglob("*")):
        if path.suffix == ".py" or path.name == "py.typed":
            files[str(path.relative_to(HERE))] = path.read_bytes()
    files |= wheel_file.licences(info)
    files[f"{info}/METADATA"] = metadata(number)
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: build_wheel.py\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    return info, files


def build(directory: pathlib.Path) -> pathlib.Path:
    number = version()
    info, files = contents(number)
    return wheel_file.write(directory / f"joj-{number}-py3-none-any.whl", info, files)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(build(pathlib.Path(sys.argv[1])))
