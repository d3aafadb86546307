"""Libraries that ask the loader for what waldio's does, made in a moment and without musl: for the packages' tests."""

import pathlib
import platform
import subprocess


def musl_library(directory: pathlib.Path, *more: str) -> pathlib.Path:
    """A libwaldio.so linked with musl in name only, and with what the compiler's options `more` add."""
    directory.mkdir()
    library, musl = directory / "libwaldio.so", directory / "libc.so"
    name = f"libc.musl-{platform.machine()}.so.1"
    shared = ["cc", "-shared", "-nostdlib", "-Wl,--no-as-needed", "-xc", "/dev/null", "-xnone"]
    subprocess.run([*shared, f"-Wl,-soname,{name}", "-o", musl], check=True)
    subprocess.run([*shared, musl, *more, "-o", library], check=True)
    return library
