//! Goal: while a database's log has the `embedded` layout, SQLite without waldio is refused and changes no byte of it; after
//! a clean close it opens the database as ever; and waldio loses nothing whoever is killed.
//! Method: real files; SQLite alone is Debian's shell, Debian's Python, and the bundled library in a process of its own.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use real::chance::{Chance, seed};
use real::child::{Running, again, in_own_process, must, no_python, output_within, python, role};
use real::place::{Scratch, skipped};
use real::promises::{Gone, SCHEMA, check, soak_time};
use real::short_memory;
use real::sqlite::{Connection, bundled, ffi, system};
use real::sqlite_shim::{self, Event};

/// All that one may try on a database that somebody else has open.
const TRIES: [&str; 7] = [
    "SELECT count(*) FROM t",
    "INSERT INTO t VALUES(99)",
    "PRAGMA wal_checkpoint(TRUNCATE)",
    "VACUUM",
    "PRAGMA journal_mode=DELETE",
    "PRAGMA integrity_check",
    "CREATE TABLE u(a)",
];

fn embedded(path: &Path) -> Connection {
    system().open_with(&format!("file:{}?waldio_layout=embedded", path.display()), None).unwrap()
}

/// A table with three rows, in the log.
fn begin(path: &Path) -> Connection {
    system().load(None).unwrap();
    let db = embedded(path);
    db.rows("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t(a); INSERT INTO t VALUES(1),(2),(3)");
    assert_eq!(db.status("layout"), "embedded");
    assert_eq!(db.status("commits"), "2");
    db
}

/// What SQLite says alone, in a process of its own: by Debian's shell, by Debian's Python, by the newest library.
fn say_alone(test: &str, path: &Path, sql: &str) -> Vec<(&'static str, String)> {
    let path = path.to_str().unwrap();
    let script = "import sqlite3, sys\nprint(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchall())";
    let mut commands = vec![("shell", Command::new("sqlite3")), ("newest", again(test, &[path, sql]))];
    commands[0].1.args([path, sql]);
    if no_python().is_none() {
        let mut python = Command::new("/usr/bin/python3");
        python.args(["-c", script, path, sql]);
        commands.push(("Python", python));
    }
    let say = |(who, mut command): (&'static str, Command)| {
        let output = output_within(Duration::from_secs(60), &mut command);
        let text = [output.stdout, output.stderr].concat();
        (who, String::from_utf8_lossy(&text).into_owned())
    };
    commands.into_iter().map(say).collect()
}

/// As the child of `say_alone`.
fn speaks(test: &str) -> bool {
    let Some(arguments) = role(test) else { return false };
    let (rows, error) = bundled().open_stock(Path::new(&arguments[0])).run(&arguments[1]);
    println!("{rows:?} {}", error.map(|error| error.to_string()).unwrap_or_default());
    true
}

fn everybody_alone_is_refused(test: &str, path: &Path) {
    let log = path.with_extension("db-wal");
    let bytes = || [path, &log].map(|path| std::fs::read(path).unwrap());
    let before = bytes();
    for sql in TRIES {
        for (who, said) in say_alone(test, path, sql) {
            assert!(said.contains("unable to open database file"), "{who} said to {sql}: {said}");
            assert!(bytes() == before, "{who} changed a file with {sql}");
        }
    }
}

#[test]
fn sqlite_alone_is_refused_beside_us_and_changes_nothing() {
    const NAME: &str = "sqlite_alone_is_refused_beside_us_and_changes_nothing";
    if speaks(NAME) {
        return;
    }
    let scratch = Scratch::new("embedded-live");
    let path = scratch.join("a.db");
    let db = begin(&path);
    everybody_alone_is_refused(NAME, &path);
    // Also where the log is empty for SQLite.
    db.rows("PRAGMA wal_checkpoint(TRUNCATE)");
    everybody_alone_is_refused(NAME, &path);
    db.rows("INSERT INTO t VALUES(4)");
    assert_eq!(db.one("SELECT count(*) FROM t"), "4");
    drop(db);
    for (who, said) in say_alone(NAME, &path, "SELECT 'rows', count(*) FROM t") {
        assert!(said.contains("rows") && said.contains('4'), "{who} after a clean close: {said}");
    }
    for left in ["a.db-wal", "a.db-waldio", "a.db-waldio-shm", "a.db-wal-reserved"] {
        assert!(!scratch.join(left).exists(), "{left} is left");
    }
}

#[test]
fn a_killed_process_leaves_a_log_that_only_we_open_and_all_of_it_is_there() {
    const NAME: &str = "a_killed_process_leaves_a_log_that_only_we_open_and_all_of_it_is_there";
    if let Some(arguments) = role(NAME)
        && arguments.len() == 1
    {
        let _open = begin(Path::new(&arguments[0]));
        println!("\nready");
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    if speaks(NAME) {
        return;
    }
    let scratch = Scratch::new("embedded-killed");
    let path = scratch.join("a.db");
    let mut writer = Running::start(&mut again(NAME, &[path.to_str().unwrap()]));
    writer.wait_until_ready();
    writer.kill();
    drop(writer);
    everybody_alone_is_refused(NAME, &path);
    // The header says what the layout is, not the option.
    system().load(None).unwrap();
    let db = system().open(&path);
    assert_eq!(db.one("SELECT count(*) FROM t"), "3");
    assert_eq!(
        (db.status("layout"), db.one("PRAGMA integrity_check")),
        ("embedded".to_owned(), "ok".to_owned())
    );
}

#[test]
fn beside_a_connection_without_us_the_log_stays_sqlites_own() {
    in_own_process("beside_a_connection_without_us_the_log_stays_sqlites_own", || {
        let scratch = Scratch::new("embedded-beside");
        let path = scratch.join("a.db");
        drop(begin(&path));
        let stock = system().open_stock(&path);
        assert_eq!(stock.one("SELECT count(*) FROM t"), "3");
        let db = embedded(&path);
        db.rows("INSERT INTO t VALUES(4)");
        assert_eq!(db.status("layout"), "stock");
        let why = db.status_row("layout")[1].clone();
        assert!(why.contains("another connection"), "{why}");
        stock.rows("INSERT INTO t VALUES(5)");
        assert_eq!(
            (db.one("SELECT count(*) FROM t"), stock.one("SELECT count(*) FROM t")),
            ("5".into(), "5".into())
        );
        drop((stock, db));
        let db = embedded(&path);
        assert_eq!((db.one("SELECT count(*) FROM t"), db.status("layout")), ("5".into(), "embedded".into()));
    });
}

#[test]
fn databases_that_cannot_have_it_say_why() {
    in_own_process("databases_that_cannot_have_it_say_why", || {
        let scratch = Scratch::new("embedded-cannot");
        system().load(None).unwrap();
        let why = |name: &str, first: &str| {
            let path = scratch.join(name);
            system().open_stock(&path).rows(first);
            let db = embedded(&path);
            db.rows("PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES(1)");
            assert_eq!(db.status("layout"), "stock");
            db.status_row("layout")[1].clone()
        };
        let reserved = why("reserved.db", "PRAGMA user_version=1");
        assert!(reserved.contains("0 reserved bytes"), "{reserved}");
        let pages = why("pages.db", "PRAGMA page_size=8192; PRAGMA user_version=1");
        assert!(pages.contains("8192"), "{pages}");
    });
}

/// In exclusive locking mode there is no wal-index, and SQLite has the database locked when it opens the log.
#[test]
fn exclusive_locking_mode_has_it_too() {
    in_own_process("exclusive_locking_mode_has_it_too", || {
        let scratch = Scratch::new("embedded-exclusive");
        let path = scratch.join("a.db");
        drop(begin(&path));
        let db = embedded(&path);
        db.rows("PRAGMA locking_mode=EXCLUSIVE; INSERT INTO t VALUES(4)");
        assert_eq!((db.status("layout"), db.one("SELECT count(*) FROM t")), ("embedded".into(), "4".into()));
        let other = embedded(&path);
        assert!(other.run("SELECT count(*) FROM t").1.is_some(), "it has the database alone");
        drop((other, db));
        assert_eq!(system().open_stock(&path).one("SELECT count(*) FROM t"), "4");
    });
}

/// `SQLITE_FCNTL_EXTERNAL_READER` asks for readers of other processes, who are in a wal-index of ours.
#[test]
fn readers_of_other_processes_are_told() {
    const NAME: &str = "readers_of_other_processes_are_told";
    if let Some(arguments) = role(NAME) {
        system().load(None).unwrap();
        let db = embedded(Path::new(&arguments[0]));
        db.rows("BEGIN; SELECT count(*) FROM t");
        println!("\nready");
        return std::thread::sleep(Duration::from_secs(60));
    }
    let scratch = Scratch::new("embedded-readers");
    let path = scratch.join("a.db");
    let db = begin(&path);
    assert_eq!(db.control(ffi::SQLITE_FCNTL_EXTERNAL_READER, 7), (0, 0));
    let mut reader = Running::start(&mut again(NAME, &[path.to_str().unwrap()]));
    reader.wait_until_ready();
    assert_eq!(db.control(ffi::SQLITE_FCNTL_EXTERNAL_READER, 7), (0, 1));
    reader.kill();
    drop(reader);
    assert_eq!(db.control(ffi::SQLITE_FCNTL_EXTERNAL_READER, 7), (0, 0));
}

/// `readonly_shm=1`, which SQLite's unix VFS looks for: it makes no wal-index, and changes none.
#[test]
fn who_asks_for_a_wal_index_to_read_alone_gets_one() {
    const NAME: &str = "who_asks_for_a_wal_index_to_read_alone_gets_one";
    if let Some(arguments) = role(NAME) {
        system().load(None).unwrap();
        let name = format!("file:{}?waldio_layout=embedded&readonly_shm=1", arguments[0]);
        let db = system().open_with(&name, None).unwrap();
        let codes = ["SELECT * FROM t", "INSERT INTO t VALUES(4)"]
            .map(|sql| db.run(sql).1.map_or(0, |error| error.primary()));
        return println!("\ncodes {codes:?}");
    }
    let scratch = Scratch::new("embedded-readonly");
    let path = scratch.join("a.db");
    let db = begin(&path);
    let codes = || must(&mut again(NAME, &[path.to_str().unwrap()]));
    assert!(codes().contains("codes [0, 8]"), "SQLITE_READONLY where somebody made it: {}", codes());
    drop(db);
    assert!(codes().contains("codes [14, 14]"), "SQLITE_CANTOPEN where nobody did: {}", codes());
    // It began no layout that SQLite alone would be kept out by.
    assert_eq!(system().open_stock(&path).one("SELECT count(*) FROM t"), "3");
}

/// A SQLite that waits for locks of the wal-index in the kernel says for how long, to the file whose wal-index it is.
#[test]
fn the_time_to_wait_for_locks_reaches_the_wal_index_in_use() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    sqlite_shim::register(bundled(), c"counts", Some(c"unix"), false, move |event| {
        count.fetch_add(usize::from(event == Event::Control(ffi::SQLITE_FCNTL_LOCK_TIMEOUT)), SeqCst);
    });
    bundled().register_over(c"waldio-counted", c"counts");
    let scratch = Scratch::new("embedded-timeout");
    let open = |layout: &str| {
        let path = scratch.join(&format!("{layout}.db"));
        let name = format!("file:{}?waldio_layout={layout}", path.display());
        let db = bundled().open_with(&name, Some("waldio-counted")).unwrap();
        db.reserve_bytes(24);
        db.rows("PRAGMA journal_mode=WAL; CREATE TABLE t(a)");
        db
    };
    for (layout, files) in [("stock", 1), ("embedded", 2)] {
        let db = open(layout);
        asked.store(0, SeqCst);
        db.control(ffi::SQLITE_FCNTL_LOCK_TIMEOUT, 50);
        assert_eq!(asked.load(SeqCst), files, "files that were told, {layout}");
    }
}

/// How many allocations may fail while a new database is opened, and nobody is told: SQLite can do without some.
fn needless_allocations(scratch: &Scratch, layout: &str) -> usize {
    let mut needless = 0;
    for number in 0.. {
        let path = scratch.join(&format!("{layout}-{number}.db"));
        let name = format!("file:{}?waldio_layout={layout}", path.display());
        let (failed, db) = short_memory::with_failing(number, || bundled().open_with(&name, None));
        if let Ok(db) = db {
            needless += usize::from(failed);
            db.rows("PRAGMA user_version=1");
            drop(db);
            let reserved = if layout == "embedded" { 24 } else { 0 };
            assert_eq!(std::fs::read(&path).unwrap()[20], reserved, "{layout}, allocation {number}");
        }
        if !failed {
            assert!(number > 50, "opening takes {number} allocations");
            break;
        }
    }
    needless
}

#[test]
fn who_opens_a_new_database_is_told_where_memory_is_short() {
    in_own_process("who_opens_a_new_database_is_told_where_memory_is_short", || {
        short_memory::install();
        bundled().load(None).unwrap();
        let scratch = Scratch::new("embedded-memory");
        let [stock, embedded] = ["stock", "embedded"].map(|layout| needless_allocations(&scratch, layout));
        assert_eq!(embedded, stock, "failures that opening kept to itself");
    });
}

#[test]
fn journal_modes_change_and_come_back() {
    in_own_process("journal_modes_change_and_come_back", || {
        let scratch = Scratch::new("embedded-modes");
        let path = scratch.join("a.db");
        let db = begin(&path);
        for round in 4..8 {
            assert_eq!(db.one("PRAGMA journal_mode=DELETE"), "delete");
            assert!(!scratch.join("a.db-waldio").exists());
            db.rows(&format!("INSERT INTO t VALUES({round})"));
            assert_eq!(db.one("PRAGMA journal_mode=WAL"), "wal");
            assert_eq!(
                (db.one("SELECT count(*) FROM t"), db.status("layout")),
                (round.to_string(), "embedded".into())
            );
        }
    });
}

/// Somebody (a shim above us, a tool) used the reserved bytes of a page: SQLite copies them along.
#[test]
fn reserved_bytes_that_are_used_are_not_lost() {
    const NAME: &str = "reserved_bytes_that_are_used_are_not_lost";
    const USED: [u8; 24] = [0xab; 24];
    if let Some(arguments) = role(NAME) {
        system().load(None).unwrap();
        let db = embedded(Path::new(&arguments[0]));
        db.rows("INSERT INTO t VALUES(4); INSERT INTO t VALUES(5)");
        println!("\nready {}", db.status("layout"));
        return std::thread::sleep(Duration::from_secs(60));
    }
    let scratch = Scratch::new("embedded-used");
    let path = scratch.join("a.db");
    drop(begin(&path));
    let reserved = || std::fs::read(&path).unwrap()[2 * 4096 - 24..2 * 4096].to_vec();
    assert_eq!(reserved(), [0; 24]);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[2 * 4096 - 24..2 * 4096].copy_from_slice(&USED);
    std::fs::write(&path, &bytes).unwrap();
    let mut writer = Running::start(&mut again(NAME, &[path.to_str().unwrap()]));
    while writer.line().expect("it ended") != "ready embedded" {}
    writer.kill();
    drop(writer);
    assert!(scratch.join("a.db-wal-reserved").exists(), "they were not used");
    // The page in the database is another one from here on: what comes back came from the log.
    bytes[4096..2 * 4096].fill(0);
    std::fs::write(&path, &bytes).unwrap();
    let db = embedded(&path);
    assert_eq!(
        (db.one("SELECT count(*) FROM t"), db.one("PRAGMA integrity_check")),
        ("5".into(), "ok".into())
    );
    drop(db);
    assert_eq!(reserved(), USED);
    assert!(!scratch.join("a.db-wal-reserved").exists(), "it goes with the log");
}

#[test]
fn killed_writers_lose_nothing() {
    if let Some(why) = no_python() {
        return skipped(&why);
    }
    let (seed, end) = (seed(), Instant::now() + soak_time());
    let mut chance = Chance::new(seed);
    let scratch = Scratch::new("embedded-kills");
    let path = scratch.join("app.db");
    let db = begin(&path);
    db.rows(SCHEMA);
    drop(db);
    let (mut number, mut gone, mut writers) = (0, Vec::new(), Vec::new());
    let kill = |(name, mut running): (String, Running)| {
        running.kill();
        let (lines, _) = running.finish();
        let acknowledged = lines.iter().filter_map(|line| line.strip_prefix("ack ")?.parse().ok()).max();
        Gone { name, acknowledged: acknowledged.unwrap_or(0) }
    };
    while Instant::now() < end {
        // Two who come at once to a database without a log keep each other from beginning one in this layout.
        let first = writers.is_empty().then(|| embedded(&path));
        if let Some(first) = &first {
            first.rows("SELECT count(*) FROM rows");
        }
        while writers.len() < 3 {
            number += 1;
            let (side, synchronous) =
                chance.pick(&[("waldio", "FULL"), ("waldio", "NORMAL"), ("waldio-fua", "FULL")]);
            let name = format!("{number}-{side}-{synchronous}");
            let mut command =
                python("worker.py", &["write", path.to_str().unwrap(), side, &name, "1000000", synchronous]);
            writers.push((name, Running::start(command.env("WALDIO_LAYOUT", "embedded"))));
        }
        std::thread::sleep(Duration::from_millis(100 + chance.below(400)));
        drop(first);
        if chance.below(4) == 0 {
            gone.extend(writers.drain(..).map(kill));
            check(&path, &gone, seed, true);
        } else {
            let victim = usize::try_from(chance.below(3)).unwrap();
            gone.push(kill(writers.swap_remove(victim)));
        }
    }
    let db = embedded(&path);
    let layout = (db.one("SELECT count(*) > 0 FROM rows"), db.status("layout"));
    drop(db);
    gone.extend(writers.drain(..).map(kill));
    check(&path, &gone, seed, true);
    check(&path, &gone, seed, false);
    assert_eq!(layout, ("1".into(), "embedded".into()));
    let acknowledged: u64 = gone.iter().map(|gone| gone.acknowledged).sum();
    assert!(gone.len() > 8 && acknowledged > 100, "{} kills, {acknowledged} rows: no soak", gone.len());
    eprintln!("{} writers killed, {acknowledged} rows acknowledged, seed {seed}", gone.len());
}

/// `SQLITE_FCNTL_PERSIST_WAL` would leave a log that SQLite refuses.
#[test]
fn a_log_that_is_to_persist_does_not_keep_sqlite_out_after_a_clean_close() {
    in_own_process("a_log_that_is_to_persist_does_not_keep_sqlite_out_after_a_clean_close", || {
        let scratch = Scratch::new("embedded-persist");
        let path = scratch.join("a.db");
        let db = begin(&path);
        assert_eq!(db.control(ffi::SQLITE_FCNTL_PERSIST_WAL, 1), (0, 1));
        assert_eq!(db.control(ffi::SQLITE_FCNTL_PERSIST_WAL, -1), (0, 0), "it has no effect here");
        drop(db);
        assert_eq!(system().open_stock(&path).one("SELECT count(*) FROM t"), "3");
        // In SQLite's own layout it holds as ever.
        let db = system().open(&path);
        assert_eq!(db.control(ffi::SQLITE_FCNTL_PERSIST_WAL, 1), (0, 1));
        db.rows("INSERT INTO t VALUES(4)");
        assert_eq!(db.control(ffi::SQLITE_FCNTL_PERSIST_WAL, -1), (0, 1));
        drop(db);
        assert!(scratch.join("a.db-wal").exists());
        assert_eq!(system().open_stock(&path).one("SELECT count(*) FROM t"), "4");
    });
}

/// A connection that may only read leaves SQLite's own wal-index, and so does one that was refused; SQLite removes it with its log.
#[test]
fn nothing_is_left_of_those_who_only_read_or_were_refused() {
    in_own_process("nothing_is_left_of_those_who_only_read_or_were_refused", || {
        let scratch = Scratch::new("embedded-left");
        let path = scratch.join("a.db");
        drop(begin(&path));
        let reader = format!("file:{}?mode=ro&waldio_layout=embedded", path.display());
        let reader = system().open_with(&reader, None).unwrap();
        assert_eq!(reader.one("SELECT count(*) FROM t"), "3");
        drop(reader);
        let db = embedded(&path);
        db.rows("INSERT INTO t VALUES(4)");
        assert_eq!(db.status("layout"), "embedded");
        assert!(system().open_stock(&path).run("SELECT count(*) FROM t").1.is_some(), "refused");
        drop(db);
        let entries = std::fs::read_dir(scratch.path()).unwrap();
        let left: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["a.db"]);
    });
}

/// The files that the layout has beside a database have longer names than SQLite's own.
#[test]
fn a_database_whose_name_is_too_long_stays_sqlites_own() {
    in_own_process("a_database_whose_name_is_too_long_stays_sqlites_own", || {
        let scratch = Scratch::new("embedded-name");
        system().load(None).unwrap();
        for name_bytes in 240..256 {
            let path = scratch.join(&"n".repeat(name_bytes));
            let sides = ["waldio", "unix"].map(|vfs| {
                let name = format!("file:{}?waldio_layout=embedded", path.display());
                let answers = system().open_with(&name, Some(vfs)).and_then(|db| {
                    let sql = "PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES(1),(2); SELECT count(*) FROM t";
                    let (rows, error) = db.run(sql);
                    if vfs == "waldio" && error.is_none() {
                        let [layout, why] = &db.status_row("layout")[..] else { panic!("no row") };
                        assert_eq!(layout, if name_bytes <= 244 { "embedded" } else { "stock" }, "{name_bytes}: {why}");
                        assert!(layout == "embedded" || why.contains("too long"), "{why}");
                    }
                    error.map_or(Ok(rows), Err)
                });
                for suffix in ["", "-wal", "-journal"] {
                    let _ = std::fs::remove_file(scratch.join(&format!("{}{suffix}", "n".repeat(name_bytes))));
                }
                answers.map_err(|error| error.code)
            });
            assert_eq!(sides[0], sides[1], "{name_bytes} bytes");
        }
    });
}
