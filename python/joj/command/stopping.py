"""What stops a command: Ctrl-C, and what ends a process. What was begun is undone either way."""

import signal
import sys
from typing import NoReturn


class Stopped(KeyboardInterrupt):
    """A KeyboardInterrupt itself would be noted by Python where it passes an `exec`: its own end is then one by SIGINT, and not 130."""


#: Whether this process was told to stop. A library may have made something else of what was raised.
_heard: list[int] = []


def is_told() -> bool:
    """Whether this process was told to stop."""
    return bool(_heard)


def _stop(number: int, _: object) -> NoReturn:
    _heard.append(number)
    if logging := sys.modules.get("logging"):
        # py4j would log what passes it, and pyspark warns of a JVM that has ended.
        logging.disable()
    if warnings := sys.modules.get("warnings"):
        warnings.simplefilter("ignore")
    if session := sys.modules.get("joj.session"):
        session.kill()
    raise Stopped


def hear_interrupt() -> None:
    """Has Ctrl-C raise `Stopped`, but not where it is ignored."""
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)


def hear_termination() -> None:
    """Has what ends a process raise `Stopped`, but for SIGHUP under nohup."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _stop)


def hear_nothing() -> None:
    """At the end it comes too late, and would keep folders from being removed."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == _stop:
            signal.signal(number, signal.SIG_IGN)
