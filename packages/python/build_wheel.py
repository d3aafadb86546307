#!/usr/bin/env python3
"""Makes the wheel `waldio` from a built libwaldio.so; prints its path.

    packages/python/build_wheel.py LIBRARY DIRECTORY

Its tag says which machine and which glibc the library needs, as the library itself says, or musl. Two builds of the same library
give the same bytes. Only the standard library, and readelf.
"""

import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
import wheel_file  # noqa: E402
from wheel_file import version  # noqa: E402

#: By the ELF header's number.
MACHINES = {62: "x86_64", 183: "aarch64"}
#: What a manylinux wheel may need (PEP 600): it is there on every Linux with glibc.
ALLOWED = re.compile(r"(libc|libm|libdl|libpthread|librt|libgcc_s|ld-linux[a-z0-9-]*)\.so\.\d+")
#: musl by Alpine's name, which every musl takes for its own. A musllinux wheel may need nothing else, as auditwheel has it: a plain
#: Alpine has no libgcc_s.so.1 either.
MUSL = re.compile(r"libc\.musl-[a-z0-9_]+\.so\.1")
#: The oldest musl that has musllinux tags still (PEP 656); what a library needs of musl has no versions that could be read.
MUSL_VERSION = "1_2"


def readelf(option, library):
    return subprocess.run(["readelf", "--wide", option, library], capture_output=True, text=True, check=True).stdout


def needed(library):
    """The libraries that it asks the loader for."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("--dynamic", library))


def libc(library):
    """The C library that it was linked with: "glibc" or "musl"."""
    return "musl" if any(MUSL.fullmatch(name) for name in needed(library)) else "glibc"


def platform(library):
    """The wheel's platform tag, or an error where the library is none that it could hold."""
    head = library.read_bytes()[:20]
    if head[:6] != b"\x7fELF\x02\x01":
        sys.exit(f"{library} is no 64-bit little-endian ELF file")
    machine = MACHINES.get(int.from_bytes(head[18:20], "little"))
    if machine is None:
        sys.exit(f"{library} is for a machine without a tag: {', '.join(MACHINES.values())} have one")
    kind, allowed = ("musllinux", MUSL) if libc(library) == "musl" else ("manylinux", ALLOWED)
    foreign = [name for name in needed(library) if not allowed.fullmatch(name)]
    if foreign:
        sys.exit(f"{library} needs {', '.join(foreign)}, which a {kind} wheel may not")
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", readelf("--version-info", library))
    if kind == "musllinux":
        if versions:
            sys.exit(f"{library} is linked with musl, and needs symbols of glibc")
        return f"musllinux_{MUSL_VERSION}_{machine}"
    major, minor = max((int(major), int(minor)) for major, minor in versions)
    return f"manylinux_{major}_{minor}_{machine}"


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
    files |= wheel_file.licences(info)
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


def build(library, directory):
    name, info, files = contents(library)
    return wheel_file.write(directory / name, info, files)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print(build(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
