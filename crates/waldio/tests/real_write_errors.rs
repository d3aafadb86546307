//! Goal: after real write errors a commit that returned OK is on the disk, whatever the file system made of the failed blocks.
//! Method: ext4 on a loop device whose image lies on a tmpfs that is full: new blocks of the log cannot be written, and the sync says
//! so. Then there is room again, and the database is opened anew. The power is cut by a copy of the image. Stock SQLite loses what it
//! commits in the same connection behind such a failure.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::fs::{self, File};
use std::io::Write;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::Command;

use real::child::must;
use real::place::{Mount, skipped};
use real::sqlite::{Connection, system};

const IMAGE_BYTES: usize = 64 << 20;
const BLOCK_BYTES: u64 = 4096;
/// A row needs more blocks than are prepared.
const ROW_BYTES: usize = 300_000;

fn insert(connection: &Connection, row: u32, bytes: usize) -> bool {
    connection.run(&format!("INSERT INTO t VALUES ({row}, zeroblob({bytes}))")).1.is_none()
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

/// Takes all room that there is.
fn fill(path: &Path) {
    let mut file = File::create(path).unwrap();
    while file.write_all(&[1; 4096]).is_ok() {}
}

#[test]
fn commits_behind_blocks_that_could_not_be_written_survive_a_power_cut() {
    let room = match Mount::tmpfs() {
        Ok(room) => room,
        Err(why) => return skipped(&why),
    };
    room.remount("size=90m");
    let image = room.join("image");
    fs::write(&image, vec![0; IMAGE_BYTES]).unwrap();
    let now = "nodiscard,lazy_itable_init=0,lazy_journal_init=0";
    must(Command::new("mkfs.ext4").args(["-q", "-b", "4096", "-E", now]).arg(&image));
    system().load(None).unwrap();
    let begin = || match Mount::of_image(&image) {
        Ok(place) => Some(place),
        Err(why) => {
            skipped(&why);
            None
        }
    };
    let Some(place) = begin() else { return };
    drop(
        system()
            .open(&place.join("app.db"))
            .rows("PRAGMA journal_mode=WAL; CREATE TABLE t(n INTEGER PRIMARY KEY, x)"),
    );
    drop(place);
    punch_free_blocks(&image);

    let Some(place) = begin() else { return };
    let path = place.join("app.db");
    let open = || {
        let connection = system().open(&path);
        connection.rows("PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0");
        connection
    };
    let first = open();
    assert!(insert(&first, 1, 0));
    fill(&room.join("filler"));
    let failed = (2..40).find(|row| !insert(&first, *row, ROW_BYTES)).expect("a disk without room");
    fs::remove_file(room.join("filler")).unwrap();
    drop(first);
    let second = open();
    for row in 100..105 {
        assert!(insert(&second, row, 10), "{row}: there is room again");
    }
    let acknowledged = rows(&second);

    // What a machine finds that loses its power now.
    let after = room.join("after");
    fs::copy(&image, &after).unwrap();
    {
        let recovered = Mount::of_image(&after).unwrap();
        let stock = system().open_stock(&recovered.join("app.db"));
        assert_eq!(stock.one("PRAGMA integrity_check"), "ok");
        assert_eq!(rows(&stock), acknowledged, "row {failed} failed");
    }
    drop(second);
}
