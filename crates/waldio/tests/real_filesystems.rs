//! Goal: on every file system a database works with waldio, and `waldio_status` says what is used there.
//! Method: real mounts of each kind; 200 durable inserts, everything closed, stock SQLite reads it all back. What this
//! machine cannot mount is skipped, with its reason.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use real::child::{Running, in_own_process, must, no_python, python};
use real::place::{Mount, Scratch, skipped};
use real::sqlite::{Connection, system};

const ROWS: usize = 200;

fn open(path: &Path) -> Connection {
    system().load(None).unwrap();
    system().open(path)
}

/// A WAL database with one table, by waldio.
fn create(path: &Path) -> Connection {
    let connection = open(path);
    assert_eq!(connection.one("PRAGMA journal_mode = WAL"), "wal");
    connection.rows("PRAGMA synchronous = FULL; CREATE TABLE t(a INTEGER PRIMARY KEY, b)");
    connection
}

/// What is there is sound, by stock SQLite, and so many rows.
#[track_caller]
fn stock_reads(path: &Path, rows: usize) {
    let stock = system().open_stock(path);
    assert_eq!(stock.one("PRAGMA integrity_check"), "ok");
    assert_eq!(stock.one("SELECT count(*) FROM t"), rows.to_string());
}

/// What holds of the log on one kind of file system.
struct Expected {
    filesystem: &'static str,
    /// `None`: that depends on the kernel.
    direct_writes: Option<bool>,
    /// `None`: on what the device below can do.
    fill: Option<&'static str>,
}

/// 200 durable inserts, closed, read by stock; then once more, from what that left, with direct writes asked for.
fn works(place: Result<Mount, String>, expected: &Expected, while_open: impl Fn(&Path)) {
    let place = match place {
        Ok(place) => place,
        Err(why) => return skipped(&why),
    };
    let path = place.join("app.db");
    create(&path);
    for (round, parameters) in ["", "?waldio_persist=fua"].iter().enumerate() {
        let connection = system().open_with(&format!("file:{}{parameters}", path.display()), None).unwrap();
        connection.rows("PRAGMA synchronous = FULL");
        for row in 1..=ROWS {
            connection.rows(&format!("INSERT INTO t(b) VALUES (printf('%d %.*c', {row}, 200, 'x'))"));
        }
        check_status(&connection, expected, !parameters.is_empty());
        while_open(&path);
        drop(connection);
        stock_reads(&path, (round + 1) * ROWS);
    }
}

fn check_status(connection: &Connection, expected: &Expected, direct_asked: bool) {
    let mut facts =
        vec![("layout", "stock"), ("log", "open"), ("errors", "0"), ("poison", "NULL"), ("strict", "off")];
    facts.push(("filesystem", expected.filesystem));
    match (direct_asked, expected.direct_writes) {
        (true, None) => {}
        (true, Some(true)) => facts.push(("persist", "fua")),
        _ => facts.push(("persist", "flush")),
    }
    facts.extend(expected.fill.map(|fill| ("fill", fill)));
    for (name, value) in facts {
        let row = connection.status_row(name);
        assert_eq!(row[0], value, "{name}: {row:?}");
        assert!(!row[1].is_empty(), "{name} does not say where it was read");
    }
    let flushes: usize = connection.status("flushes").parse().unwrap();
    assert!(flushes >= ROWS, "{flushes} flushes for {ROWS} durable commits");
    let durable_writes: usize = connection.status("durable_writes").parse().unwrap();
    let direct = connection.status("persist") == "fua";
    assert_eq!(durable_writes > ROWS / 2, direct, "{durable_writes} direct writes");
}

#[test]
fn ext4() {
    let expected = Expected { filesystem: "ext4", direct_writes: Some(true), fill: None };
    works(Mount::image("ext4", 64), &expected, |_| {});
}

#[test]
fn xfs() {
    let expected = Expected { filesystem: "xfs", direct_writes: Some(true), fill: None };
    works(Mount::image("xfs", 320), &expected, |_| {});
}

#[test]
fn btrfs_whose_log_is_not_copied_on_write() {
    let expected = Expected { filesystem: "btrfs", direct_writes: None, fill: None };
    works(Mount::image("btrfs", 160), &expected, |path| {
        assert!(attributes(&log_of(path)).contains('C'), "the log is copied on write");
        let wal_index = path.with_file_name("app.db-shm");
        assert!(attributes(&wal_index).contains('C'), "the wal-index is copied on write");
        assert!(!attributes(path).contains('C'), "the database is not ours to change");
    });
}

#[test]
fn on_btrfs_the_wal_index_of_either_layout_is_overwritten_in_place() {
    let place = match Mount::image("btrfs", 160) {
        Ok(place) => place,
        Err(why) => return skipped(&why),
    };
    system().load(None).unwrap();
    for (layout, name) in [("stock", "app.db-shm"), ("embedded", "app.db-waldio-shm")] {
        let path = place.join("app.db");
        let open =
            || system().open_with(&format!("file:{}?waldio_layout={layout}", path.display()), None).unwrap();
        let db = open();
        db.rows("PRAGMA journal_mode=WAL; CREATE TABLE t(a)");
        let wal_index = path.with_file_name(name);
        assert!(attributes(&wal_index).contains('C'), "{name} is copied on write");
        drop(db);
        assert!(!wal_index.exists(), "{name} stays after the close");
        fs::remove_file(&path).unwrap();
    }
}

fn attributes(path: &Path) -> String {
    let listed = must(Command::new("lsattr").arg(path));
    listed.split(' ').next().unwrap_or_default().to_owned()
}

#[test]
fn tmpfs() {
    let fill = Some("none: nothing to gain here, or strict mode");
    works(Mount::tmpfs(), &Expected { filesystem: "tmpfs", direct_writes: None, fill }, |_| {});
}

#[test]
fn overlayfs() {
    works(Mount::overlay(), &Expected { filesystem: "overlay", direct_writes: None, fill: None }, |_| {});
}

#[test]
fn fuse() {
    works(Mount::fuse(), &Expected { filesystem: "fuse", direct_writes: None, fill: None }, |_| {});
}

fn log_of(path: &Path) -> std::path::PathBuf {
    path.with_extension("db-wal")
}

/// The database with a log that was never closed, as a crash leaves it, copied to `to`.
fn crashed_copy(to: &Path) {
    let scratch = Scratch::new("crashed");
    let path = scratch.join("app.db");
    let connection = create(&path);
    for row in 0..ROWS {
        connection.rows(&format!("INSERT INTO t(b) VALUES ('row {row}')"));
    }
    for suffix in ["", "-wal", "-shm"] {
        let name = |base: &Path| format!("{}{suffix}", base.display());
        fs::copy(name(&path), name(to)).unwrap();
    }
}

#[test]
fn read_only_media_are_read_and_the_status_says_so() {
    let place = match Mount::image("ext4", 64) {
        Ok(place) => place,
        Err(why) => return skipped(&why),
    };
    let (crashed, rollback) = (place.join("crashed.db"), place.join("rollback.db"));
    crashed_copy(&crashed);
    open(&rollback).rows("PRAGMA journal_mode = DELETE; CREATE TABLE t(a); INSERT INTO t VALUES (1)");
    place.remount("ro");

    let connection = open(&crashed);
    assert_eq!(connection.one("SELECT count(*) FROM t"), ROWS.to_string());
    assert_eq!(connection.one("PRAGMA integrity_check"), "ok");
    let log = connection.status_row("log");
    assert_eq!(log[0], "passed through");
    assert!(log[1].contains("Read-only file system"), "the reason is {:?}", log[1]);
    // The very answers of stock, not only a refusal.
    for sql in [
        "INSERT INTO t(b) VALUES (1)",
        "PRAGMA wal_checkpoint",
        "PRAGMA journal_mode = DELETE",
        "SELECT max(a) FROM t",
    ] {
        assert_eq!(connection.run(sql), system().open_stock(&crashed).run(sql), "{sql}");
    }
    assert_eq!(open(&rollback).one("SELECT count(*) FROM t"), "1");
    drop(connection);
    place.remount("rw");
    open(&crashed).rows("INSERT INTO t(b) VALUES ('writable again')");
    stock_reads(&crashed, ROWS + 1);
}

#[test]
fn a_database_opened_read_only_is_read() {
    let scratch = Scratch::new("mode-ro");
    let path = scratch.join("app.db");
    let writer = create(&path);
    writer.rows("INSERT INTO t(b) VALUES (1)");
    let reader = system().open_with(&format!("file:{}?mode=ro", path.display()), None).unwrap();
    assert_eq!(reader.one("SELECT count(*) FROM t"), "1");
    writer.rows("INSERT INTO t(b) VALUES (2)");
    assert_eq!(reader.one("SELECT count(*) FROM t"), "2");
    assert_eq!(reader.run("INSERT INTO t(b) VALUES (3)").1.unwrap().primary(), 8, "SQLITE_READONLY");
    drop(writer);
    drop(reader);
    stock_reads(&path, 2);
}

/// Fills the file system up to its last block, but for `left_bytes`.
fn fill_up(place: &Mount, left_bytes: u64) -> std::path::PathBuf {
    let ballast = place.join("ballast");
    let mut file = fs::File::create(&ballast).unwrap();
    for chunk_bytes in [1 << 20, 64 << 10, 4096] {
        while std::io::Write::write_all(&mut file, &vec![7; chunk_bytes])
            .and_then(|()| file.sync_data())
            .is_ok()
        {}
    }
    let filled_bytes = file.metadata().unwrap().len();
    file.set_len(filled_bytes.saturating_sub(left_bytes)).unwrap();
    file.sync_all().unwrap();
    ballast
}

const SQLITE_FULL: i32 = 13;

/// Inserts until one fails; how many did not. The failure must be "full".
fn insert_until_full(connection: &Connection, rows: &str, case: &str) -> usize {
    for number in 0..100_000 {
        if let Some(error) = connection.run(rows).1 {
            assert_eq!(error.primary(), SQLITE_FULL, "{case}: {error}");
            return number;
        }
    }
    panic!("{case}: the disk never filled up");
}

/// The disk fills up while the log grows, so that `left_bytes` are left when it begins; then room is made.
fn survives_a_full_disk(filesystem: &str, mib: u64) {
    for (parameters, left_bytes) in
        [("", 0), ("", 40 << 10), ("?waldio_persist=fua", 700 << 10), ("", 3 << 20)]
    {
        let case = format!("{filesystem} {parameters:?}, {left_bytes} bytes left");
        let place = match Mount::image(filesystem, mib) {
            Ok(place) => place,
            Err(why) => return skipped(&why),
        };
        let path = place.join("app.db");
        create(&path);
        let connection = system().open_with(&format!("file:{}{parameters}", path.display()), None).unwrap();
        connection.rows("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; SELECT count(*) FROM t");
        let ballast = fill_up(&place, left_bytes);
        let mut acknowledged =
            insert_until_full(&connection, "INSERT INTO t(b) VALUES (randomblob(3000))", &case);
        // Again, with transactions that are larger than what may be left; their rows count only with COMMIT.
        let large = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
             INSERT INTO t(b) SELECT randomblob(3000) FROM n";
        acknowledged += 400 * insert_until_full(&connection, large, &case);
        // What was acknowledged is there, for this connection and for others, and nothing else.
        assert_eq!(connection.one("SELECT count(*) FROM t"), acknowledged.to_string(), "{case}");
        assert_eq!(connection.one("PRAGMA integrity_check"), "ok", "{case}");
        stock_reads(&path, acknowledged);

        fs::remove_file(ballast).unwrap();
        for _ in 0..50 {
            connection.rows("INSERT INTO t(b) VALUES (randomblob(3000))");
        }
        assert_eq!(connection.status("poison"), "NULL", "{case}");
        drop(connection);
        stock_reads(&path, acknowledged + 50);
    }
}

#[test]
fn a_full_ext4_is_an_error_and_nothing_is_lost() {
    in_own_process("a_full_ext4_is_an_error_and_nothing_is_lost", || survives_a_full_disk("ext4", 24));
}

#[test]
fn a_full_xfs_is_an_error_and_nothing_is_lost() {
    in_own_process("a_full_xfs_is_an_error_and_nothing_is_lost", || survives_a_full_disk("xfs", 320));
}

/// What a writer says and how it ends on a disk that fills up under it.
struct Ending {
    acknowledged: usize,
    end: String,
}

/// Where a full disk has no block for a mapped page, storing into the wal-index ends the process with SIGBUS, stock
/// SQLite's as well: on a Btrfs whose kernel copies all mapped pages, and on ext4 with blocks smaller than a page of memory. So the writer is a child. It is
/// told of a full disk or an I/O error, or it is killed; what was acknowledged before is there, and at most the one
/// transaction that was under way.
fn fills_up_under_a_writer(kind: &str, mib: u64, left_bytes: u64, side: &str) -> Result<Ending, String> {
    const SIGBUS: i32 = 7;
    const SQLITE_IOERR: i32 = 10;
    if let Some(why) = no_python() {
        return Err(why);
    }
    let case = format!("{kind}, {left_bytes} bytes left, {side}");
    let place = Mount::image(kind, mib)?;
    let path = place.join("app.db");
    drop(create(&path));
    let ballast = fill_up(&place, left_bytes);
    let arguments = ["write", path.to_str().unwrap(), side, "writer", "100000", "FULL"];
    let mut command = python("worker.py", &arguments);
    let (lines, status) = Running::start(command.stderr(Stdio::null())).finish_with_status();
    assert!(!status.success(), "{case}: 100,000 rows fit");
    let error = lines.iter().find_map(|line| line.strip_prefix("error "));
    match (error.and_then(|error| error.split(' ').next()), status.signal()) {
        (None, Some(SIGBUS)) => {}
        // Extended codes; before Python 3.11 there are none.
        (Some("-1"), None) => {}
        // Told first, it may still be killed when it closes.
        (Some(code), None | Some(SIGBUS)) => {
            let primary = code.parse::<i32>().unwrap() & 0xff;
            assert!([SQLITE_FULL, SQLITE_IOERR].contains(&primary), "{case}: {error:?}");
        }
        _ => panic!("{case}: {status}, {error:?}"),
    }
    fs::remove_file(ballast).unwrap();
    let acknowledged = lines.iter().filter(|line| line.starts_with("ack ")).count();
    let stock = system().open_stock(&path);
    assert_eq!(stock.one("PRAGMA integrity_check"), "ok", "{case}");
    // Row by row: rows 1 to the last acknowledged, each with its content, and no more than one behind it.
    let has_table = stock.one("SELECT count(*) FROM sqlite_master WHERE name = 'rows'") == "1";
    let found = if has_table { stock.one("SELECT count(*) FROM rows").parse().unwrap() } else { 0 };
    assert!((acknowledged..=acknowledged + 1).contains(&found), "{case}: {found} of {acknowledged} rows");
    if found > 0 {
        let newest = stock.one("SELECT min(seq) || ' ' || max(seq) || ' ' || count(DISTINCT seq) FROM rows");
        assert_eq!(newest, format!("1 {found} {found}"), "{case}");
        assert_eq!(stock.one("SELECT seq FROM head"), found.to_string(), "{case}");
    }
    let end = error.map_or_else(|| status.to_string(), ToOwned::to_owned);
    Ok(Ending { acknowledged, end })
}

#[test]
fn a_full_btrfs_loses_nothing() {
    match fills_up_under_a_writer("btrfs", 128, 3 << 20, "waldio") {
        Ok(ending) => assert!(ending.acknowledged > 10, "{} rows, then {}", ending.acknowledged, ending.end),
        Err(why) => skipped(&why),
    }
}

#[test]
fn a_full_ext4_with_blocks_smaller_than_a_page_loses_nothing_and_waldio_comes_as_far_as_stock() {
    for left_bytes in [40 << 10, 300 << 10, 3 << 20] {
        let [ours, stock] =
            ["waldio", "stock"].map(|side| fills_up_under_a_writer("ext4-1k", 24, left_bytes, side));
        let (ours, stock) = match (ours, stock) {
            (Ok(ours), Ok(stock)) => (ours, stock),
            (Err(why), _) | (_, Err(why)) => return skipped(&why),
        };
        println!(
            "{left_bytes}: waldio {} rows, then {}; stock {}, then {}",
            ours.acknowledged, ours.end, stock.acknowledged, stock.end
        );
        // Space that waldio reserved would be missing here.
        assert!(
            ours.acknowledged * 10 >= stock.acknowledged * 8,
            "{left_bytes} bytes left: waldio wrote {} rows and then {}, stock {} and then {}",
            ours.acknowledged,
            ours.end,
            stock.acknowledged,
            stock.end
        );
    }
}
