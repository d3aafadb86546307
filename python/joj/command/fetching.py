"""How far the objects below a URL are fetched, on standard error."""

import sys
import time
from typing import TYPE_CHECKING

from joj.command.streams import complain

if TYPE_CHECKING:
    from joj.objects import Progress

#: What takes less is over before somebody has read it.
QUIET_SECONDS = 1.0
#: Between two lines.
STEP_SECONDS = 0.2
MIB = 1 << 20


class Shown:
    """Says what will be fetched, and to whom sits there how far it is."""

    def __init__(self) -> None:
        self._next = 0.0
        self._is_shown = False

    def __call__(self, progress: "Progress") -> None:
        """The next step."""
        now = time.monotonic()
        if progress.folder is None:
            complain(f"joj: lists {_safe(progress.url)}\n")
        elif progress.files_done == 0:
            self._next = now + QUIET_SECONDS
            complain(
                f"joj: fetches {progress.files:,} files, {progress.bytes / MIB:,.1f} MiB, of {_safe(progress.url)} "
                f"into {progress.folder}, which is removed at the end\n"
            )
        elif sys.stderr.isatty() and (now >= self._next or (self._is_shown and progress.files_done == progress.files)):
            self._next = now + STEP_SECONDS
            self._is_shown = True
            end = "\n" if progress.files_done == progress.files else ""
            complain(
                f"\r{progress.files_done:,} of {progress.files:,} files, "
                f"{progress.bytes_done / MIB:,.1f} of {progress.bytes / MIB:,.1f} MiB{end}"
            )


def _safe(text: str) -> str:
    # Here: --help needs none of it.
    from joj.text import safe

    return safe(text)
