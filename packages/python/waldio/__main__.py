"""python -m waldio: the file of the extension, and whether every Python program of this environment has it.

    python -m waldio path                   the extension's file, for other programs
    python -m waldio autoload on|off|state  waldio in every program of this environment that imports sqlite3
"""

import os
import sys
import sysconfig

import waldio

#: What `site` runs when Python starts. It outlives the package, and says so then.
START = (
    'import sys; exec("try:\\n import _waldio_autoload\\nexcept ImportError:\\n '
    "sys.stderr.write('waldio is not installed any more: remove waldio-autoload.pth\\\\n')\")\n"
)


def autoload(wanted: str) -> str:
    """Writes or removes the file, and says what is so now."""
    file = os.path.join(sysconfig.get_paths()["purelib"], "waldio-autoload.pth")
    if wanted == "on":
        with open(file, "w", encoding="utf-8") as start:
            start.write(START)
    elif wanted == "off" and os.path.exists(file):
        os.remove(file)
    return f"on: {file}" if os.path.exists(file) else "off"


def main(arguments: list) -> int:
    if arguments == ["path"]:
        print(waldio.loadable_path())
    elif len(arguments) == 2 and arguments[0] == "autoload" and arguments[1] in ("on", "off", "state"):
        print(autoload(arguments[1]))
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
