"""Random programs with waldio. Words: the directory, the extension or nothing, the seed, how it ends, what it does.

Prints how many commits SQLite made. `ORACLE` prints what SQLite's own counters say after each step, and `MARK` asks for a name
behind each, which a recording has.
"""
import os, random, signal, sqlite3, subprocess, sys, time

place, extension, seed, ending, kind = sys.argv[1:6]
draw = random.Random(int(seed))
loader = sqlite3.connect(":memory:")
if extension:
    loader.enable_load_extension(True)
    loader.load_extension(extension)
tells = "ORACLE" in os.environ


class Base:
    """A database, and the connections that have it open."""

    def __init__(self, number):
        self.path = os.path.join(place, f"{number}.db")
        self.open = []

    def connect(self):
        parameters = ["cache=private"]
        if extension and draw.random() < 0.1:
            parameters.append("waldio=off")
        elif extension:
            parameters.append("waldio_layout=" + draw.choice(["embedded", "embedded", "stock"]))
            parameters.append("waldio_durability=" + draw.choice(["full", "normal", "bounded"]))
            parameters.append("waldio_persist=" + draw.choice(["flush", "flush", "fua"]))
        db = sqlite3.connect(f"file:{self.path}?{'&'.join(parameters)}", uri=True, isolation_level=None, timeout=0.05)
        said(self, "open", parameters)
        ask(db, "PRAGMA synchronous=" + draw.choice(["FULL", "FULL", "NORMAL", "EXTRA"]))
        if draw.random() < 0.3:
            ask(db, "PRAGMA cache_size=5")
            ask(db, "PRAGMA cache_spill=ON")
        if draw.random() < 0.3:
            ask(db, "PRAGMA wal_autocheckpoint=" + draw.choice(["0", "10", "50"]))
        self.open.append(db)
        return db


def said(base, *words):
    if tells:
        print(os.path.basename(base.path), *words, end=" | ", file=sys.stderr)


def ask(db, statement, *values):
    return db.execute(statement, *values).fetchall()


def value(db, statement):
    try:
        return ask(db, statement)[0][0]
    except sqlite3.Error:
        return None


def has_table(db):
    return value(db, "SELECT count(*) FROM sqlite_master WHERE name='t'")


def statement(db, schema="main"):
    which = draw.random()
    if which < 0.6:
        ask(db, f"INSERT INTO {schema}.t(b) VALUES(?)", ["x" * draw.choice([10, 10, 500, 3000, 30000])])
    elif which < 0.8:
        ask(db, f"UPDATE {schema}.t SET b = b || 'y' WHERE a % 5 = ?", [draw.randrange(5)])
    else:
        ask(db, f"DELETE FROM {schema}.t WHERE a = (SELECT min(a) FROM {schema}.t)")


def write(base, db):
    """A statement, or several in a transaction."""
    before = db.total_changes
    if not has_table(db):
        ask(db, "CREATE TABLE IF NOT EXISTS t(a INTEGER PRIMARY KEY, b)")
        return 1
    if draw.random() < 0.5:
        statement(db)
        return int(db.total_changes > before)
    ask(db, "BEGIN" + draw.choice(["", " IMMEDIATE"]))
    ask(db, "INSERT INTO t(b) VALUES('transaction')")
    for step in range(draw.choice([0, 1, 3, 20])):
        is_saved = draw.random() < 0.2
        if is_saved:
            ask(db, "SAVEPOINT s")
        statement(db)
        if is_saved:
            ask(db, draw.choice(["ROLLBACK TO s", "RELEASE s"]))
    is_commit = draw.random() < 0.8
    ask(db, "COMMIT" if is_commit else "ROLLBACK")
    return int(is_commit)


def mode(base, db):
    before = value(db, "PRAGMA main.journal_mode") if has_table(db) is not None else None
    after = ask(db, "PRAGMA main.journal_mode=" + draw.choice(["WAL", "WAL", "DELETE", "TRUNCATE", "PERSIST"]))[0][0]
    said(base, before, "to", after)
    return int(before is not None and (before == "wal") != (after == "wal"))


def reserved(db):
    try:
        image = db.serialize()
    except sqlite3.Error:
        # It is empty.
        return 0
    return image[20] if len(image) > 20 else 0


def convert(base, db):
    if not extension:
        return 0
    layout = draw.choice(["embedded", "embedded", "stock"])
    before = reserved(db)
    said(base, "reserves", before)
    said(base, ask(db, "SELECT waldio_convert('main', ?)", [layout])[0][0][:30])
    return int(reserved(db) != before)


def vacuum(base, db):
    if draw.random() < 0.3:
        ask(db, f"PRAGMA page_size={draw.choice([1024, 4096, 4096, 8192])}")
    ask(db, "VACUUM")
    return 1


def checkpoint(base, db):
    how = draw.choice(["PASSIVE", "FULL", "RESTART", "TRUNCATE"])
    ask(db, f"PRAGMA wal_checkpoint({how})")
    return 0


def read(base, db):
    ask(db, "BEGIN")
    try:
        ask(db, "SELECT count(*), sum(length(b)) FROM t")
    finally:
        ask(db, "COMMIT")
    return 0


def page_size(base, db):
    ask(db, f"PRAGMA page_size={draw.choice([1024, 4096, 4096, 8192])}")
    return 0


def close(base, db):
    base.open.remove(db)
    db.close()
    return 0


def attached(base, db):
    other = draw.choice([one for one in bases if one is not base])
    ask(db, "ATTACH ? AS other", [f"file:{other.path}"])
    try:
        if not (has_table(db) and value(db, "SELECT count(*) FROM other.sqlite_master WHERE name='t'")):
            return 0
        ask(db, "BEGIN")
        ask(db, "INSERT INTO main.t(b) VALUES('first')")
        ask(db, "INSERT INTO other.t(b) VALUES('second')")
        ask(db, "COMMIT")
        return 1
    finally:
        if db.in_transaction:
            ask(db, "ROLLBACK")
        ask(db, "DETACH other")


CHILD = """
import os, sqlite3, sys
loader = sqlite3.connect(":memory:")
if sys.argv[2]:
    loader.enable_load_extension(True)
    loader.load_extension(sys.argv[2])
db = sqlite3.connect("file:" + sys.argv[1] + "?" + sys.argv[3], uri=True, isolation_level=None, timeout=5)
made = 0
for step in range(int(sys.argv[4])):
    try:
        db.execute("INSERT INTO t(b) VALUES('of another process')")
        made += 1
    except sqlite3.Error:
        pass
print(made, flush=True)
if sys.argv[5] == "dies":
    try:
        db.execute("BEGIN")
        db.execute("INSERT INTO t(b) VALUES('never')")
    except sqlite3.Error:
        pass
    os._exit(0)
db.close()
"""


def process(base, db):
    if not has_table(db):
        return 0
    count, end = draw.choice(["1", "5", "20"]), draw.choice(["closes", "dies", "killed"])
    layout = "waldio_layout=" + draw.choice(["embedded", "stock"])
    words = [sys.executable, "-c", CHILD, base.path, extension, layout, count, end]
    said(base, "process", count, end, layout)
    rows = "SELECT count(*) FROM t WHERE b = 'of another process'"
    before = ask(db, rows)[0][0]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    made = 0
    if end == "killed":
        time.sleep(draw.random() / 2)
        child.kill()
        child.communicate()
        return ask(db, rows)[0][0] - before
    if draw.random() < 0.5:
        for step in range(5):
            try:
                made += write(base, db)
            except sqlite3.Error:
                if db.in_transaction:
                    ask(db, "ROLLBACK")
    return made + int(child.communicate()[0])


STEPS = [(write, 40), (mode, 8), (convert, 8), (vacuum, 4), (checkpoint, 5), (read, 5), (page_size, 2), (close, 8)]
if "attach" in kind:
    STEPS.append((attached, 10))
if "process" in kind:
    STEPS.append((process, 5))
bases = [Base(number) for number in range(draw.choice([2, 3]) if "attach" in kind else draw.choice([1, 1, 2]))]


def counters(base):
    """SQLite's own: the change counter of the file and of the wal-indexes. In a child: to close a file ends locks on it."""
    if not tells:
        return None
    reads, writes = os.pipe()
    if (child := os.fork()) == 0:
        found = []
        for ending_of_name, at in [("", 24), ("-shm", 8), ("-waldio-shm", 8)]:
            try:
                with open(base.path + ending_of_name, "rb") as file:
                    data = file.read(32)
                found.append(int.from_bytes(data[at:at + 4], "little" if ending_of_name else "big"))
            except OSError:
                found.append(None)
        os.write(writes, repr(found).encode())
        os._exit(0)
    os.waitpid(child, 0)
    text = os.read(reads, 1000).decode()
    os.close(reads)
    os.close(writes)
    return text


def pause():
    """Until somebody records it."""
    print("made before", commits, flush=True)
    sys.stdin.readline()


def pause_in_transaction(base):
    db, has_begun = None, False
    try:
        db = base.open[0] if base.open else base.connect()
        ask(db, "BEGIN")
        ask(db, "CREATE TABLE IF NOT EXISTS t(a INTEGER PRIMARY KEY, b)")
        ask(db, "INSERT INTO t(b) VALUES('before')")
        has_begun = True
    except sqlite3.Error:
        pass
    pause()
    if has_begun:
        ask(db, "INSERT INTO t(b) VALUES(?)", ["x" * 5000])
    if db and db.in_transaction:
        ask(db, "COMMIT" if has_begun else "ROLLBACK")
    return int(has_begun)


commits = 0
turns = draw.choice([20, 40, 80])
for turn in range(turns):
    if kind.endswith("pause") and turn == turns // 3:
        pause()
    if kind.endswith("transaction") and turn == turns // 3:
        commits += pause_in_transaction(bases[0])
    base = draw.choice(bases)
    made = 0
    before = counters(base)
    step = None
    try:
        db = draw.choice(base.open) if base.open and (len(base.open) > 1 or draw.random() < 0.9) else base.connect()
        step = draw.choices([step for step, _ in STEPS], [weight for _, weight in STEPS])[0]
        made = step(base, db)
    except sqlite3.Error as error:
        said(base, repr(error))
        if db.in_transaction:
            ask(db, "ROLLBACK")
    commits += made
    if "MARK" in os.environ:
        os.access(f"/mark/{turn}-{step and step.__name__}-{made}", os.F_OK)
    if tells:
        print(turn, step and step.__name__, made, before, counters(base), file=sys.stderr)
print(commits, flush=True)
if ending == "close":
    for base in bases:
        for db in base.open:
            db.close()
elif ending == "kill":
    try:
        db = draw.choice([db for base in bases for db in base.open])
        ask(db, "BEGIN")
        for step in range(30):
            ask(db, "INSERT INTO t(b) VALUES(?)", ["z" * 3000])
    except (sqlite3.Error, IndexError):
        pass
    os.kill(os.getpid(), signal.SIGKILL)
os._exit(0)
