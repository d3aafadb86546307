"""What stops a command: Ctrl-C, and what ends a process. What was begun is undone either way."""

import signal
from typing import NoReturn


class Stopped(KeyboardInterrupt):
    """A KeyboardInterrupt itself would be noted by Python where it passes an `exec`: its own end is then one by SIGINT, and not 130."""


def _stop(*_: object) -> NoReturn:
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
