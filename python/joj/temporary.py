"""Folders for large files that somebody needs for a while."""

import os
import tempfile

from joj.errors import JojError


def place() -> str:
    """Where they are: /tmp is often memory."""
    return os.environ.get("TMPDIR", "/var/tmp")


def folder() -> str:
    """A new one, for this user alone."""
    try:
        return tempfile.mkdtemp(prefix="joj-fleet-", dir=place())
    except OSError as error:
        raise JojError(f"cannot make a folder in {place()}: {error.strerror}; name another place: TMPDIR=DIR") from error
