"""Writes a wheel of our own: two builds give the same bytes. Only the standard library."""

import base64
import hashlib
import pathlib
import re
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
#: The oldest time that a zip file can hold.
TIME = (1980, 1, 1, 0, 0, 0)


def version() -> str:
    """That of the workspace."""
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    return re.search(r'^version = "(.*)"', manifest, re.MULTILINE).group(1)


def licences(info: str) -> dict[str, bytes]:
    """Their places in a wheel, and their bytes."""
    return {f"{info}/licenses/{name}": (ROOT / name).read_bytes() for name in ("LICENSE-APACHE", "LICENSE-MIT")}


def write(wheel: pathlib.Path, info: str, files: dict[str, bytes]) -> pathlib.Path:
    """The wheel with these files and their RECORD in the folder `info`; returns its path."""
    record = "".join(f"{path},sha256={digest(data)},{len(data)}\n" for path, data in files.items())
    wheel.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, data in {**files, f"{info}/RECORD": (record + f"{info}/RECORD,,\n").encode()}.items():
            entry = zipfile.ZipInfo(path, TIME)
            entry.external_attr = (0o100755 if path.endswith(".so") else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return wheel


def digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
