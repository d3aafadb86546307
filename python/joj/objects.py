"""Tables below a URL: each object of a bucket, or of HDFS, is fetched once, into a folder that is gone at the end.

What was fetched is checked and read like files of a directory. Messages call it by its URL.
"""

import os
import re
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from joj import temporary
from joj.errors import JojError
from joj.files import UNFINISHED, URL, Problem, why_not_looked_at

#: The parts of a URL. A name of an object may have a `#`.
PARTS = re.compile(URL.pattern + r"([^/?]*)([^?]*)(\?.*)?", re.DOTALL)
#: What a URL may have, and a `%` in front of two digits; all else is meant as it stands.
LITERAL = re.compile(r"%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9._~!$&'()*+,;=:@/%-]")
#: Those that begin with a bucket.
BUCKETS = ("s3", "gs", "gcs")
#: Objects that are fetched at a time. Of small ones nearly all the time is waiting.
FETCHED_AT_ONCE = 16
#: How their threads are called.
THREADS = "joj-fetch"
PIECE_BYTES = 4 << 20
#: So many objects in a row that cannot be fetched: the network is gone, or the credentials are. Each of them may take seconds.
FAILURES_MAX = 20
#: Who waits so long is told for what.
QUIET_SECONDS = 1.0
#: After so long a wait looks whether there was a signal.
LOOK_SECONDS = 1.0
#: Google's client tries for 15 minutes where nothing is said.
GOOGLE_RETRY = "retry_limit_seconds"
GOOGLE_RETRY_SECONDS = 30
#: What a message has in it, and how to mend that.
MENDS = {
    "NO_SUCH_BUCKET": "name a bucket that is there",
    "ACCESS_DENIED": "the credentials may not read it: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, say which",
    "INVALID_ACCESS_KEY_ID": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, say which credentials",
    "SIGNATURE": "AWS_SECRET_ACCESS_KEY is not that of AWS_ACCESS_KEY_ID",
    "NETWORK_CONNECTION": "is the network there? Another server than Amazon's: `?endpoint_override=HOST:PORT&scheme=http`",
    "libjvm": "hdfs:// needs a JDK (JAVA_HOME) and Hadoop (HADOOP_HOME, and CLASSPATH: what `hadoop classpath --glob` prints)",
    "libhdfs": "hdfs:// needs Hadoop (HADOOP_HOME, and CLASSPATH: what `hadoop classpath --glob` prints)",
    "OAuth2": "GOOGLE_APPLICATION_CREDENTIALS names a file with credentials; a public bucket is `gs://anonymous@BUCKET`",
    "No such file": "name a folder that is there",
    "does not exist": "name a folder that is there",
    "Unrecognized filesystem": "take s3://, gs://, hdfs:// or file://",
    "query parameter": "options are those of docs/fleet.md, \"Buckets\"; write ? of a name as %3F",
}
PASSWORD = "write / and @ of a password as %2F and %40"
MEND = "are the URL, the credentials and the network as they must be? (docs/fleet.md, \"Buckets\")"


@dataclass(frozen=True)
class Objects:
    """What lies below a URL."""

    #: Without user, password and options.
    url: str
    filesystem: Any
    #: Of each table: its name below the URL, its path in the file system, its size.
    tables: list[tuple[str, str, int]]
    #: Names below the URL of what does not count, and why.
    left_out: list[tuple[str, str]]


@dataclass(frozen=True)
class Progress:
    """How far the fetching is. While the server is asked what there is, there is no folder."""

    url: str
    folder: str | None
    files: int
    bytes: int
    files_done: int = 0
    bytes_done: int = 0


class Fetched:
    """Copies of objects."""

    def __init__(self, objects: Objects) -> None:
        self._files = temporary.Numbered()
        self.folder, self.named = self._files.folder, self._files.named
        #: No thread writes any more.
        self.is_ended = False
        self.paths: list[str] = []
        self.problems = [Problem(objects.url + name, reason) for name, reason in objects.left_out]
        #: Where the copy of each is.
        self.places = [self._files.add(objects.url + name) for name, _, _ in objects.tables]

    def end(self) -> None:
        """Removes what there is; threads that still wait for a server write nothing more."""
        self.is_ended = True
        self._files.remove()
        # A thread was at it.
        shutil.rmtree(self.folder, ignore_errors=True)


def is_url(directory: str | os.PathLike[str]) -> bool:
    """Whether it is one."""
    return URL.match(str(directory)) is not None


def reach(url: str, progress: Callable[[Progress], None] | None = None) -> tuple[str, Objects | None]:
    """How messages call a URL, and what lies below it. Below `file://` that is a directory, and it is the directory's path."""
    parts = PARTS.fullmatch(url)
    assert parts, "it begins as a URL, and then anything may follow"
    scheme, place, path, options = parts[1].lower(), parts[2], parts[3], parts[4] or ""
    # There may be a password.
    host = place.rpartition("@")[2]
    shown = f"{scheme}://{host}{path.rstrip('/')}"
    if scheme == "file":
        return _directory(shown, host, path, options), None
    if scheme in BUCKETS and not host:
        raise JojError(f"{scheme}:// names no bucket; write {scheme}://BUCKET/FOLDER")
    if scheme in BUCKETS and ":" in host:
        # What of it is a password, nobody knows.
        raise JojError(
            f"this {scheme}:// is no URL, as no bucket has a `:`; {PASSWORD}, and another server as ?endpoint_override=HOST:PORT"
        )
    if scheme in ("gs", "gcs") and GOOGLE_RETRY not in options:
        options += f"{'&' if options else '?'}{GOOGLE_RETRY}={GOOGLE_RETRY_SECONDS}"
    # Square brackets there are those of an address.
    place = place if scheme == "hdfs" and "[" in place else _quoted(place)
    asked = f"{scheme}://{place}{_quoted(path)}{options[:1]}{_quoted(options[1:])}"
    return shown, _listed(asked, shown, progress or (lambda _: None))


def _quoted(text: str) -> str:
    return LITERAL.sub(lambda found: quote(found[0], safe="", errors="surrogateescape"), text)


def _directory(shown: str, host: str, path: str, options: str) -> str:
    """The directory of a `file://`."""
    if options:
        raise JojError(f"{shown}{options}: a file:// has no options; write ? of a name as %3F")
    if host or not path:
        raise JojError(f"{shown} names no directory of this machine; write file:///FOLDER")
    return unquote(path, errors="surrogateescape")


def _listed(asked: str, shown: str, progress: Callable[[Progress], None]) -> Objects:
    import pyarrow
    from pyarrow.fs import FileSelector, FileSystem, FileType

    def list_all() -> tuple[Any, str, list[Any]]:
        filesystem, root = FileSystem.from_uri(asked)
        root = root.rstrip("/")
        return filesystem, root, filesystem.get_file_info(FileSelector(root, recursive=True))

    try:
        filesystem, root, listed = _beside(list_all, lambda: progress(Progress(shown, None, 0, 0)))
    except (OSError, UnicodeError, pyarrow.ArrowException) as error:
        told = _told(error).replace(asked, shown)
        if "Cannot parse" in told and "@" in asked:
            raise JojError(f"this {shown.partition(':')[0]}:// is no URL; {PASSWORD}") from error
        raise JojError(f"cannot list {shown}: {told}; {_mend(told)}") from error
    objects = Objects(shown, filesystem, [], [])
    left_out = {}
    for info in sorted(listed, key=lambda info: info.path):
        name = info.path[len(root) :]
        part = re.match(r"(.*?/[^/]*\.part)/", name)
        if info.type != FileType.File:
            continue
        if part:
            # A folder of `fleet export`.
            left_out[part[1]] = UNFINISHED
        elif not name.endswith(".parquet"):
            if reason := why_not_looked_at(name, (".parquet",)):
                left_out[name] = reason
        elif {"", ".", ".."} & set(name[1:].split("/")):
            # The client asks for another name, or for none.
            left_out[name] = "cannot be fetched: a part of its name is empty, `.` or `..`; copy it to another name"
        else:
            objects.tables.append((name, info.path, info.size))
    objects.left_out.extend(sorted(left_out.items()))
    return objects


Result = TypeVar("Result")


def _beside(work: Callable[[], Result], tell: Callable[[], None]) -> Result:
    """What the work gives. It is done on a thread: a client that waits for its server hears no Ctrl-C. Tells of it where it takes long."""
    pool = ThreadPoolExecutor(1, THREADS)
    future = pool.submit(work)
    try:
        if not wait([future], QUIET_SECONDS).done:
            tell()
        return _given(future)
    finally:
        pool.shutdown(wait=future.done())


def _given(future: Future[Result]) -> Result:
    """What the work gives. In short waits: a signal that comes just before one is heard only after it."""
    while not future.done():
        wait([future], LOOK_SECONDS)
    return future.result()


def fetch(objects: Objects, progress: Callable[[Progress], None] | None = None) -> Fetched:
    """Copies of the tables. One that cannot be fetched is a problem; where there is no room, or nothing more comes, this raises."""
    fetched = Fetched(objects)
    pool = ThreadPoolExecutor(FETCHED_AT_ONCE, THREADS)
    try:
        _fetch_all(objects, fetched, pool, progress or (lambda _: None))
    except BaseException:
        # Not to be waited for: a client that hears nothing tries again for minutes.
        pool.shutdown(wait=False, cancel_futures=True)
        fetched.end()
        raise
    pool.shutdown()
    return fetched


def _fetch_all(
    objects: Objects, fetched: Fetched, pool: ThreadPoolExecutor, progress: Callable[[Progress], None]
) -> None:
    sizes = [size for _, _, size in objects.tables]
    free = shutil.disk_usage(fetched.folder).free
    if sum(sizes) > free:
        raise _no_room(f"{sum(sizes):,} bytes of {objects.url} are to be fetched, and {free:,} are free")
    told = Progress(objects.url, fetched.folder, len(sizes), sum(sizes))
    if sizes:
        progress(told)
    failures = 0
    reasons = [pool.submit(_fetch, objects, number, fetched) for number in range(len(sizes))]
    for number, future in enumerate(reasons):
        reason = _given(future)
        if reason is None:
            failures = 0
            fetched.paths.append(fetched.places[number])
        else:
            failures += 1
            fetched.problems.append(Problem(objects.url + objects.tables[number][0], f"cannot be fetched: {reason}"))
        if failures == FAILURES_MAX:
            raise JojError(
                f"{FAILURES_MAX} objects of {objects.url} in a row cannot be fetched, "
                f"the last one {fetched.problems[-1].path}: {reason}; {_mend(str(reason))}"
            )
        done = (told.files_done + 1, told.bytes_done + sizes[number])
        told = Progress(told.url, told.folder, told.files, told.bytes, *done)
        progress(told)


def _fetch(objects: Objects, number: int, fetched: Fetched) -> str | None:
    """Fetches an object; says why it cannot be fetched."""
    import pyarrow

    _, source, size = objects.tables[number]
    try:
        with objects.filesystem.open_input_stream(source) as stream:
            copied = _copy(stream, number, fetched)
    except FileNotFoundError:
        return "it was removed after it was listed"
    except (OSError, pyarrow.ArrowException) as error:
        return _told(error)
    return None if copied == size else f"it has {copied:,} bytes, and had {size:,} when it was listed: it was changed meanwhile"


def _copy(stream: Any, number: int, fetched: Fetched) -> int:
    """Copies a stream into a file; returns how many bytes it had."""
    copied = 0
    _append(fetched, number, b"")
    while piece := stream.read(PIECE_BYTES):
        _append(fetched, number, piece)
        copied += len(piece)
    return copied


def _append(fetched: Fetched, number: int, piece: bytes) -> None:
    if fetched.is_ended:
        return
    path = fetched.places[number]
    try:
        with open(path, "ab") as file:
            file.write(piece)
    except OSError as error:
        raise _no_room(f"cannot write {path}: {error.strerror}") from error


def is_fetching() -> bool:
    """Whether a thread waits for a server. The end of the interpreter would wait for it."""
    return any(thread.name.startswith(THREADS) for thread in threading.enumerate())


def _no_room(told: str) -> JojError:
    return JojError(f"{told}; make room in {temporary.place()}, or name another place: TMPDIR=DIR")


def _told(error: Exception) -> str:
    """What a client says, in a line without the numbers of the request."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return re.sub(r" \(Request ID: .*?\)| error_info=.*", "", lines[0])


def _mend(told: str) -> str:
    return next((mend for sign, mend in MENDS.items() if sign in told), MEND)
