#!/usr/bin/env python3
"""Makes the npm packages from built libraries: `waldio`, and one for each platform that it depends on; prints their paths.

    packages/npm/build_npm.py DIRECTORY LIBRARY...      libwaldio.so for x86_64 and aarch64, each with glibc and with musl

Two builds of the same libraries give the same bytes. They are what `npm pack` would make; npm is not needed.
"""

import gzip
import io
import json
import pathlib
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "packages/python"))
sys.dont_write_bytecode = True
import build_wheel  # noqa: E402

#: npm's names, by the wheel's.
MACHINES = {"x86_64": "x64", "aarch64": "arm64"}
#: How a package's name ends, by npm's name of the C library.
ENDINGS = {"glibc": "gnu", "musl": "musl"}
#: 1985, as npm does: some tools refuse older files.
TIME = 499162500


def platform_package(library, version):
    """Name and files of the package that holds one library."""
    tag = build_wheel.platform(library)
    machine = MACHINES[tag.split("_", 3)[3]]
    libc = build_wheel.libc(library)
    name = f"waldio-linux-{machine}-{ENDINGS[libc]}"
    manifest = {
        "name": name,
        "version": version,
        "description": f"libwaldio.so for the package waldio, on Linux {machine} with {libc}",
        "license": "MIT OR Apache-2.0",
        "os": ["linux"],
        "cpu": [machine],
        "libc": [libc],
    }
    return name, {"package.json": as_json(manifest), "libwaldio.so": library.read_bytes(), **licences()}


def main_package(version, platforms):
    files = {path.name: path.read_bytes() for path in sorted((HERE / "waldio").iterdir()) if path.is_file()}
    manifest = json.loads(files["package.json"].replace(b"@VERSION@", version.encode()))
    # Exactly these: a library of another version would be another promise.
    manifest["optionalDependencies"] = {name: version for name in platforms}
    files["package.json"] = as_json(manifest)
    return files | licences()


def licences():
    return {name: (ROOT / name).read_bytes() for name in ("LICENSE-APACHE", "LICENSE-MIT")}


def as_json(value):
    return (json.dumps(value, indent=2) + "\n").encode()


def pack(directory, name, version, files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path, data in files.items():
            entry = tarfile.TarInfo(f"package/{path}")
            entry.size, entry.mtime, entry.mode = len(data), TIME, 0o644
            archive.addfile(entry, io.BytesIO(data))
    directory.mkdir(parents=True, exist_ok=True)
    tarball = directory / f"{name}-{version}.tgz"
    tarball.write_bytes(gzip.compress(buffer.getvalue(), mtime=0))
    return tarball


def build(directory, libraries):
    version = build_wheel.version()
    platforms = dict(platform_package(library, version) for library in libraries)
    made = [pack(directory, name, version, files) for name, files in platforms.items()]
    return [pack(directory, "waldio", version, main_package(version, platforms)), *made]


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for path in build(pathlib.Path(sys.argv[1]), [pathlib.Path(name) for name in sys.argv[2:]]):
        print(path)
