"""What the workers of all frameworks print, as ../driver.py wants it."""

INSERT = "INSERT INTO t(value) VALUES (hex(randomblob(50)))"
CREATE = "CREATE TABLE IF NOT EXISTS t(n INTEGER PRIMARY KEY, value TEXT)"
#: No row where waldio is not loaded: an unknown pragma.
QUESTIONS = {
    "count": "SELECT count(*) FROM t",
    "max": "SELECT max(n) FROM t",
    "integrity": "PRAGMA integrity_check",
    "waldio": "PRAGMA waldio",
}


def show(name, row):
    """Prints one answer: the first row, or None."""
    value = row[0] if row else ""
    print(name, int(value.startswith("active:")) if name == "waldio" else value, flush=True)
