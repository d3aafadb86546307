//! Goal: the files beside a database are what SQLite documents: which there are, how large, whose, in every journal mode.
//! Method: the same on stock SQLite where its behaviour is the measure; sizes and owners read from the disk.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use real::child::{in_own_process, must, no_python, python};
use real::place::{Scratch, needs_root, skipped};
use real::sqlite::{Connection, ffi, system};

fn open(path: &Path) -> Connection {
    system().load(None).unwrap();
    system().open(path)
}

fn create(path: &Path) -> Connection {
    let connection = open(path);
    connection.rows("PRAGMA journal_mode = WAL; CREATE TABLE t(a INTEGER PRIMARY KEY, b)");
    connection
}

/// So many rows of about a page, each its own transaction.
fn insert(connection: &Connection, rows: usize) {
    for _ in 0..rows {
        connection.rows("INSERT INTO t(b) VALUES (hex(zeroblob(1500)))");
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

fn bytes_of(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|metadata| metadata.len())
}

/// A database that is closed after much use: nothing stands beside it.
fn closed(path: &Path) {
    insert(&create(path), 300);
    for suffix in ["-wal", "-wal-spare", "-shm"] {
        assert!(!beside(path, suffix).exists(), "a closed database has no {suffix}");
    }
}

#[test]
fn every_journal_mode_is_as_on_stock() {
    let scratch = Scratch::new("modes");
    let (ours, stock) = (scratch.join("ours.db"), scratch.join("stock.db"));
    for mode in
        ["DELETE", "WAL", "TRUNCATE", "WAL", "PERSIST", "WAL", "MEMORY", "WAL", "OFF", "WAL", "DELETE", "WAL"]
    {
        let pair = [open(&ours), system().open_stock(&stock)];
        let answers =
            pair.each_ref().map(|connection| {
                let mut answers = connection.rows(&format!("PRAGMA journal_mode = {mode}"));
                answers.extend(connection.rows("CREATE TABLE IF NOT EXISTS t(a INTEGER PRIMARY KEY, b)"));
                insert(connection, 100);
                connection.rows("BEGIN; DELETE FROM t WHERE a % 3 = 0");
                if mode != "OFF" {
                    connection.rows("ROLLBACK; BEGIN; DELETE FROM t WHERE a % 5 = 0");
                }
                answers.extend(connection.rows(
                    "COMMIT; SELECT count(*), sum(a) FROM t; PRAGMA journal_mode; PRAGMA integrity_check",
                ));
                answers
            });
        assert_eq!(answers[0], answers[1], "{mode}");
        let journals = |path: &Path| ["-journal", "-wal", "-shm"].map(|suffix| beside(path, suffix).exists());
        assert_eq!(journals(&ours), journals(&stock), "open, {mode}");
        drop(pair);
        assert_eq!(journals(&ours), journals(&stock), "closed, {mode}");
        let lasting = if mode == "WAL" { "wal" } else { "delete" };
        assert_eq!(system().open_stock(&ours).one("PRAGMA journal_mode"), lasting, "after {mode}");
        assert_eq!(open(&ours).one("PRAGMA journal_mode"), lasting, "after {mode}");
    }
}

#[test]
fn a_restored_database_is_not_overridden() {
    let scratch = Scratch::new("restore");
    let (path, backup) = (scratch.join("app.db"), scratch.join("backup.db"));
    closed(&path);
    fs::copy(&path, &backup).unwrap();
    for by_waldio in [true, false] {
        let connection = open(&path);
        connection.rows("UPDATE t SET b = 'newer than the backup'");
        insert(&connection, 300);
        drop(connection);
        fs::copy(&backup, &path).unwrap();
        let restored = if by_waldio { open(&path) } else { system().open_stock(&path) };
        assert_eq!(
            restored.one("SELECT count(*) FROM t WHERE b LIKE 'newer%'"),
            "0",
            "by waldio: {by_waldio}"
        );
        assert_eq!(restored.one("SELECT count(*) FROM t"), "300");
        assert_eq!(restored.one("PRAGMA integrity_check"), "ok");
    }
}

/// Two connections of one process, whose log somebody removes: the one that opens it again finds an empty file, and a wal-index that
/// tells of frames.
#[test]
fn a_log_that_was_removed_gives_no_pages_of_zeros() {
    let scratch = Scratch::new("removed");
    let (ours, stock) = (scratch.join("ours.db"), scratch.join("stock.db"));
    let answers = |path: &Path, waldio: bool| {
        let open = || if waldio { open(path) } else { system().open_stock(path) };
        let mut answers = Vec::new();
        let mut run = |connection: &Connection, sql: &str| {
            let (rows, error) = connection.run(sql);
            answers.push((rows, error.map(|error| error.code)));
        };
        let first = open();
        run(
            &first,
            "PRAGMA journal_mode = WAL; CREATE TABLE t(a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES(1, 1)",
        );
        run(&first, "PRAGMA wal_checkpoint");
        let second = open();
        run(&second, "SELECT count(*) FROM t");
        fs::remove_file(beside(path, "-wal")).unwrap();
        run(&second, "PRAGMA wal_checkpoint");
        run(&second, "INSERT INTO t(b) VALUES(5)");
        drop(second);
        run(&first, "PRAGMA wal_checkpoint");
        let second = open();
        run(&second, "INSERT INTO t(b) VALUES(11)");
        run(&first, "INSERT INTO t(b) VALUES(12)");
        run(&second, "SELECT sum(b) FROM t");
        run(&second, "INSERT INTO t(b) VALUES(14)");
        drop((first, second));
        let whole = system().open_stock(path);
        run(&whole, "PRAGMA integrity_check; SELECT sum(b) FROM t");
        answers
    };
    let (on_stock, with_waldio) = (answers(&stock, false), answers(&ours, true));
    assert_eq!(with_waldio, on_stock);
    assert!(
        on_stock.iter().any(|(_, error)| error.is_some()),
        "somebody met the end of the new log: {on_stock:?}"
    );
}

#[test]
fn a_spare_that_an_older_version_left_is_removed_and_not_used() {
    let scratch = Scratch::new("old-spare");
    let path = scratch.join("app.db");
    closed(&path);
    let spare = beside(&path, "-wal-spare");
    let mut bytes = vec![7; 1 << 20];
    bytes[..32].fill(0);
    fs::write(&spare, bytes).unwrap();
    let connection = open(&path);
    insert(&connection, 5);
    assert!(!spare.exists(), "it holds rows that were deleted");
    assert_eq!(connection.one("SELECT count(*) FROM t"), "305");
}

#[test]
fn a_truncate_checkpoint_leaves_an_empty_log() {
    let scratch = Scratch::new("truncate");
    let path = scratch.join("app.db");
    let connection = create(&path);
    for round in 1..=3 {
        insert(&connection, 200);
        assert!(bytes_of(&beside(&path, "-wal")).unwrap() > 200 * 4096);
        let (code, ..) = connection.checkpoint(ffi::SQLITE_CHECKPOINT_TRUNCATE);
        assert_eq!(code, ffi::SQLITE_OK);
        assert_eq!(bytes_of(&beside(&path, "-wal")), Some(0), "round {round}");
    }
    insert(&connection, 1);
    assert_eq!(system().open_stock(&path).one("SELECT count(*) FROM t"), "601");
}

/// A log that is written once pays for no space ahead of its frames.
#[test]
fn a_log_has_space_ahead_from_its_second_commit_on() {
    const SPACE: u64 = 32 << 10;
    let scratch = Scratch::new("second-commit");
    let path = scratch.join("app.db");
    let connection = open(&path);
    connection.rows("PRAGMA journal_mode = WAL; CREATE TABLE t(a)");
    let first = bytes_of(&beside(&path, "-wal")).unwrap();
    connection.rows("INSERT INTO t VALUES (1)");
    let second = bytes_of(&beside(&path, "-wal")).unwrap();
    assert!(first > 0 && first < SPACE && second >= SPACE, "{first} and {second} bytes");
}

#[test]
fn a_journal_size_limit_holds_for_the_log() {
    let scratch = Scratch::new("limit");
    for (number, limit_bytes) in [0, 50_000, 400_000].into_iter().enumerate() {
        let sizes = ["waldio", "unix"].map(|vfs| {
            let path = scratch.join(&format!("{number}-{vfs}.db"));
            system().load(None).unwrap();
            let connection = system().open_with(path.to_str().unwrap(), Some(vfs)).unwrap();
            connection.rows("PRAGMA journal_mode = WAL; CREATE TABLE t(a INTEGER PRIMARY KEY, b)");
            connection
                .rows(&format!("PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = {limit_bytes}"));
            let mut sizes = Vec::new();
            for _ in 0..3 {
                insert(&connection, 300);
                connection.checkpoint(ffi::SQLITE_CHECKPOINT_PASSIVE);
                // The first commit after a reset cuts the log.
                insert(&connection, 2);
                sizes.push(bytes_of(&beside(&path, "-wal")).unwrap());
                // Past half of the largest limit, where the log would grow ahead if it might.
                insert(&connection, 60);
                sizes.push(bytes_of(&beside(&path, "-wal")).unwrap());
            }
            drop(connection);
            assert_eq!(system().open_stock(&path).one("SELECT count(*) FROM t"), "1086");
            sizes
        });
        for (ours, stock) in sizes[0].iter().zip(&sizes[1]) {
            let allowed = limit_bytes.max(*stock);
            assert!(*ours <= allowed, "limit {limit_bytes}: the log has {ours} bytes, stock's {stock}");
        }
    }
}

#[test]
fn in_strict_mode_the_log_grows_when_the_cache_spills_as_stocks_does() {
    system().load(None).unwrap();
    let scratch = Scratch::new("spill");
    let sizes = ["?waldio_strict=1&vfs=waldio", "?vfs=unix"].map(|parameters| {
        let path = scratch.join(if parameters.contains("unix") { "stock.db" } else { "strict.db" });
        let connection = system().open_with(&format!("file:{}{parameters}", path.display()), None).unwrap();
        connection.rows("PRAGMA journal_mode = WAL; CREATE TABLE t(a INTEGER PRIMARY KEY, b)");
        connection.rows("PRAGMA cache_size = 4; PRAGMA wal_autocheckpoint = 0");
        let mut sizes = Vec::new();
        for end in ["COMMIT", "ROLLBACK", "COMMIT"] {
            connection.rows("BEGIN");
            for _ in 0..12 {
                connection.rows("INSERT INTO t(b) VALUES (hex(zeroblob(1500)))");
                sizes.push(bytes_of(&beside(&path, "-wal")).unwrap());
            }
            connection.rows("UPDATE t SET b = b || 'again'");
            connection.rows(end);
            sizes.push(bytes_of(&beside(&path, "-wal")).unwrap());
        }
        sizes
    });
    assert_eq!(sizes[0], sizes[1], "the log's size after each statement");
    assert!(sizes[0][11] > sizes[0][0], "nothing spilled: {:?}", sizes[0]);
}

#[test]
fn the_log_has_the_databases_permissions_and_owner() {
    in_own_process("the_log_has_the_databases_permissions_and_owner", || {
        let scratch = Scratch::new("owner");
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
        let root = needs_root();
        for mode in [0o664, 0o600, 0o640] {
            let path = scratch.join(&format!("{mode:o}.db"));
            drop(create(&path));
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            if root.is_ok() {
                std::os::unix::fs::chown(&path, Some(1234), Some(2345)).unwrap();
            }
            let facts = |path: &Path| {
                let metadata = fs::metadata(path).unwrap();
                (metadata.mode() & 0o7777, metadata.uid(), metadata.gid())
            };
            let expected = facts(&path);
            for _ in 0..2 {
                let connection = open(&path);
                insert(&connection, 150);
                assert_eq!(facts(&beside(&path, "-wal")), expected, "{mode:o}");
                drop(connection);
            }
            fs::set_permissions(&path, fs::Permissions::from_mode(0o620)).unwrap();
            let connection = open(&path);
            insert(&connection, 1);
            assert_eq!(facts(&beside(&path, "-wal")).0, 0o620);
        }
        if let Err(why) = root {
            skipped(&format!("owner of the log: {why}"));
        }
    });
}

#[test]
fn every_page_size_works_in_both_ways() {
    system().load(None).unwrap();
    let scratch = Scratch::new("pages");
    for shift in 9..=16 {
        for persist in ["flush", "fua"] {
            let page_bytes = 1 << shift;
            let path = scratch.join(&format!("{page_bytes}-{persist}.db"));
            let name = format!("file:{}?waldio_persist={persist}", path.display());
            for _ in 0..2 {
                let connection = system().open_with(&name, None).unwrap();
                connection.rows(&format!("PRAGMA page_size = {page_bytes}; PRAGMA journal_mode = WAL"));
                connection.rows("CREATE TABLE IF NOT EXISTS t(a INTEGER PRIMARY KEY, b)");
                insert(&connection, 30);
                connection.rows("BEGIN; INSERT INTO t(b) SELECT hex(zeroblob(40000)) FROM t; ROLLBACK; UPDATE t SET b = b || 'x'");
                assert_eq!(connection.one("PRAGMA page_size"), page_bytes.to_string());
                assert_eq!(
                    system().open_stock(&path).one("PRAGMA integrity_check"),
                    "ok",
                    "beside, {page_bytes}"
                );
            }
            let stock = system().open_stock(&path);
            assert_eq!(stock.one("PRAGMA integrity_check"), "ok", "{page_bytes} {persist}");
            assert_eq!(stock.one("SELECT count(*) || ' ' || sum(b LIKE '%x') FROM t"), "60 60");
        }
    }
}

#[test]
fn exclusive_locking_mode_is_as_on_stock() {
    system().load(None).unwrap();
    let scratch = Scratch::new("exclusive");
    for persist in ["flush", "fua"] {
        let path = scratch.join(&format!("{persist}.db"));
        let name = format!("file:{}?waldio_persist={persist}", path.display());
        drop(create(&path));
        let connection = system().open_with(&name, None).unwrap();
        connection.rows("PRAGMA locking_mode = EXCLUSIVE");
        insert(&connection, 300);
        assert!(!beside(&path, "-shm").exists(), "no wal-index in exclusive mode");
        assert_eq!(connection.status("log"), "open");
        let other = system().open_stock(&path);
        other.busy_timeout(0);
        assert_eq!(other.run("SELECT count(*) FROM t").1.unwrap().primary(), 5, "SQLITE_BUSY");
        connection.checkpoint(ffi::SQLITE_CHECKPOINT_FULL);
        insert(&connection, 20);
        drop(connection);
        assert_eq!(other.one("SELECT count(*) FROM t"), "320");
        assert_eq!(other.one("PRAGMA integrity_check"), "ok");
    }
}

/// SQLite's own growth is a page at a time.
#[test]
fn the_database_file_grows_in_chunks_where_it_is_large() {
    in_own_process("the_database_file_grows_in_chunks_where_it_is_large", || {
        let scratch = Scratch::new("chunks");
        let path = scratch.join("a.db");
        system().load(None).unwrap();
        let name = format!("file:{}?waldio_db_chunk=64KiB", path.display());
        let db = system().open_with(&name, None).unwrap();
        db.rows("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; CREATE TABLE t(value)");
        let size = || std::fs::metadata(&path).unwrap().len();
        let mut sizes = Vec::new();
        for _ in 0..60 {
            db.rows("INSERT INTO t SELECT zeroblob(3000) FROM (VALUES(1),(2),(3))");
            db.rows("PRAGMA wal_checkpoint");
            sizes.push(size());
        }
        let (small, large): (Vec<u64>, Vec<u64>) = sizes.into_iter().partition(|size| *size < 4 * (64 << 10));
        assert!(small.iter().any(|size| size % (64 << 10) != 0), "{small:?}");
        let mut large = large[1..].to_vec();
        assert!(large.iter().all(|size| size % (64 << 10) == 0), "{large:?}");
        large.dedup();
        assert!((4..12).contains(&large.len()), "{large:?}");
        let pages: u64 = db.one("PRAGMA page_count").parse().unwrap();
        assert!(pages * 4096 <= size(), "what is behind the pages is no part of the database");
        assert_eq!(db.one("PRAGMA integrity_check"), "ok");
        drop(db);
        let stock = system().open_stock(&path);
        assert_eq!(
            (stock.one("SELECT count(*) FROM t"), stock.one("PRAGMA page_count")),
            ("180".into(), pages.to_string())
        );
    });
}

/// Pages that VACUUM drops are no zeros; chunks do not keep them readable.
#[test]
fn what_vacuum_drops_does_not_stay_behind_in_a_chunk() {
    in_own_process("what_vacuum_drops_does_not_stay_behind_in_a_chunk", || {
        const SECRET: &[u8] = b"SECRETSECRET";
        system().load(None).unwrap();
        // All but a few rows go; some rows go, less than a chunk.
        for kept in [3, 290] {
            let scratch = Scratch::new("chunks-vacuum");
            let path = scratch.join("a.db");
            let name = format!("file:{}?waldio_db_chunk=64KiB", path.display());
            let db = system().open_with(&name, None).unwrap();
            db.rows("PRAGMA journal_mode=WAL; PRAGMA secure_delete=OFF; CREATE TABLE t(id INTEGER PRIMARY KEY, x)");
            for id in 0..300 {
                let text = if id < kept { "kept" } else { "SECRETSECRET" };
                db.rows(&format!("INSERT INTO t VALUES({id}, replace(hex(zeroblob(300)), '00', '{text}'))"));
            }
            db.rows("PRAGMA wal_checkpoint(TRUNCATE)");
            db.rows(&format!("DELETE FROM t WHERE id >= {kept}; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)"));
            drop(db);
            let bytes = std::fs::read(&path).unwrap();
            let found = bytes.windows(SECRET.len()).filter(|window| *window == SECRET).count();
            assert_eq!(found, 0, "in {} bytes, {kept} rows kept", bytes.len());
        }
    });
}

/// As SQLite does: an open that must not block would be an error there.
#[test]
fn a_log_that_another_program_has_a_lease_on_is_waited_for() {
    if let Some(reason) = no_python() {
        return skipped(&reason);
    }
    for options in ["waldio_layout=stock", "waldio_layout=embedded"] {
        let scratch = Scratch::new("lease");
        let path = scratch.join("a.db");
        let told = must(&mut python("lease.py", &[path.to_str().unwrap(), options]));
        assert_eq!(told, "1 rows\nthe lease was asked for True", "{options}");
    }
}
