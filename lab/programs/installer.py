#!/usr/bin/env python3
"""An installer: ten packages of 55.58 MB arrive, are copied into place and unpacked, and the list of packages is written anew after each.

The packages have the sizes of FAST'12's Table 4. Of each a fifth is code, which is unpacked into a file of its own.
"""
import os

import common

# KB (1,000 bytes) of each package.
PACKAGES = {
    "youtube": 1950, "maps": 6650, "facebook": 2960, "pandora": 1220, "skymap": 2160,
    "angrybirds": 18650, "musicdownload": 700, "angrybirdsrio": 17440, "wordswithfriends": 3750, "taskkiller": 100,
}
LIST_BYTES = 90 * common.KB
# What adb sends over USB.
BYTES_PER_S = common.NETWORKS["usb"]
VERIFY_S_PER_MB = 0.3

SCHEMA = ("CREATE TABLE installed(package TEXT PRIMARY KEY, version INTEGER, label TEXT)",)
TOTAL_BYTES = 55_580_000
DECLARED = common.Declared(
    files=10 + 10 + 1,
    file_bytes=TOTAL_BYTES * 2 + TOTAL_BYTES // 5 + 10 * LIST_BYTES,
    read_bytes=TOTAL_BYTES,
    file_syncs=10 * 2,
    commits=1 + 2 * 10,
    received_bytes=TOTAL_BYTES,
)


def run(app):
    database = app.database("data/packages.db", SCHEMA)
    for name, kilobytes in PACKAGES.items():
        size = kilobytes * 1000
        app.think(size / BYTES_PER_S)
        app.write(f"tmp/{name}.apk", size)
        app.read(f"tmp/{name}.apk", is_cached=True)
        app.think(VERIFY_S_PER_MB * size / common.MB)
        app.write(f"app/{name}.apk", size, sync=True)
        app.write(f"dalvik-cache/{name}.dex", size // 5)
        app.write("system/packages.xml.new", LIST_BYTES, sync=True)
        os.rename(app.path("system/packages.xml.new"), app.path("system/packages.xml"))
        database.commit([("INSERT INTO installed VALUES (?, ?, ?)", (name, 1, app.text(60)))])
        database.commit([("UPDATE installed SET version = 2, label = ? WHERE package = ?", (app.text(60), name))])
        os.unlink(app.path(f"tmp/{name}.apk"))
    database.close()


if __name__ == "__main__":
    common.main(__doc__, DECLARED, run)
