"""`python -m joj`: answers on the command line."""

# Nothing else: what takes long to import is imported where Ctrl-C is no traceback.
import os
import sys

#: As a shell has it for Ctrl-C.
STOPPED_EXIT_CODE = 130


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns its exit code."""
    try:
        from joj.command import stopping, streams

        stopping.hear_interrupt()
        streams.open_closed()
        from joj.command.line import run

        return run(arguments)
    except KeyboardInterrupt:
        from joj.command import streams

        streams.complain("joj: stopped\n")
        return STOPPED_EXIT_CODE


def _end(code: int) -> None:
    from joj.command import stopping

    stopping.hear_nothing()
    objects = sys.modules.get("joj.objects")
    if objects and objects.is_fetching():
        # There is no answer, and nothing is left to do. Waiting for a server that says nothing takes minutes.
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    _end(main())
