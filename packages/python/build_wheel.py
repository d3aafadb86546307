#!/usr/bin/env python3
"""Makes the wheel `waldio` from a built libwaldio.so; prints its path.

    packages/python/build_wheel.py LIBRARY DIRECTORY

Its tag says which machine and which glibc the library needs, as the library itself says. Two builds of the same library give the
same bytes. Only the standard library, and readelf.
"""

import base64
import hashlib
import pathlib
import re
import subprocess
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
#: By the ELF header's number.
MACHINES = {62: "x86_64", 183: "aarch64"}
#: What a manylinux wheel may need (PEP 600): it is there on every Linux with glibc.
ALLOWED = re.compile(r"(libc|libm|libdl|libpthread|librt|libgcc_s|ld-linux[a-z0-9-]*)\.so\.\d+")
#: The oldest time that a zip file can hold.
TIME = (1980, 1, 1, 0, 0, 0)


def readelf(option, library):
    return subprocess.run(["readelf", "--wide", option, library], capture_output=True, text=True, check=True).stdout


def platform(library):
    """The wheel's platform tag, or an error where the library is none that it could hold."""
    head = library.read_bytes()[:20]
    if head[:6] != b"\x7fELF\x02\x01":
        sys.exit(f"{library} is no 64-bit little-endian ELF file")
    machine = MACHINES.get(int.from_bytes(head[18:20], "little"))
    if machine is None:
        sys.exit(f"{library} is for a machine without a tag: {', '.join(MACHINES.values())} have one")
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("--dynamic", library))
    foreign = [name for name in needed if not ALLOWED.fullmatch(name)]
    if foreign:
        sys.exit(f"{library} needs {', '.join(foreign)}, which a manylinux wheel may not")
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", readelf("--version-info", library))
    major, minor = max((int(major), int(minor)) for major, minor in versions)
    return f"manylinux_{major}_{minor}_{machine}"


def version():
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    return re.search(r'^version = "(.*)"', manifest, re.MULTILINE).group(1)


def contents(library):
    """Names in the wheel and their bytes, but for RECORD."""
    tag, number = f"py3-none-{platform(library)}", version()
    info = f"waldio-{number}.dist-info"
    files = {}
    for path in [HERE / "_waldio_autoload.py", *sorted((HERE / "waldio").rglob("*"))]:
        if path.suffix == ".py" or path.name == "py.typed":
            name = path.relative_to(HERE).as_posix()
            files[name] = path.read_bytes().replace(b"@VERSION@", number.encode())
    files["waldio/libwaldio.so"] = library.read_bytes()
    for name in ("LICENSE-APACHE", "LICENSE-MIT"):
        files[f"{info}/licenses/{name}"] = (ROOT / name).read_bytes()
    metadata = (
        f"Metadata-Version: 2.4\nName: waldio\nVersion: {number}\n"
        "Summary: A SQLite extension that makes durable commits faster where several connections write\n"
        "License-Expression: MIT OR Apache-2.0\nLicense-File: LICENSE-APACHE\nLicense-File: LICENSE-MIT\n"
        "Requires-Python: >=3.9\nDescription-Content-Type: text/markdown\n\n"
    )
    files[f"{info}/METADATA"] = metadata.encode() + (HERE / "README.md").read_bytes()
    files[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: build_wheel.py\nRoot-Is-Purelib: false\nTag: {tag}\n"
    ).encode()
    return f"waldio-{number}-{tag}.whl", info, files


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def build(library, directory):
    name, info, files = contents(library)
    record = "".join(f"{path},sha256={digest(data)},{len(data)}\n" for path, data in files.items())
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    directory.mkdir(parents=True, exist_ok=True)
    wheel = directory / name
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, TIME)
            entry.external_attr = (0o100755 if path.endswith(".so") else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return wheel


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print(build(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
