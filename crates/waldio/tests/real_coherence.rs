//! Goal: processes beside each other, with waldio and without, never see a stale or torn frame of the log.
//! Method: waldio writes durably with direct I/O (and its buffered way, and stock SQLite, in between); readers of both kinds verify snapshot
//! after snapshot, through the page cache that direct writes go past. Bounded by commits, not by time.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::path::Path;

use real::child::{Running, no_python, python};
use real::place::{Mount, Scratch, skipped};
use real::sqlite::system;

/// What one writer's last line says.
struct Written {
    acknowledged: usize,
    status: String,
}

impl Written {
    fn has(&self, name: &str, value: &str) -> bool {
        self.status.contains(&format!("\"{name}\": {value}"))
    }
}

/// Writers (side, commits, synchronous) and a reader of each side at once on one database; what the writers said.
fn run(database: &Path, writers: &[(&str, u32, &str)]) -> Vec<Written> {
    let path = database.to_str().unwrap();
    // The schema first: a reader has nothing to verify before.
    let (_, made) =
        Running::start(&mut python("worker.py", &["write", path, "stock", "first", "1", "FULL"])).finish();
    assert!(made, "the database could not be made");
    let readers: Vec<Running> = ["waldio", "stock", "stock"]
        .iter()
        .enumerate()
        .map(|(index, side)| {
            Running::start(&mut python("worker.py", &["read", path, side, &format!("reader{index}")]))
        })
        .map(|mut reader| {
            assert_eq!(reader.line().as_deref(), Some("reading"));
            reader
        })
        .collect();
    let writers: Vec<Running> = writers
        .iter()
        .enumerate()
        .map(|(index, (side, commits, synchronous))| {
            let (name, commits) = (format!("{side}{index}"), commits.to_string());
            Running::start(&mut python("worker.py", &["write", path, side, &name, &commits, synchronous]))
        })
        .collect();
    let written = writers.into_iter().map(|writer| {
        let (lines, well) = writer.finish();
        let status = lines.last().cloned().unwrap_or_default();
        assert!(well, "a writer failed; its last line is {status:?}");
        Written { acknowledged: lines.iter().filter(|line| line.starts_with("ack ")).count(), status }
    });
    let written: Vec<Written> = written.collect();
    system().open_stock(database).rows("INSERT INTO finish VALUES (1)");
    for reader in readers {
        let (lines, well) = reader.finish();
        assert!(well, "a reader saw what nobody wrote");
        let snapshots: u32 =
            lines.last().and_then(|line| line.strip_prefix("snapshots ")).unwrap().parse().unwrap();
        assert!(snapshots > 20, "{snapshots} snapshots beside all those commits prove little");
    }
    let stock = system().open_stock(database);
    assert_eq!(stock.one("PRAGMA integrity_check"), "ok");
    written
}

/// What holds on a file system whose log takes direct writes.
fn coherent(database: &Path, commits: u32) {
    let lone = run(database, &[("waldio-fua", commits, "FULL")]);
    assert_eq!(lone[0].acknowledged, commits as usize);
    assert!(lone[0].has("persist", "\"fua\""), "no direct writes here: {}", lone[0].status);
    assert!(!lone[0].has("durable_writes", "0"), "not one direct write: {}", lone[0].status);
    assert!(lone[0].has("errors", "0"), "{}", lone[0].status);
}

fn coherent_mixed(database: &Path, commits: u32) {
    let sides = [
        ("waldio-fua", commits, "FULL"),
        ("stock", commits, "FULL"),
        ("waldio", commits, "FULL"),
        ("waldio-fua", commits, "NORMAL"),
        ("stock", commits / 2, "NORMAL"),
    ];
    let written = run(database, &sides);
    for (one, (side, commits, _)) in written.iter().zip(sides) {
        assert_eq!(one.acknowledged, commits as usize, "{side}");
        assert!(side == "stock" || one.has("errors", "0"), "{}", one.status);
    }
    assert!(written[0].has("persist", "\"fua\""), "no direct writes here: {}", written[0].status);
    // The default goes direct only while alone, and five writers never are (docs: `waldio_persist=auto`).
    assert!(written[2].has("durable_writes", "0"), "direct beside others: {}", written[2].status);
}

/// An ext4 folder: where tests stand, if that is ext4, or an image.
enum Ext4 {
    Here(Scratch),
    Image(Mount),
}

impl Ext4 {
    fn new(name: &str) -> Result<Ext4, String> {
        const EXT4: i64 = 0xEF53;
        let here = Scratch::new(name);
        let found = rustix::fs::statfs(here.path()).map(|facts| facts.f_type);
        if found.is_ok_and(|kind| kind == EXT4) {
            Ok(Ext4::Here(here))
        } else {
            Mount::image("ext4", 128).map(Ext4::Image)
        }
    }

    fn join(&self, name: &str) -> std::path::PathBuf {
        match self {
            Ext4::Here(scratch) => scratch.join(name),
            Ext4::Image(mount) => mount.join(name),
        }
    }
}

#[test]
fn readers_beside_direct_writes_see_whole_new_frames() {
    if let Some(why) = no_python() {
        return skipped(&why);
    }
    match Ext4::new("coherence") {
        Ok(place) => coherent(&place.join("app.db"), 3000),
        Err(why) => skipped(&format!("coherence on ext4: {why}")),
    }
}

#[test]
fn writers_with_and_without_waldio_take_turns() {
    if let Some(why) = no_python() {
        return skipped(&why);
    }
    match Ext4::new("mixed") {
        Ok(place) => coherent_mixed(&place.join("app.db"), 600),
        Err(why) => skipped(&format!("mixed writers on ext4: {why}")),
    }
}

#[test]
fn the_same_holds_on_xfs() {
    if let Some(why) = no_python() {
        return skipped(&why);
    }
    match Mount::image("xfs", 320) {
        Ok(place) => {
            coherent(&place.join("lone.db"), 1000);
            coherent_mixed(&place.join("mixed.db"), 250);
        }
        Err(why) => skipped(&format!("coherence on XFS: {why}")),
    }
}
