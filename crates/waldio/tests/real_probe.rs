//! Goal: what could not be looked at is not taken for nothing: a log that cannot be opened or read for the moment is lost in
//! no layout, the statement fails as it would on stock, and the next one works.
//! Method: a disk that fails so many openings or readings of the log, each number in turn and each error, above logs that a crash left in
//! each layout; stock's rows and codes are the measure. Real files, and real descriptors that are used up.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::collections::VecDeque;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use blockio::disk::{Disk, DiskFile, Facts, FileId, Fill, OpenOptions};
use blockio::real::disk::RealDisk;

use real::child::in_own_process;
use real::place::Scratch;
use real::sqlite::{Connection, system};

const EINTR: i32 = 4;
const EIO: i32 = 5;
const ENOMEM: i32 = 12;
const EACCES: i32 = 13;
const EMFILE: i32 = 24;

/// What the next openings and readings of a log come to: 0 for success.
#[derive(Debug, Default)]
struct Faults {
    opening: Mutex<VecDeque<i32>>,
    reading: Mutex<VecDeque<i32>>,
}

impl Faults {
    fn next(of: &Mutex<VecDeque<i32>>) -> io::Result<()> {
        match of.lock().unwrap().pop_front() {
            Some(code) if code != 0 => Err(io::Error::from_raw_os_error(code)),
            _ => Ok(()),
        }
    }

    fn set(&self, opening: &[i32], reading: &[i32]) {
        *self.opening.lock().unwrap() = opening.iter().copied().collect();
        *self.reading.lock().unwrap() = reading.iter().copied().collect();
    }

    fn left(&self) -> usize {
        self.opening.lock().unwrap().len() + self.reading.lock().unwrap().len()
    }
}

#[derive(Debug)]
struct FaultyDisk(Arc<Faults>);

#[derive(Debug)]
struct FaultyFile(Box<dyn DiskFile>, Arc<Faults>);

impl Disk for FaultyDisk {
    fn open(&self, path: &Path, options: OpenOptions) -> io::Result<Box<dyn DiskFile>> {
        if !path.as_os_str().as_bytes().ends_with(b"-wal") {
            return RealDisk.open(path, options);
        }
        Faults::next(&self.0.opening)?;
        Ok(Box::new(FaultyFile(RealDisk.open(path, options)?, Arc::clone(&self.0))))
    }
    fn mode_and_owner(&self, path: &Path) -> io::Result<(u32, (u32, u32))> {
        RealDisk.mode_and_owner(path)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)
    }
    fn identity_of(&self, path: &Path) -> io::Result<FileId> {
        RealDisk.identity_of(path)
    }
    fn sync_dir_of(&self, path: &Path) -> io::Result<bool> {
        RealDisk.sync_dir_of(path)
    }
}

impl DiskFile for FaultyFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        Faults::next(&self.1.reading)?;
        self.0.read_at(into, offset)
    }
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_at(data, offset)
    }
    fn write_direct(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_direct(data, offset)
    }
    fn write_durable(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_durable(data, offset)
    }
    fn extend(&self, end: u64, fill: Fill) -> io::Result<u64> {
        self.0.extend(end, fill)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }
    fn sync_filesystem(&self) -> io::Result<()> {
        self.0.sync_filesystem()
    }
    fn identity(&self) -> io::Result<FileId> {
        self.0.identity()
    }
    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }
    fn truncate(&self, size_bytes: u64) -> io::Result<()> {
        self.0.truncate(size_bytes)
    }
    fn read_ahead(&self, offset: u64, len_bytes: u64) {
        self.0.read_ahead(offset, len_bytes);
    }
    fn facts(&self) -> Facts {
        self.0.facts()
    }
}

/// Makes "waldio-faulty" of this library; what its faults are.
fn faulty() -> Arc<Faults> {
    let faults = Arc::<Faults>::default();
    system().load_linked();
    system().register_on(c"waldio-faulty", c"unix", Arc::new(FaultyDisk(Arc::clone(&faults))));
    faults
}

fn open(path: &Path, layout: &str, vfs: &str) -> Connection {
    let layout = if layout.is_empty() { String::new() } else { format!("?waldio_layout={layout}") };
    let db = system().open_with(&format!("file:{}{layout}", path.display()), Some(vfs)).unwrap();
    db.busy_timeout(0);
    db
}

/// What a crash leaves of a database with ten rows, all of them in a log of this layout (`None`: no log at all).
fn crashed(scratch: &Scratch, name: &str, layout: Option<&str>) -> PathBuf {
    let (path, source) = (scratch.join(name), scratch.join(&format!("source-{name}")));
    let db = open(&source, layout.unwrap_or("stock"), "waldio");
    db.reserve_bytes(24);
    db.rows("PRAGMA journal_mode=WAL; CREATE TABLE t(a)");
    db.rows("WITH n(a) AS (VALUES(1) UNION ALL SELECT a+1 FROM n WHERE a<10) INSERT INTO t SELECT a FROM n");
    if let Some(layout) = layout {
        assert_eq!(db.status("layout"), layout);
        std::fs::copy(scratch.join(&format!("source-{name}-wal")), scratch.join(&format!("{name}-wal")))
            .unwrap();
        std::fs::copy(&source, &path).unwrap();
    } else {
        drop(db);
        std::fs::copy(&source, &path).unwrap();
    }
    path
}

const ROWS: &str = "SELECT count(*) FROM t";

/// Asks until it is answered: under the faults a statement fails with a code that stock has for them, or works.
fn answered(db: &Connection, rows: &str, expected: &[i32], what: &str, faults: &Faults) {
    for tries in 0.. {
        let left = faults.left();
        let (found, error) = db.run(ROWS);
        let Some(error) = error else {
            assert_eq!(found, [[rows]], "{what}");
            return;
        };
        assert!(expected.contains(&error.primary()), "{what}: {error}");
        assert!(faults.left() < left, "{what}: an error is remembered: {error}");
        assert!(tries < 20, "{what}: it never came back: {error}");
    }
}

/// Under the faults nothing is lost; afterwards all is there for everybody.
fn survives(path: &Path, layout: &str, expected: &[i32], what: &str, faults: &Faults) {
    let db = open(path, layout, "waldio-faulty");
    answered(&db, "10", expected, what, faults);
    let second = open(path, layout, "waldio-faulty");
    answered(&second, "10", expected, what, faults);
    faults.set(&[], &[]);
    db.rows("INSERT INTO t VALUES(11)");
    assert_eq!((db.one("PRAGMA integrity_check"), second.one(ROWS)), ("ok".into(), "11".into()), "{what}");
    drop((db, second));
    assert_eq!(system().open_stock(path).one(ROWS), "11", "{what}, for stock");
}

#[test]
fn errors_of_a_moment_lose_no_log_of_any_layout() {
    in_own_process("errors_of_a_moment_lose_no_log_of_any_layout", || {
        let faults = faulty();
        let scratch = Scratch::new("probe");
        let mut number = 0;
        for found in [Some("stock"), Some("embedded"), None] {
            for asked in ["stock", "embedded"] {
                for (error, codes) in
                    [(EMFILE, [14].as_slice()), (EINTR, &[]), (ENOMEM, &[14, 7]), (EIO, &[14, 10])]
                {
                    for (good, bad) in [(0, 1), (0, 2), (1, 1), (1, 2), (2, 1), (0, 5), (3, 2)] {
                        for reads in [false, true] {
                            number += 1;
                            let path = crashed(&scratch, &format!("{number}.db"), found);
                            let list: Vec<i32> = [vec![0; good], vec![error; bad]].concat();
                            if reads && error == EINTR {
                                continue;
                            }
                            let what = format!(
                                "{found:?}, {asked} asked for, error {error}, {good} then {bad}, reads: {reads}"
                            );
                            if reads {
                                faults.set(&[], &list)
                            } else {
                                faults.set(&list, &[])
                            }
                            survives(&path, asked, if reads { &[10, 7, 14] } else { codes }, &what, &faults);
                        }
                    }
                }
            }
        }
    });
}

/// Openings for writing fail, and those for reading work.
const FORBIDDEN: [i32; 40] = {
    let mut faults = [0; 40];
    let mut at = 0;
    while at < 40 {
        faults[at] = EACCES;
        at += 2;
    }
    faults
};

#[test]
fn who_may_not_write_the_log_reads_it_as_stock_does_or_is_refused() {
    in_own_process("who_may_not_write_the_log_reads_it_as_stock_does_or_is_refused", || {
        let faults = faulty();
        let scratch = Scratch::new("probe-rights");
        // It goes through the base VFS, and says so.
        let path = crashed(&scratch, "stock.db", Some("stock"));
        let db = open(&path, "embedded", "waldio-faulty");
        faults.set(&FORBIDDEN, &[]);
        assert_eq!(db.one(ROWS), "10");
        assert_eq!(db.status("log"), "passed through");
        // Beside one that may: both write SQLite's own bytes.
        faults.set(&[], &[]);
        let second = open(&path, "embedded", "waldio-faulty");
        second.rows("INSERT INTO t VALUES(11)");
        db.rows("INSERT INTO t VALUES(12)");
        assert_eq!((db.one(ROWS), second.one(ROWS)), ("12".into(), "12".into()));
        let third = open(&path, "stock", "waldio-faulty");
        faults.set(&FORBIDDEN, &[]);
        assert_eq!(third.one(ROWS), "12");
        faults.set(&[], &[]);
        let [log, why] = &third.status_row("log")[..] else { panic!("no row") };
        assert!(log == "open" && why.contains("through the base VFS"), "{log}: {why}");
        drop((db, second, third));
        // In the embedded layout that would be its end; and once it may be opened, the same connection does.
        let path = crashed(&scratch, "embedded.db", Some("embedded"));
        let refused = |db: &Connection, list: &[i32]| {
            faults.set(list, &[]);
            let error = db.run(ROWS).1;
            faults.set(&[], &[]);
            assert_eq!(error.map(|error| error.primary()), Some(14));
        };
        let db = open(&path, "embedded", "waldio-faulty");
        refused(&db, &FORBIDDEN);
        refused(&db, &[EACCES; 40]);
        assert_eq!((db.one(ROWS), db.status("layout")), ("10".into(), "embedded".into()));
        // A further connection does not go past the others.
        let second = open(&path, "embedded", "waldio-faulty");
        refused(&second, &FORBIDDEN);
        refused(&second, &[EACCES; 40]);
        assert_eq!((second.one(ROWS), second.status("log")), ("10".into(), "open".into()));
    });
}

/// Somebody puts a log of the other layout into the place of the one that is in use.
#[test]
fn a_log_in_another_layout_than_the_others_have_open_is_refused_and_kept() {
    in_own_process("a_log_in_another_layout_than_the_others_have_open_is_refused_and_kept", || {
        system().load_linked();
        let scratch = Scratch::new("probe-exchanged");
        for (ours, theirs) in [("embedded", "stock"), ("stock", "embedded"), ("embedded", "nothing")] {
            let path = crashed(&scratch, &format!("{ours}-{theirs}.db"), Some(ours));
            let other = scratch.join(&format!("{ours}-{theirs}-other.db-wal"));
            match theirs {
                "nothing" => std::fs::write(&other, "").unwrap(),
                layout => drop(crashed(&scratch, &format!("{ours}-{theirs}-other.db"), Some(layout))),
            }
            let log = scratch.join(&format!("{ours}-{theirs}.db-wal"));
            let aside = scratch.join(&format!("{ours}-{theirs}.aside"));
            let first = open(&path, ours, "waldio");
            assert_eq!((first.one(ROWS), first.status("layout")), ("10".into(), ours.into()));
            std::fs::rename(&log, &aside).unwrap();
            std::fs::copy(&other, &log).unwrap();
            let before = std::fs::read(&log).unwrap();
            let second = open(&path, theirs.trim_start_matches("nothing"), "waldio");
            assert_eq!(second.run(ROWS).1.map(|error| error.primary()), Some(14), "{ours}, {theirs}");
            assert!(std::fs::read(&log).unwrap() == before, "{ours}: the {theirs} log changed");
            std::fs::rename(&aside, &log).unwrap();
            assert_eq!((second.one(ROWS), first.one(ROWS)), ("10".into(), "10".into()), "{ours}, {theirs}");
            drop((first, second));
            assert_eq!(system().open_stock(&path).one(ROWS), "10", "{ours}, {theirs}");
        }
    });
}

/// One connection uses up the descriptors, more of them each time.
#[test]
fn a_process_without_descriptors_loses_nothing() {
    in_own_process("a_process_without_descriptors_loses_nothing", || {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        system().load_linked();
        let scratch = Scratch::new("probe-descriptors");
        let before = getrlimit(Resource::Nofile);
        for (number, (found, asked)) in
            [("stock", "embedded"), ("embedded", "embedded"), ("embedded", "stock"), ("stock", "stock")]
                .into_iter()
                .enumerate()
        {
            for spare in 0..12 {
                let path = crashed(&scratch, &format!("{number}-{spare}.db"), Some(found));
                let db = open(&path, asked, "waldio");
                setrlimit(Resource::Nofile, Rlimit { current: Some(200), ..before }).unwrap();
                let mut held = Vec::new();
                while let Ok(file) = std::fs::File::open("/dev/null") {
                    held.push(file);
                }
                held.truncate(held.len() - spare);
                let (rows, error) = db.run(ROWS);
                drop(held);
                setrlimit(Resource::Nofile, before).unwrap();
                let what = format!("{found}, {asked} asked for, {spare} descriptors: {error:?}");
                assert!(error.is_some() || rows == [["10"]], "{what}: {rows:?}");
                assert_eq!(db.one(ROWS), "10", "{what}");
                drop(db);
                assert_eq!(system().open_stock(&path).one(ROWS), "10", "{what}");
            }
        }
    });
}
