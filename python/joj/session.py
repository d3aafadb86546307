"""A session of Spark, and the end of its JVM: with this process it ends too, and what it has in folders goes.

A JVM that this module started is killed where the process is told to stop. Asked in a friendly way, it tells in a hundred lines what it
loses. Its files are in a folder of ours, so that nothing stays.
"""

import atexit
import contextlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from joj import temporary
from joj.errors import JojError

#: How long it may take to remove its files at a regular end.
END_SECONDS = 20


@dataclass(frozen=True)
class _Jvm:
    process: subprocess.Popen[bytes]
    #: For its temporary files.
    folder: str


#: That of this process, if this module started it.
_jvm: _Jvm | None = None


def spark_session(master: str | None) -> Any:
    """A session of Spark, or that of this process. Raises where none starts."""
    try:
        from py4j.protocol import Py4JError
        from pyspark import SparkConf, SparkContext
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise JojError(f"spark is not installed ({error}): python3 -m pip install 'ibis-framework[pyspark]'") from error

    options = {"spark.app.name": "joj", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    if master:
        options["spark.master"] = master
    if not master or master.startswith("local"):
        # The default, 200 parts, is for clusters: here each costs more than what is in it.
        options["spark.sql.shuffle.partitions"] = "8"
    try:
        # Others may have a JVM, here or elsewhere (Spark Connect).
        is_own = not (SparkContext._gateway or "SPARK_REMOTE" in os.environ or "PYSPARK_GATEWAY_PORT" in os.environ)
        if is_own:
            with _held():
                _start(SparkConf().setAll(list(options.items())))
            interrupt = signal.getsignal(signal.SIGINT)
            context = SparkContext.getOrCreate(SparkConf().setAll(list(options.items())))
            if server := getattr(context, "_accumulatorServer", None):
                # A traceback where the JVM ends first.
                server.handle_error = lambda *_: None
            if interrupt != signal.default_int_handler and threading.current_thread() is threading.main_thread():
                # Spark puts its own in place of that of a command.
                signal.signal(signal.SIGINT, interrupt)
        builder = SparkSession.builder
        for key, value in options.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
    except (PySparkException, Py4JError, OSError) as error:
        told = str(error).strip().splitlines() or [type(error).__name__]
        raise JojError(f"Spark does not start ({told[0]}); {_remedy(master)}") from error
    session.sparkContext.setLogLevel("ERROR")
    return session


def _remedy(master: str | None) -> str:
    home = os.environ.get("JAVA_HOME")
    if not shutil.which("java", path=os.path.join(home, "bin") if home else None):
        return "it needs a JDK (package default-jdk-headless)"
    return f"is --master {master} right? Spark says more above" if master else "Spark says more above"


def _start(conf: Any) -> None:
    """Starts the JVM, in a session of processes that no Ctrl-C reaches."""
    global _jvm
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    folder = temporary.folder()
    try:
        with _options(f'"-Djava.io.tmpdir={folder}" -XX:-UsePerfData'):
            gateway = launch_gateway(conf, {"start_new_session": True})
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    _jvm = _Jvm(gateway.proc, folder)
    atexit.register(end)
    SparkContext._ensure_initialized(gateway=gateway)
    # Where this process is killed, the JVM itself removes it, empty.
    gateway.jvm.java.io.File(folder).deleteOnExit()


@contextlib.contextmanager
def _options(more: str) -> Iterator[None]:
    """With more options of a JVM that is started meanwhile."""
    name = "SPARK_SUBMIT_OPTS"
    before = os.environ.get(name)
    os.environ[name] = f"{before or ''} {more}".strip()
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


@contextlib.contextmanager
def _held() -> Iterator[None]:
    """What stops this process waits meanwhile, but for a second time: of a JVM that is half started nobody knows the number."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []

    def hear(number: int, frame: Any) -> None:
        heard.append(number)
        if len(heard) > 1:
            before[number](number, frame)

    before: dict[int, Any] = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if callable(handler := signal.getsignal(number)):
            before[number] = handler
            signal.signal(number, hear)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if heard:
        before[heard[0]](heard[0], None)


def kill() -> None:
    """Ends the JVM at once. What asks it for anything afterwards raises."""
    if _jvm and _jvm.process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(_jvm.process.pid, signal.SIGKILL)


def end() -> None:
    """Waits until the JVM has ended, and removes its folder. Without this process it ends by itself."""
    global _jvm
    if not _jvm:
        return
    jvm, _jvm = _jvm, None
    if jvm.process.stdin:
        with contextlib.suppress(OSError):
            # It ends where nobody can write there any more.
            jvm.process.stdin.close()
    try:
        jvm.process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        jvm.process.kill()
        jvm.process.wait()
    shutil.rmtree(jvm.folder, ignore_errors=True)
