"""Environments of Python for the tests, below target: made once, from PyPI."""

import pathlib
import shutil
import subprocess
import sys

#: What pip says where the index cannot be reached.
NO_NETWORK = ("NewConnectionError", "NameResolutionError", "Temporary failure in name resolution", "ConnectTimeoutError",
              "Connection refused", "Network is unreachable", "ProxyError")


class NoNetwork(Exception):
    """Nothing can be installed here; what pip said."""


def make(environment: pathlib.Path, wanted: list[str]) -> None:
    """Makes an environment with these packages where it is not there."""
    stamp = environment / "installed"
    if stamp.exists() and stamp.read_text() == " ".join(wanted):
        return
    shutil.rmtree(environment, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    made = pip(environment, "install", *wanted)
    if made.returncode != 0:
        told = made.stdout + made.stderr
        if any(sign in told for sign in NO_NETWORK):
            raise NoNetwork(told.strip().splitlines()[-1])
        sys.exit(f"FAILED fleet: pip install {' '.join(wanted)}\n{told}")
    stamp.write_text(" ".join(wanted))


def pip(environment: pathlib.Path, *arguments: object) -> subprocess.CompletedProcess:
    """What `python -m pip` of an environment does."""
    line = [environment / "bin/python", "-m", "pip", "--disable-pip-version-check", *arguments]
    return subprocess.run([str(one) for one in line], capture_output=True, text=True)
