//! Goal: when the last of waldio's connections closes cleanly, a database in the `embedded` layout is an ordinary one again
//! also for connections without waldio that were refused before, and hold its lock; no row is lost, whoever comes in
//! between, and wherever the close is killed.
//! Method: real files, Debian's and the newest SQLite as the one that is refused; children that are killed at each write,
//! sync and cut of their close; a disk that is full.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use real::child::{Running, again, in_own_process, role, say_ready_and_wait};
use real::counting_disk::{CountingDisk, Steps};
use real::place::{Mount, Scratch, skipped};
use real::seldom::Statement;
use real::sqlite::{Connection, Library, bundled, ffi, system};
use real::sqlite_shim::{self, Event};
use waldio::testing::planted::Bug;

const ROWS: &str = "SELECT count(*) FROM t";

/// One library in a process: two of them would take each other's locks away. Debian's, or the newest where a test says so.
fn library() -> &'static Library {
    LIBRARY.get_or_init(system)
}

static LIBRARY: OnceLock<&'static Library> = OnceLock::new();

fn newest() {
    LIBRARY.get_or_init(bundled);
}

fn embedded(path: &Path, vfs: &str) -> Connection {
    let name = format!("file:{}?waldio_layout=embedded", path.display());
    library().open_with(&name, Some(vfs)).unwrap()
}

/// A table with three rows, in the log.
fn begin(path: &Path) -> Connection {
    library().load_linked();
    let db = embedded(path, "waldio");
    db.rows("PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES(1),(2),(3)");
    assert_eq!(db.status("layout"), "embedded");
    db
}

/// A connection without waldio that was refused, and stays open.
fn refused(path: &Path) -> Connection {
    let stock = library().open_stock(path);
    stock.busy_timeout(2_000);
    is_refused(&stock);
    stock
}

fn is_refused(stock: &Connection) {
    assert_eq!(stock.run(ROWS).1.map(|error| error.primary()), Some(ffi::SQLITE_CANTOPEN));
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

fn whole(db: &Connection, rows: &str) {
    assert_eq!((db.one(ROWS), db.one("PRAGMA integrity_check")), (rows.to_owned(), "ok".to_owned()));
}

#[test]
fn who_was_refused_goes_on_after_the_last_close() {
    in_own_process("who_was_refused_goes_on_after_the_last_close", || {
        let scratch = Scratch::new("last");
        for number in 0..2 {
            let path = scratch.join(&format!("{number}.db"));
            let first = begin(&path);
            let stock = refused(&path);
            let second = embedded(&path, "waldio");
            second.rows("INSERT INTO t VALUES(4)");
            drop(first);
            is_refused(&stock);
            whole(&second, "4");
            drop(second);
            assert!(!beside(&path, "-waldio").exists() && !beside(&path, "-waldio-shm").exists());
            whole(&stock, "4");
            stock.rows("INSERT INTO t VALUES(5)");
            // Whoever comes now has SQLite's own layout, on the same file.
            let (other, ours) = (library().open_stock(&path), embedded(&path, "waldio"));
            other.rows("INSERT INTO t VALUES(6)");
            ours.rows("INSERT INTO t VALUES(7)");
            assert_eq!(ours.status("layout"), "stock");
            for db in [&stock, &other, &ours] {
                whole(db, "7");
            }
            drop((stock, other, ours));
            assert!(!beside(&path, "-wal").exists());
            let db = embedded(&path, "waldio");
            whole(&db, "7");
            assert_eq!(db.status("layout"), "embedded");
        }
    });
}

/// What a refused connection and the closing one leave to each other, in every way in which the frames came into the log.
#[test]
fn whatever_the_log_holds_it_is_all_there() {
    in_own_process("whatever_the_log_holds_it_is_all_there", || {
        let scratch = Scratch::new("last-logs");
        let statements = [
            "SELECT 1",
            "PRAGMA wal_checkpoint(PASSIVE)",
            "PRAGMA wal_checkpoint(TRUNCATE)",
            "PRAGMA wal_checkpoint(RESTART); INSERT INTO t SELECT 3 WHERE 0",
            "PRAGMA synchronous=OFF; UPDATE t SET a=a+1",
            "PRAGMA cache_size=5; BEGIN; CREATE TABLE u(b); WITH n(a) AS (VALUES(1) UNION ALL SELECT a+1 FROM n WHERE a<300) INSERT INTO u SELECT zeroblob(3000) FROM n; ROLLBACK",
            "VACUUM",
        ];
        for (number, sql) in statements.into_iter().enumerate() {
            let path = scratch.join(&format!("{number}.db"));
            let db = begin(&path);
            let stock = refused(&path);
            db.rows(sql);
            drop(db);
            whole(&stock, "3");
            stock.rows("INSERT INTO t VALUES(4)");
            whole(&library().open_stock(&path), "4");
            drop(stock);
            whole(&embedded(&path, "waldio"), "4");
        }
    });
}

/// SQLite asks whether the database has moved in other moments as well, and an application may.
#[test]
fn the_lock_is_given_in_name_to_a_close_alone() {
    in_own_process("the_lock_is_given_in_name_to_a_close_alone", || {
        let scratch = Scratch::new("last-mode");
        let path = scratch.join("a.db");
        let db = begin(&path);
        let stock = refused(&path);
        db.busy_timeout(0);
        for _ in 0..2 {
            let error = db.run("PRAGMA journal_mode=DELETE").1.expect("others have it open");
            assert_eq!(error.primary(), ffi::SQLITE_BUSY);
            whole(&db, "3");
        }
        let mode = Statement::new(&db, "PRAGMA journal_mode=DELETE");
        assert_eq!(db.control(ffi::SQLITE_FCNTL_HAS_MOVED, 0), (0, 0));
        assert_eq!(mode.step_and_finalize(), ffi::SQLITE_BUSY);
        db.rows("INSERT INTO t VALUES(4)");
        is_refused(&stock);
        let second = embedded(&path, "waldio");
        second.busy_timeout(0);
        whole(&second, "4");
        drop((db, second));
        whole(&stock, "4");
    });
}

/// Makes "waldio-counted", whose steps on the log and the database are counted.
fn counted() -> Arc<Steps> {
    let steps = Arc::<Steps>::default();
    let count = Arc::clone(&steps);
    sqlite_shim::register(library(), c"counts", Some(c"unix"), false, move |event| match event {
        Event::DatabaseWrite => {
            count.synced.store(false, SeqCst);
            count.next();
        }
        Event::DatabaseSynced => count.synced.store(true, SeqCst),
        _ => {}
    });
    library().register_on(c"waldio-counted", c"counts", Arc::new(CountingDisk(Arc::clone(&steps))));
    steps
}

#[test]
fn a_close_that_is_killed_at_any_step_loses_nothing() {
    const NAME: &str = "a_close_that_is_killed_at_any_step_loses_nothing";
    if let Some(arguments) = role(NAME) {
        newest();
        let steps = counted();
        let db = embedded(Path::new(&arguments[0]), "waldio-counted");
        db.rows(
            "INSERT INTO t VALUES(4); CREATE TABLE IF NOT EXISTS u(b); INSERT INTO u VALUES(zeroblob(20000))",
        );
        say_ready_and_wait();
        steps.left.store(arguments[1].parse().unwrap(), SeqCst);
        drop(db);
        return println!("closed");
    }
    in_own_process(NAME, || {
        newest();
        let scratch = Scratch::new("last-killed");
        let (mut kills, mut refusals) = (0, 0);
        for step in 1.. {
            let path = scratch.join(&format!("{step}.db"));
            drop(begin(&path));
            let mut closing =
                Running::start_with_input(&mut again(NAME, &[path.to_str().unwrap(), &step.to_string()]));
            closing.wait_until_ready();
            let stock = refused(&path);
            closing.tell("go\n");
            let (lines, _) = closing.finish();
            let closed = lines.iter().any(|line| line == "closed");
            kills += usize::from(!closed);
            let (rows, error) = stock.run(ROWS);
            match error {
                None => assert_eq!(rows, [["4"]], "step {step}"),
                Some(error) => {
                    assert!(!closed, "step {step}: {error}");
                    assert_eq!(error.primary(), ffi::SQLITE_CANTOPEN, "step {step}");
                    refusals += 1;
                    // Only waldio opens it; and its close makes it an ordinary one, for this very handle too.
                    let ours = embedded(&path, "waldio");
                    whole(&ours, "4");
                    drop(ours);
                }
            }
            whole(&stock, "4");
            stock.rows("INSERT INTO t VALUES(5)");
            let other = library().open_stock(&path);
            whole(&other, "5");
            drop((stock, other));
            whole(&embedded(&path, "waldio"), "5");
            if closed {
                break;
            }
            assert!(step < 200, "it never closes");
        }
        assert!(kills > 10 && refusals > 8, "{kills} kills, {refusals} refusals: the close has no steps");
    });
}

/// The connection that was refused tries before each step of the close, and writes as soon as it may.
#[test]
fn what_the_refused_one_writes_during_the_close_stays() {
    in_own_process("what_the_refused_one_writes_during_the_close_stays", || {
        let steps = counted();
        let scratch = Scratch::new("last-during");
        let (written, tries) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let path = scratch.join("a.db");
        drop(begin(&path));
        let db = embedded(&path, "waldio-counted");
        db.rows("INSERT INTO t VALUES(4)");
        let stock = refused(&path);
        let (count, tried) = (Arc::clone(&written), Arc::clone(&tries));
        *steps.act.lock().unwrap() = Some(Box::new(move || {
            tried.fetch_add(1, SeqCst);
            match stock.run("INSERT INTO t VALUES(5)").1 {
                None => count.fetch_add(1, SeqCst),
                Some(error) => {
                    assert_eq!(error.primary(), ffi::SQLITE_CANTOPEN);
                    0
                }
            };
        }));
        drop(db);
        let (written, tries) = (written.load(SeqCst), tries.load(SeqCst));
        assert!(written > 0 && tries > 5 + written, "{written} rows in {tries} tries");
        whole(&library().open_stock(&path), &(4 + written).to_string());
        // With the one that stayed gone as well, what it wrote is there.
        *steps.act.lock().unwrap() = None;
        whole(&library().open_stock(&path), &(4 + written).to_string());
        whole(&embedded(&path, "waldio"), &(4 + written).to_string());
    });
}

/// With `synchronous=OFF` SQLite syncs nothing: the frames would be gone from the log before the database has them for good.
#[test]
fn the_database_is_on_the_medium_before_the_log_is_emptied() {
    in_own_process("the_database_is_on_the_medium_before_the_log_is_emptied", || {
        let steps = counted();
        let scratch = Scratch::new("last-synced");
        let path = scratch.join("a.db");
        drop(begin(&path));
        let db = embedded(&path, "waldio-counted");
        db.rows("PRAGMA synchronous=OFF; INSERT INTO t VALUES(4)");
        let stock = refused(&path);
        let log = beside(&path, "-wal");
        let (count, asked) = (Arc::clone(&steps), Arc::<AtomicU64>::default());
        let told = Arc::clone(&asked);
        let header = move || std::fs::read(&log).map(|bytes| bytes[..32].to_vec()).unwrap();
        let before = header();
        *steps.act.lock().unwrap() = Some(Box::new(move || {
            if header() != before {
                assert!(count.synced.load(SeqCst), "the header changes before the database is synced");
                told.fetch_add(1, SeqCst);
            }
        }));
        drop(db);
        assert!(asked.load(SeqCst) > 0, "the log was not emptied");
        whole(&stock, "4");
    });
}

/// Processes open, write and close all the time, with waldio and without.
#[test]
fn rows_of_those_who_come_and_go_are_all_there() {
    const NAME: &str = "rows_of_those_who_come_and_go_are_all_there";
    if let Some(arguments) = role(NAME) {
        library().load_linked();
        let (path, who) = (Path::new(&arguments[0]), &arguments[1]);
        let end = Instant::now() + Duration::from_secs(4);
        let (mut number, mut refused) = (0, 0);
        let stays = (who == "stays").then(|| library().open_stock(path));
        while Instant::now() < end {
            let opened;
            let db = if let Some(db) = &stays {
                db
            } else {
                opened = if who.starts_with("stock") {
                    library().open_stock(path)
                } else {
                    embedded(path, "waldio")
                };
                &opened
            };
            db.busy_timeout(5_000);
            for _ in 0..3 {
                match db.run(&format!("INSERT INTO t VALUES('{who}-{number}')")).1 {
                    None => {
                        number += 1;
                        println!("\nack {who}-{}", number - 1);
                    }
                    Some(error) if error.primary() == ffi::SQLITE_CANTOPEN && !who.starts_with("waldio") => {
                        refused += 1
                    }
                    Some(error) => panic!("{who}: {error}"),
                }
            }
        }
        return println!("\nrefused {refused}");
    }
    in_own_process(NAME, || {
        let scratch = Scratch::new("last-crowd");
        let path = scratch.join("a.db");
        let db = begin(&path);
        db.rows("DELETE FROM t");
        drop(db);
        let crowd: Vec<_> = ["waldio-1", "waldio-2", "waldio-3", "stock-1", "stays"]
            .map(|who| Running::start(&mut again(NAME, &[path.to_str().unwrap(), who])))
            .into();
        let mut acknowledged = Vec::new();
        let mut refused = 0;
        for member in crowd {
            let (lines, well) = member.finish();
            assert!(well, "{lines:?}");
            acknowledged.extend(lines.iter().filter_map(|line| line.strip_prefix("ack ")).map(str::to_owned));
            refused +=
                lines.iter().find_map(|line| line.strip_prefix("refused ")?.parse::<u64>().ok()).unwrap();
        }
        let stock = library().open_stock(&path);
        assert_eq!(stock.one("PRAGMA integrity_check"), "ok");
        let mut found: Vec<_> = stock.rows("SELECT a FROM t").into_iter().flatten().collect();
        found.sort();
        acknowledged.sort();
        assert!(found == acknowledged, "{} rows, {} acknowledged", found.len(), acknowledged.len());
        eprintln!("{} rows acknowledged, {refused} refusals", found.len());
        assert!(found.len() > 100, "{} rows", found.len());
    });
}

/// The frames cannot go into the database: the log keeps them, and only waldio opens it until there is room.
#[test]
fn a_disk_that_is_full_at_the_last_close_loses_nothing() {
    in_own_process("a_disk_that_is_full_at_the_last_close_loses_nothing", || {
        let place = match Mount::image("ext4", 64) {
            Ok(place) => place,
            Err(why) => return skipped(&why),
        };
        let path = place.join("a.db");
        let db = begin(&path);
        db.rows("PRAGMA wal_autocheckpoint=0; CREATE TABLE u(b)");
        for _ in 0..30 {
            db.rows("INSERT INTO u VALUES(zeroblob(100000))");
        }
        let stock = refused(&path);
        let filler = place.join("filler");
        let block = vec![1_u8; 1 << 20];
        let mut file = std::fs::File::create(&filler).unwrap();
        while io::Write::write_all(&mut file, &block).is_ok() {}
        while io::Write::write_all(&mut file, &[1; 512]).is_ok() {}
        drop(db);
        is_refused(&stock);
        drop(file);
        std::fs::remove_file(&filler).unwrap();
        let db = embedded(&path, "waldio");
        whole(&db, "3");
        drop(db);
        whole(&stock, "3");
        assert_eq!(stock.one("SELECT count(*) FROM u"), "30");
    });
}

/// It changes nothing, not even at its end (docs/embedded.md).
#[test]
fn a_database_that_a_read_only_connection_closed_last_is_ordinary_after_waldios_next_close() {
    in_own_process(
        "a_database_that_a_read_only_connection_closed_last_is_ordinary_after_waldios_next_close",
        || {
            let scratch = Scratch::new("last-read-only");
            let path = scratch.join("a.db");
            let writer = begin(&path);
            let reader =
                library().open_with(&format!("file:{}?mode=ro", path.display()), Some("waldio")).unwrap();
            assert_eq!((reader.one(ROWS), reader.status("layout")), ("3".to_owned(), "embedded".to_owned()));
            drop(writer);
            drop(reader);
            is_refused(&library().open_stock(&path));
            whole(&embedded(&path, "waldio"), "3");
            whole(&library().open_stock(&path), "3");
        },
    );
}

/// Connections that close at the same moment: whoever is the last of them knows.
#[test]
fn of_those_who_close_at_once_one_is_the_last() {
    const NAME: &str = "of_those_who_close_at_once_one_is_the_last";
    if let Some(arguments) = role(NAME) {
        library().load_linked();
        waldio::testing::planted::set((arguments[1] == "slow").then_some(Bug::SlowClose));
        let db = embedded(Path::new(&arguments[0]), "waldio");
        db.rows("INSERT INTO t VALUES(4)");
        say_ready_and_wait();
        return drop(db);
    }
    in_own_process(NAME, || {
        let scratch = Scratch::new("last-at-once");
        for round in 0..15 {
            let path = scratch.join(&format!("{round}.db"));
            let begun = begin(&path);
            // In some rounds the first that closes loses its processor meanwhile, as on a busy machine.
            let pace = if round % 3 == 2 { "slow" } else { "quick" };
            let mut crowd: Vec<_> = (0..4)
                .map(|_| Running::start_with_input(&mut again(NAME, &[path.to_str().unwrap(), pace])))
                .collect();
            for member in &mut crowd {
                member.wait_until_ready();
            }
            drop(begun);
            let stock = (round % 2 == 0).then(|| refused(&path));
            crowd.iter_mut().for_each(|member| member.tell("go\n"));
            for member in crowd {
                assert!(member.finish().1);
            }
            let stock = stock.unwrap_or_else(|| library().open_stock(&path));
            whole(&stock, "7");
        }
    });
}
