#!/usr/bin/env python3
"""A browser: 50 sites, each with files for the cache, an index of the cache, and cookies.

As WebBench of FAST'12: at the end 315 files of 6 MB, webview.db of 34 KB, webviewCache.db of 137 KB. A file is written into the cache, then its
row into the index, in a commit of its own.
"""
import common

SITES = 50
FILES = 315
CACHE_BYTES = 6 * common.MB
# Cookies of a site, each a commit; a site that was there before sets the same ones anew.
COOKIES_PER_SITE = 4
COOKIE_ROWS = 124
# What arrives for a site without being cached, and what showing it takes.
UNCACHED_BYTES = 200 * common.KB
RENDER_S = 2.0

CACHE = (
    "CREATE TABLE cache(_id INTEGER PRIMARY KEY, url TEXT, filepath TEXT, lastmodify TEXT, etag TEXT, expires INTEGER, mimetype TEXT, size INTEGER)",
    "CREATE INDEX cacheUrlIndex ON cache(url)",
)
SETTINGS = (
    "CREATE TABLE cookies(_id INTEGER PRIMARY KEY, name TEXT, value TEXT, domain TEXT, path TEXT, expires INTEGER)",
    "CREATE INDEX cookiesIndex ON cookies(path)",
)
DECLARED = common.Declared(
    files=FILES,
    file_bytes=CACHE_BYTES,
    commits=2 + FILES + SITES * COOKIES_PER_SITE,
    databases={"webviewCache.db": 137, "webview.db": 34},
    received_bytes=CACHE_BYTES + SITES * UNCACHED_BYTES,
)


def run(app):
    index = app.database("databases/webviewCache.db", CACHE)
    settings = app.database("databases/webview.db", SETTINGS)
    sizes = common.shares(CACHE_BYTES, FILES, app.random)
    cookies = 0
    for site in range(SITES):
        app.receive(UNCACHED_BYTES)
        for number in range(FILES * site // SITES, FILES * (site + 1) // SITES):
            app.receive(sizes[number])
            name = app.text(8)
            app.write(f"cache/webviewCache/{name}", sizes[number])
            url = f"http://site{site}.example/{app.text(115)}"
            row = (url, name, app.text(40), app.text(24), number, "image/png", sizes[number])
            index.read("SELECT filepath FROM cache WHERE url = ?", url)
            index.commit([("INSERT INTO cache(url, filepath, lastmodify, etag, expires, mimetype, size) VALUES (?, ?, ?, ?, ?, ?, ?)", row)])
        for _ in range(COOKIES_PER_SITE):
            row = (cookies % COOKIE_ROWS + 1, "session", app.text(210), f"site{site}.example", "/", cookies)
            settings.commit([("REPLACE INTO cookies(_id, name, value, domain, path, expires) VALUES (?, ?, ?, ?, ?, ?)", row)])
            cookies += 1
        app.think(RENDER_S)
    settings.close()
    index.close()


if __name__ == "__main__":
    common.main(__doc__, DECLARED, run)
