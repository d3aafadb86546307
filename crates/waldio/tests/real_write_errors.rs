//! Goal: after real write errors a commit that returned OK is on the disk, whatever the file system made of the failed blocks.
//! Method: ext4 on a loop device whose image lies on a tmpfs that is full: new blocks of the log cannot be written, and the sync says
//! so. Then there is room again, and the database is opened anew. The power is cut by a copy of the image. Stock SQLite loses what it
//! commits in the same connection behind such a failure. And a process is killed whose commits are in the page cache alone.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::fs::{self, File};
use std::io::Write;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;

use real::child::{Running, again, must, role, say_ready_and_wait};
use real::place::{Mount, skipped};
use real::sqlite::{Connection, SqlError, system};

const IMAGE_BYTES: usize = 64 << 20;
const BLOCK_BYTES: u64 = 4096;
/// SQLITE_READONLY
const READ_ONLY: i32 = 8;
/// Rows of a process that is killed, and the test in which it is.
const ROWS: u32 = 31;
const SMALL_ROW_BYTES: usize = 3000;
const KILLED: &str = "what_a_killed_process_committed_is_there_after_write_errors";
/// A row needs more blocks than are prepared.
const ROW_BYTES: usize = 300_000;

fn insert(connection: &Connection, row: u32, bytes: usize) -> Result<(), SqlError> {
    let error = connection.run(&format!("INSERT INTO t VALUES ({row}, zeroblob({bytes}))")).1;
    error.map_or(Ok(()), Err)
}

fn rows(connection: &Connection) -> Vec<String> {
    connection.rows("SELECT n FROM t ORDER BY n").iter().map(|row| row[0].clone()).collect()
}

/// Holes in the image wherever its file system has no block in use.
fn punch_free_blocks(image: &Path) {
    let told = must(Command::new("dumpe2fs").arg(image));
    let free = told.lines().filter_map(|line| line.strip_prefix("  Free blocks: "));
    let ranges = free.flat_map(|line| line.split(", ")).filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(RangeInclusive::new(first.parse::<u64>().ok()?, last.parse::<u64>().ok()?))
    });
    for range in ranges {
        let (from, bytes) = (range.start() * BLOCK_BYTES, (range.end() + 1 - range.start()) * BLOCK_BYTES);
        let [from, bytes] = [from, bytes].map(|number| number.to_string());
        must(Command::new("fallocate").args(["-p", "-o", &from, "-l", &bytes]).arg(image));
    }
}

/// Takes all room that there is, but for so many bytes.
fn fill(path: &Path, left_bytes: u64) {
    let mut file = File::create(path).unwrap();
    while file.write_all(&[1; 4096]).is_ok() {}
    file.set_len(file.metadata().unwrap().len() - left_bytes).unwrap();
}

/// An image with ext4 and an empty database on it, whose free blocks need room in `room` when they are written.
fn image(room: &Mount, features: &str) -> PathBuf {
    room.remount("size=90m");
    let image = room.join("image");
    fs::write(&image, vec![0; IMAGE_BYTES]).unwrap();
    let now = "nodiscard,lazy_itable_init=0,lazy_journal_init=0";
    must(Command::new("mkfs.ext4").args(["-q", "-b", "4096", "-E", now, "-O", features]).arg(&image));
    let place = Mount::of_image(&image).unwrap();
    let create = "PRAGMA journal_mode=WAL; CREATE TABLE t(n INTEGER PRIMARY KEY, x)";
    drop(system().open(&place.join("app.db")).rows(create));
    drop(place);
    punch_free_blocks(&image);
    image
}

/// What the process met whose disk was full.
#[derive(Debug, Clone, Copy)]
struct Before {
    durability: &'static str,
    row_bytes: usize,
    /// Of ext4.
    features: &'static str,
    /// Room that there was.
    left_bytes: u64,
}

/// What such a process met is over, and another one goes on. False where the file system itself did not: its
/// journal had an error, too, and it is read-only now.
fn goes_on_behind_write_errors(room: &Mount, before: Before) -> bool {
    let Before { durability, row_bytes, features, .. } = before;
    let image = image(room, features);
    let place = Mount::of_image(&image).unwrap();
    let name = format!("file:{}?waldio_durability=", place.join("app.db").display());
    let open = |durability: &str| {
        let connection = system().open_with(&format!("{name}{durability}"), None).unwrap();
        connection.rows("PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0");
        connection
    };
    let first = open(durability);
    insert(&first, 1, 0).unwrap();
    fill(&room.join("filler"), before.left_bytes);
    let failed = (2..100).find(|row| insert(&first, *row, row_bytes).is_err()).expect("a disk without room");
    fs::remove_file(room.join("filler")).unwrap();
    drop(first);
    // A failure that nobody was told of yet is told to who opens the file next; then it takes another opening.
    let rounds = (1..6).map(|round| (open("full"), 100 * round));
    let mut results = rounds.map(|(second, row)| {
        let done = (row..row + 10).try_for_each(|row| insert(&second, row, row_bytes));
        done.map(|()| second)
    });
    let second = match results
        .find(|result| result.as_ref().map_or_else(|error| error.primary() == READ_ONLY, |_| true))
    {
        Some(Ok(second)) => second,
        Some(Err(_)) => return false,
        None => panic!("{durability}: there is room again"),
    };
    let acknowledged = rows(&second);

    // What a machine finds that loses its power now.
    let after = room.join("after");
    fs::copy(&image, &after).unwrap();
    {
        let recovered = Mount::of_image(&after).unwrap();
        let stock = system().open_stock(&recovered.join("app.db"));
        assert_eq!(stock.one("PRAGMA integrity_check"), "ok", "{durability}");
        assert_eq!(rows(&stock), acknowledged, "{durability}: row {failed} failed");
    }
    drop(second);
    true
}

#[test]
fn commits_behind_blocks_that_could_not_be_written_survive_a_power_cut() {
    system().load(None).unwrap();
    let large = Before { durability: "full", row_bytes: ROW_BYTES, features: "has_journal", left_bytes: 0 };
    // Where a flush is shared or delayed the frames in the log were lost themselves; elsewhere those that were not published.
    let delayed = Before { durability: "bounded", ..large };
    // Zeros were prepared behind the commits, and some of them could not be written: they read the same from the medium.
    let prepared =
        Before { row_bytes: SMALL_ROW_BYTES, features: "^has_journal", left_bytes: 64 << 10, ..large };
    for before in [large, delayed, prepared] {
        let one = || match Mount::tmpfs() {
            Ok(room) => goes_on_behind_write_errors(&room, before),
            Err(why) => {
                skipped(&why);
                true
            }
        };
        assert!((0..8).any(|_| one()), "{before:?}: each time the file system was read-only at the end");
    }
}

/// Commits with NORMAL while there is room and while there is none; then it waits to be killed.
fn commit_and_wait(database: &Path) {
    let connection = system().open(database);
    connection.rows("PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=0");
    insert(&connection, 1, SMALL_ROW_BYTES).unwrap();
    say_ready_and_wait();
    (2..=ROWS).for_each(|row| insert(&connection, row, SMALL_ROW_BYTES).unwrap());
    say_ready_and_wait();
}

/// The disk did not take what a killed process committed with NORMAL; the page cache has it.
fn keeps_what_the_page_cache_has(room: &Mount) {
    let place = Mount::of_image(&image(room, "^has_journal")).unwrap();
    let database = place.join("app.db");
    let sync = || Command::new("sync").arg("-f").arg(&database).status().unwrap().success();
    let mut child = Running::start_with_input(&mut again(KILLED, &[database.to_str().unwrap()]));
    child.wait_until_ready();
    assert!(sync());
    fill(&room.join("filler"), 0);
    child.tell("\n");
    child.wait_until_ready();
    assert!(!sync(), "there is no room");
    child.kill();
    drop(child);
    fs::remove_file(room.join("filler")).unwrap();
    // Who is first recovers the log; the second one sees what that left.
    for opening in ["first", "second"] {
        let connection = system().open(&database);
        connection.rows("PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0");
        let found = rows(&connection);
        assert!(found.len() >= ROWS as usize, "{opening}: {} of {ROWS} rows", found.len());
    }
}

#[test]
fn what_a_killed_process_committed_is_there_after_write_errors() {
    system().load(None).unwrap();
    match role(KILLED) {
        Some(arguments) => commit_and_wait(Path::new(&arguments[0])),
        None => match Mount::tmpfs() {
            Ok(room) => keeps_what_the_page_cache_has(&room),
            Err(why) => skipped(&why),
        },
    }
}
