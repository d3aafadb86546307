"""Folders for large files that somebody needs for a while."""

import os
import re
import shutil
import tempfile
import uuid
import weakref

from joj.errors import JojError


def place() -> str:
    """Where they are: /tmp is often memory. An empty TMPDIR names nothing. Raises where DuckDB cannot use it."""
    named = os.environ.get("TMPDIR") or "/var/tmp"
    if not is_utf8(named):
        raise JojError(f"TMPDIR is {named}, which is no UTF-8, and DuckDB takes no other; name another place: TMPDIR=DIR")
    if set("\\?") & set(named):
        # It takes them for a / and for the begin of options.
        raise JojError(f"TMPDIR is {named}, and DuckDB takes no `\\` and no `?` there; name another place: TMPDIR=DIR")
    try:
        return os.path.abspath(named)
    except FileNotFoundError as error:
        raise JojError(f"TMPDIR is {named} below a working directory that was removed; name a whole path: TMPDIR=/DIR") from error


def folder() -> str:
    """A new one, for this user alone."""
    try:
        return tempfile.mkdtemp(prefix="joj-fleet-", dir=place())
    except OSError as error:
        raise JojError(f"cannot make a folder in {place()}: {error.strerror}; name another place: TMPDIR=DIR") from error


def unmade() -> str:
    """A folder for somebody who makes it himself, if he needs it. Killed before, he leaves nothing."""
    return os.path.join(place(), f"joj-fleet-{uuid.uuid4().hex}")


class Numbered:
    """A folder of files that are called by numbers, each in place of something whose name may be anything, `../a` too.

    It is removed when nobody has this any more, and at the end of the process.
    """

    def __init__(self) -> None:
        self.folder = folder()
        self.remove = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self._names: list[str] = []
        self._path = re.compile(rf"{re.escape(self.folder)}/(\d+)\.parquet")

    def add(self, name: str) -> str:
        """The path of one more: what it is in place of is called so."""
        self._names.append(name)
        return f"{self.folder}/{len(self._names) - 1}.parquet"

    def named(self, text: str) -> str:
        """The text with names in place of paths."""
        return self._path.sub(lambda found: self._names[int(found[1])], text)


class PlainNames:
    """Links with plain names to files whose own names an engine would take for something else.

    DuckDB has no way to say that a name is no pattern: what it escapes it looks for in the folder, and a `\\` in a name there stops it.
    """

    #: What it may take for a part of a pattern.
    ODD = re.compile(r"[*?\[\\]")

    def __init__(self) -> None:
        self._links: Numbered | None = None
        #: The path of each file that has a link, by the link.
        self.paths: dict[str, str] = {}

    def plain(self, path: str) -> str:
        """A path of this file for the engine: absolute, as a link needs."""
        path = os.path.join(os.getcwd(), path)
        if not self.ODD.search(path) and is_utf8(path):
            return path
        self._links = self._links or Numbered()
        link = self._links.add(path)
        os.symlink(path, link)
        self.paths[link] = path
        return link

    def named(self, text: str) -> str:
        """The text with the files' own names."""
        return self._links.named(text) if self._links else text


def is_utf8(path: str) -> bool:
    """Whether a path is text."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
