#!/usr/bin/env python3
"""Makes a deb and a tarball of waldio or of joj; prints their paths.

    packages/system/build_archives.py waldio DIRECTORY LIBRARY [PRELOAD]
    packages/system/build_archives.py joj DIRECTORY PROGRAM [JOJ]      JOJ: of the same source and for this machine, where PROGRAM is not

The tarball holds what the deb installs, below one folder. Which Debian packages a deb needs is read from the files themselves. Of a
library for musl there is a tarball alone, without PRELOAD: Debian has glibc. Debug information, where it stands beside a file
(packages/separate_debug.sh), goes into a tarball of its own. Two builds of the same files give the same bytes.
"""

import gzip
import io
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "packages/python"))
sys.dont_write_bytecode = True
import build_wheel  # noqa: E402

#: Debian's name of a machine, by the ELF header's number.
MACHINES = {62: "amd64", 183: "arm64"}
#: glibc's of Debian 12, Ubuntu 22.04 and RHEL 9 have it. What is newer would not load there.
GLIBC_MAX = (2, 34)
#: Debian's package, by what a file asks for.
PACKAGES = {"libgcc_s.so.1": "libgcc-s1", "libelf.so.1": "libelf1 | libelf1t64", "libz.so.1": "zlib1g"}
#: 1985: no file is older than what it was made of.
TIME = 499162500
ABOUT = {
    "waldio": (
        "SQLite extension for faster durable commits",
        " waldio prepares SQLite's write-ahead log ahead of need, and lets connections\n share flushes. It is loaded into an unmodified"
        " SQLite: by .load, by the package\n of a language, or by LD_PRELOAD.",
    ),
    "joj": (
        "measures the way from a SQLite COMMIT to the disk",
        " joj measures what a durable commit costs on a disk, traces which blocks a\n program writes, and records and replays what"
        " applications ask of a file system.",
    ),
}


def machine(file):
    """Debian's name for the file's machine; an error where it is no 64-bit ELF file, or for another machine."""
    head = file.read_bytes()[:20]
    name = MACHINES.get(int.from_bytes(head[18:20], "little"))
    if head[:6] != b"\x7fELF\x02\x01" or name is None:
        sys.exit(f"{file} is no 64-bit ELF file of {' or '.join(MACHINES.values())}")
    return name


def needed_glibc(file):
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", build_wheel.readelf("--version-info", file))
    newest = max(((int(major), int(minor)) for major, minor in versions), default=(2, 0))
    if newest > GLIBC_MAX:
        sys.exit(f"{file} needs glibc {newest[0]}.{newest[1]}: at most {GLIBC_MAX[0]}.{GLIBC_MAX[1]}, build it on an older system")
    return newest


def depends(files):
    """The line Depends of a deb with these files."""
    newest = max(needed_glibc(file) for file in files)
    names = {f"libc6 (>= {newest[0]}.{newest[1]})"}
    for file in files:
        for name in re.findall(r"\(NEEDED\).*\[(.*)\]", build_wheel.readelf("--dynamic", file)):
            if re.match(r"(libc|libm|libdl|libpthread|ld-linux[a-z0-9-]*)\.so\.", name):
                continue
            if name not in PACKAGES:
                sys.exit(f"{file} needs {name}, which packages/system/build_archives.py knows no Debian package for")
            names.add(PACKAGES[name])
    return ", ".join(sorted(names))


def copyright_file():
    text = (ROOT / "LICENSE-MIT").read_bytes()
    return b"Licensed under MIT OR Apache-2.0. The Apache License 2.0 is in /usr/share/common-licenses/Apache-2.0.\n\n" + text


def documents(name):
    place = f"usr/share/doc/{name}"
    return {
        f"{place}/copyright": copyright_file(),
        f"{place}/changelog.gz": gzip.compress((ROOT / "CHANGELOG.md").read_bytes(), mtime=0),
    }


def waldio_files(libraries):
    files = {f"usr/lib/waldio/{path.name}": path.read_bytes() for path in libraries}
    guides = {f"usr/share/doc/waldio/{name}": (ROOT / "docs" / name).read_bytes() for name in ("usage.md", "packages.md")}
    return files | guides | documents("waldio")


def joj_files(program, runs):
    """joj with what it says of itself, where it runs: a page for man of each command, and completions."""
    files = {"usr/bin/joj": program.read_bytes()}
    with tempfile.TemporaryDirectory() as pages:
        subprocess.run([runs, "man", pages], check=True, stdout=subprocess.DEVNULL)
        for page in sorted(pathlib.Path(pages).iterdir()):
            files[f"usr/share/man/man1/{page.name}.gz"] = gzip.compress(page.read_bytes(), mtime=0)
    for shell, path in {
        "bash": "bash-completion/completions/joj",
        "zsh": "zsh/vendor-completions/_joj",
        "fish": "fish/vendor_completions.d/joj.fish",
    }.items():
        files[f"usr/share/{path}"] = subprocess.run([runs, "completions", shell], check=True, capture_output=True).stdout
    return files | documents("joj")


def tarball(path, folder, files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mtime, entry.mode = len(data), TIME, mode(name)
            archive.addfile(entry, io.BytesIO(data))
    path.write_bytes(gzip.compress(buffer.getvalue(), mtime=0))
    return path


def mode(name):
    return 0o755 if pathlib.PurePath(name).parent.name == "bin" else 0o644


def deb(path, name, architecture, needs, files, packing):
    short, long = ABOUT[name]
    size = sum(len(data) for data in files.values()) // 1024 + 1
    control = (
        f"Package: {name}\nVersion: {build_wheel.version()}\nArchitecture: {architecture}\nMaintainer: the authors of waldio and joj"
        f" <waldio@localhost>\nInstalled-Size: {size}\nDepends: {needs}\nSection: database\nPriority: optional\n"
        f"Description: {short}\n{long}\n"
    )
    with tempfile.TemporaryDirectory() as work:
        for file, data in {**files, "DEBIAN/control": control.encode()}.items():
            place = pathlib.Path(work, file)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
            place.chmod(mode(file))
        for folder in [pathlib.Path(work), *(place for place in pathlib.Path(work).rglob("*") if place.is_dir())]:
            folder.chmod(0o755)
        command = ["dpkg-deb", "--root-owner-group", *packing, "--build", work, path]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={"SOURCE_DATE_EPOCH": str(TIME), "PATH": "/usr/bin:/bin"})
    return path


def build(name, directory, binaries, packing=("-Zxz",)):
    if name == "joj":
        program = binaries[0]
        files, binaries = joj_files(program, binaries[-1]), [program]
    else:
        files = waldio_files(binaries)
    architecture = {machine(file) for file in binaries}.pop()
    version = build_wheel.version()
    directory.mkdir(parents=True, exist_ok=True)
    # That it has a wheel's tag says that it needs nothing but musl.
    for_musl = name == "waldio" and "musl" in build_wheel.platform(binaries[0])
    needs = "" if for_musl else depends(binaries)
    folder = f"{name}-{version}-linux-{architecture}" + ("-musl" if for_musl else "")
    # In a tarball nobody looks below usr/share/doc for the licences.
    licences = {licence: (ROOT / licence).read_bytes() for licence in ("LICENSE-APACHE", "LICENSE-MIT")}
    made = [tarball(directory / f"{folder}.tar.gz", folder, {place.removeprefix("usr/"): data for place, data in files.items()} | licences)]
    debugs = [file.with_name(file.name + ".debug") for file in binaries]
    debugs = {file.name: file.read_bytes() for file in debugs if file.exists()}
    if debugs:
        made.append(tarball(directory / f"{folder}-debug.tar.gz", f"{folder}-debug", debugs))
    if for_musl:
        return made
    if shutil.which("dpkg-deb"):
        made.append(deb(directory / f"{name}_{version}_{architecture}.deb", name, architecture, needs, files, packing))
    else:
        print(f"no deb of {name}: dpkg-deb is missing (package dpkg)", file=sys.stderr)
    return made


if __name__ == "__main__":
    if len(sys.argv) < 4 or sys.argv[1] not in ABOUT:
        sys.exit(__doc__)
    for made in build(sys.argv[1], pathlib.Path(sys.argv[2]), [pathlib.Path(file) for file in sys.argv[3:]]):
        print(made)
