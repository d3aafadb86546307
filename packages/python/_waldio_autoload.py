"""Has waldio loaded when a program first imports sqlite3; `python -m waldio autoload on` has Python import this when it starts.

Nothing else happens before: a program without sqlite3 pays for this small file only. WALDIO_AUTOLOAD=off leaves a program out.
"""

import os
import sys


class _AfterSqlite3:
    """Finds sqlite3 as Python would, with a loader that registers waldio at its end."""

    def find_spec(self, name, path=None, target=None):
        if name != "sqlite3":
            return None
        sys.meta_path.remove(self)
        import importlib.util

        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader:
    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def create_module(self, spec):
        return self.inner.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self.inner
        self.inner.exec_module(module)
        # Where waldio itself imports sqlite3 it calls us at its own end.
        if "waldio" not in sys.modules:
            _or_tell(lambda: __import__("waldio"))


def register(waldio):
    """Called by waldio when all of it is there."""
    _or_tell(waldio.register)


def _or_tell(call):
    """The program goes on with SQLite as it is, and is told."""
    try:
        call()
    except Exception as error:
        print(f"waldio is not active in this program: {error}", file=sys.stderr)


if os.environ.get("WALDIO_AUTOLOAD") != "off":
    sys.meta_path.insert(0, _AfterSqlite3())
