#!/usr/bin/python3
"""Makes the wheel `joj` from this folder; prints its path.

    python/build_wheel.py DIRECTORY

Two builds give the same bytes. Only the standard library.
"""

import base64
import hashlib
import pathlib
import re
import sys
import tomllib
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
#: The oldest time that a zip file can hold.
TIME = (1980, 1, 1, 0, 0, 0)


def version() -> str:
    """That of joj, which must be that of the package."""
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    of_joj = re.search(r'^version = "(.*)"', manifest, re.MULTILINE).group(1)
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
    for path in sorted((HERE / "joj").iterdir()):
        if path.suffix == ".py" or path.name == "py.typed":
            files[f"joj/{path.name}"] = path.read_bytes()
    for name in ("LICENSE-APACHE", "LICENSE-MIT"):
        files[f"{info}/licenses/{name}"] = (ROOT / name).read_bytes()
    files[f"{info}/METADATA"] = metadata(number)
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: build_wheel.py\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    return info, files


def digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def build(directory: pathlib.Path) -> pathlib.Path:
    number = version()
    info, files = contents(number)
    record = "".join(f"{path},sha256={digest(data)},{len(data)}\n" for path, data in files.items())
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    directory.mkdir(parents=True, exist_ok=True)
    wheel = directory / f"joj-{number}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, TIME)
            entry.external_attr = 0o100644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return wheel


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(build(pathlib.Path(sys.argv[1])))
