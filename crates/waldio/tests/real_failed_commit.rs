//! Goal: a COMMIT that reports an error is none: once the database is closed, its rows are gone for good; and one that reports
//! none is there.
//! Method: the sync of a commit fails once, and so does one of the writes around it. Other connections are there that wrote, read
//! or did nothing before; then all are closed, and somebody looks.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::io;
use std::panic;
use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use real::child::{Running, again, in_own_process, role};
use real::place::{Scratch, skipped};
use real::refusal::{is_possible, refuse, refuse_after};
use real::space::await_space;
use real::sqlite::{Connection, system};

const OPTIONS: [&str; 6] = [
    "",
    "waldio_group_commit=off",
    "waldio_durable_reads=1",
    "waldio_persist=fua",
    "waldio_layout=embedded",
    "waldio_strict=1",
];

/// What the others did before.
const OTHERS: [&[&str]; 4] = [
    &[],
    &["SELECT count(*) FROM t"],
    &["INSERT INTO t VALUES('other')"],
    &["BEGIN", "SELECT count(*) FROM t"],
];

/// Commits beside `others` with what fails armed by `arm`, closes everything; what COMMIT said, and how often the row is there.
fn commit_and_close(name: &str, options: &str, others: &[&str], arm: impl Fn()) -> (bool, String, String) {
    let scratch = Scratch::new(name);
    let path = scratch.join("a.db");
    let open = || system().open_with(&format!("file:{}?{options}", path.display()), None).unwrap();
    let db = open();
    db.rows("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t(a)");
    (0..3).for_each(|_| drop(db.rows("INSERT INTO t VALUES('before')")));
    let other: Option<Connection> = (!others.is_empty()).then(open);
    for (other, sql) in other.iter().flat_map(|other| others.iter().map(move |sql| (other, sql))) {
        other.rows(sql);
    }
    arm();
    let succeeded = db.run("INSERT INTO t VALUES('failed')").1.is_none();
    ["pwrite64", "pwritev2", "fdatasync"].iter().for_each(|call| refuse(call, "EIO", 0));
    drop((db, other));
    // Stock reads a log of that layout only after a sound close.
    let db = if options.contains("embedded") { open() } else { system().open_stock(&path) };
    let count = db.one("SELECT count(*) FROM t WHERE a = 'failed'");
    let before = db.one("SELECT count(*) FROM t WHERE a <> 'failed'");
    assert_eq!(db.one("PRAGMA integrity_check"), "ok");
    (succeeded, count, before)
}

#[test]
fn a_commit_that_failed_is_none_once_the_database_is_closed() {
    in_own_process("a_commit_that_failed_is_none_once_the_database_is_closed", || {
        if !is_possible() {
            return skipped("system calls are refused on x86_64 and aarch64 alone");
        }
        system().load(None).unwrap();
        let mut failed = 0;
        for options in OPTIONS {
            for (number, others) in OTHERS.into_iter().enumerate() {
                // One write beside the sync fails, too: each of those that may be meant; the last of these is none.
                for (call, after) in [
                    ("pwrite64", 0),
                    ("pwrite64", 1),
                    ("pwrite64", 2),
                    ("pwritev2", 0),
                    ("pwritev2", 1),
                    ("pwrite64", 99),
                ] {
                    let (succeeded, count, before) =
                        commit_and_close("failed-commit", options, others, || {
                            refuse("fdatasync", "EIO", 1);
                            refuse_after(call, "EIO", after, 1);
                        });
                    let case =
                        format!("{options}, others {number}, {call} after {after}: succeeded {succeeded}");
                    let expected = if number == 2 { "4" } else { "3" };
                    assert_eq!((count, &*before), (u8::from(succeeded).to_string(), expected), "{case}");
                    failed += u32::from(!succeeded);
                }
            }
        }
        assert!(failed > 100, "{failed} commits failed");
    });
}

/// Connections that close at the same time keep one another from the exclusive lock.
#[test]
fn commits_that_failed_together_are_none_when_all_have_closed_at_once() {
    in_own_process("commits_that_failed_together_are_none_when_all_have_closed_at_once", || {
        if !is_possible() {
            return skipped("system calls are refused on x86_64 and aarch64 alone");
        }
        const WRITERS: usize = 4;
        // A writer that panics would leave the others waiting for it.
        let tell = panic::take_hook();
        panic::set_hook(Box::new(move |why| {
            tell(why);
            std::process::abort();
        }));
        system().load(None).unwrap();
        let (mut failed, mut at_once, together) = (0, 0, Barrier::new(WRITERS));
        // The filter is this thread's, and of those that it starts later.
        refuse("fdatasync", "EIO", 0);
        for _ in 0..100 {
            let scratch = Scratch::new("failed-together");
            let path = scratch.join("a.db");
            let open = || system().open_with(&format!("file:{}", path.display()), None).unwrap();
            open().rows("PRAGMA journal_mode=WAL; CREATE TABLE t(a)");
            let told: Vec<(bool, String)> = thread::scope(|scope| {
                let write = |writer: usize| {
                    let db = open();
                    // A commit that is taken back is a recovery to those who read.
                    db.rows(
                        "PRAGMA busy_timeout=5000; PRAGMA synchronous=FULL; INSERT INTO t VALUES('before')",
                    );
                    if together.wait().is_leader() {
                        refuse("fdatasync", "EIO", 1);
                    }
                    together.wait();
                    let error = db.run(&format!("INSERT INTO t VALUES({writer})")).1;
                    let seen = db.one(&format!("SELECT count(*) FROM t WHERE a = {writer}"));
                    together.wait();
                    drop(db);
                    (error.is_none(), seen)
                };
                let writers: Vec<_> = (0..WRITERS).map(|writer| scope.spawn(move || write(writer))).collect();
                writers.into_iter().map(|writer| writer.join().unwrap()).collect()
            });
            refuse("fdatasync", "EIO", 0);
            let stock = system().open_stock(&path);
            for (writer, (succeeded, seen)) in told.iter().enumerate() {
                // Nobody is in a transaction, so it is none when it is told that it failed; but where a thread stands still for long.
                at_once += u32::from(!succeeded && seen == "0");
                let count = stock.one(&format!("SELECT count(*) FROM t WHERE a = {writer}"));
                assert_eq!(count, u8::from(*succeeded).to_string(), "{writer} of {told:?}");
                failed += u32::from(!succeeded);
            }
            assert_eq!(stock.one("SELECT count(*) FROM t WHERE a = 'before'"), WRITERS.to_string());
        }
        assert!(failed > 100, "{failed} commits failed");
        assert!(at_once * 10 > failed * 9, "{at_once} of {failed} were none at once");
    });
}

/// Of the process whose COMMIT fails: with two connections that write, closed when it is told so.
fn fail_and_close(path: &Path, options: &str) {
    let open = || system().open_with(&format!("file:{}?{options}", path.display()), None).unwrap();
    let (db, other) = (open(), open());
    for db in [&db, &other] {
        db.rows("PRAGMA synchronous=FULL; INSERT INTO t VALUES('before')");
    }
    await_space(&db);
    refuse("fdatasync", "EIO", 1);
    assert!(db.run("INSERT INTO t VALUES('failed')").1.is_some());
    refuse("fdatasync", "EIO", 0);
    // It has none of waldio's, and no transaction: it is in nobody's way, and nothing in its.
    let stock = (!options.contains("embedded")).then(|| system().open_stock(path));
    let look = || stock.iter().for_each(|stock| drop(stock.rows("SELECT count(*) FROM t")));
    look();
    println!("\nfailed");
    wait_for_order();
    drop((db, other));
    look();
    println!("closed");
}

/// Of the other process: it has the database open, and answers statements.
fn answer(path: &Path, is_stock: bool) {
    let db = if is_stock { system().open_stock(path) } else { system().open(path) };
    let (_, error) = db.run("SELECT count(*) FROM t");
    println!("\nopen {}", error.is_some());
    loop {
        let sql = wait_for_order();
        if sql.is_empty() {
            return;
        }
        println!("{:?}", db.run(&sql).0);
    }
}

fn wait_for_order() -> String {
    let mut order = String::new();
    io::stdin().read_line(&mut order).unwrap();
    order
}

/// A line that begins like this.
fn until(process: &mut Running, begin: &str) -> String {
    loop {
        let line = process.line().expect("it ended");
        if line.starts_with(begin) {
            return line;
        }
    }
}

#[test]
fn a_commit_that_failed_goes_while_another_process_has_the_database_open() {
    const NAME: &str = "a_commit_that_failed_goes_while_another_process_has_the_database_open";
    if let Some(arguments) = role(NAME) {
        let path = Path::new(&arguments[1]);
        let _ = system().load(None);
        return match &*arguments[0] {
            "fails" => fail_and_close(path, &arguments[2]),
            who => answer(path, who == "stock"),
        };
    }
    if !is_possible() {
        return skipped("system calls are refused on x86_64 and aarch64 alone");
    }
    system().load(None).unwrap();
    // Who the other one is, what it does before the close, and how often the row may be there: once, where it went on from there.
    let cases = [
        ("waldio", "", 0),
        ("stock", "", 0),
        ("waldio", "checkpoint", 1),
        ("stock", "checkpoint", 1),
        ("stock", "commit", 1),
    ];
    for options in ["", "waldio_persist=fua", "waldio_layout=embedded"] {
        for (who, act, most) in cases {
            let case = format!("{options}, {who}, {act}");
            let scratch = Scratch::new("failed-beside");
            let path = scratch.join("a.db");
            let open = || system().open_with(&format!("file:{}?{options}", path.display()), None).unwrap();
            let db = open();
            db.rows("PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES('before')");
            let name = path.to_str().unwrap();
            let mut other = Running::start_with_input(&mut again(NAME, &[who, name]));
            let refused = until(&mut other, "open") == "open true";
            assert_eq!(refused, options.contains("embedded") && who == "stock", "{case}");
            let mut fails = Running::start_with_input(&mut again(NAME, &["fails", name, options]));
            until(&mut fails, "failed");
            drop(db);
            if !refused {
                other.tell(match act {
                    "checkpoint" => "PRAGMA wal_checkpoint\n",
                    "commit" => "INSERT INTO t VALUES('other')\n",
                    _ => "SELECT 1\n",
                });
                until(&mut other, "[");
            }
            fails.tell("close\n");
            until(&mut fails, "closed");
            other.tell("SELECT count(*) FROM t WHERE a = 'failed'\n");
            let seen = until(&mut other, "[");
            if act.is_empty() && !refused {
                assert_eq!(seen, r#"[["0"]]"#, "{case}: it is none for those who go on, too");
            }
            drop((other, fails));
            let stock = system().open_stock(&path);
            let db = if options.contains("embedded") { open() } else { stock };
            let count = db.one("SELECT count(*) FROM t WHERE a = 'failed'");
            assert!(
                count.parse::<u32>().unwrap() <= if refused { 0 } else { most },
                "{case}: {count} in the end, {seen} beside"
            );
            let rest = db.one("SELECT count(*) FROM t WHERE a <> 'failed'");
            assert_eq!(rest, if act == "commit" && !refused { "4" } else { "3" }, "{case}");
            assert_eq!(db.one("PRAGMA integrity_check"), "ok", "{case}");
        }
    }
}

/// Of a process that reads all the time, in two connections whose transactions overlap, until it is told to end.
fn read_all_the_time(path: &Path, is_stock: bool) {
    let is_over = AtomicBool::new(false);
    let open = || if is_stock { system().open_stock(path) } else { system().open(path) };
    thread::scope(|scope| {
        let reads = || {
            let db = open();
            db.rows("PRAGMA busy_timeout=5000");
            while !is_over.load(Relaxed) {
                db.rows("BEGIN; SELECT count(*) FROM t");
                thread::sleep(Duration::from_millis(3));
                assert_eq!(db.run("SELECT count(*) FROM t; COMMIT").1, None);
            }
        };
        let readers = [scope.spawn(reads), scope.spawn(reads)];
        println!("\nreading");
        wait_for_order();
        is_over.store(true, Relaxed);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
}

/// Of the process whose COMMIT fails: tells how often its row is there right after.
fn fail_and_look(path: &Path, rewrite: &str) {
    let open = || system().open_with(&format!("file:{}", path.display()), None).unwrap();
    let (db, other) = (open(), open());
    for db in [&db, &other] {
        db.rows("PRAGMA busy_timeout=5000; PRAGMA synchronous=FULL; INSERT INTO t VALUES('before')");
    }
    await_space(&db);
    refuse("fdatasync", "EIO", 1);
    if !rewrite.is_empty() {
        refuse(rewrite, "EIO", 1);
    }
    let error = db.run("INSERT INTO t VALUES('failed')").1;
    let seen = [&db, &other].map(|db| db.one("SELECT count(*) FROM t WHERE a = 'failed'"));
    println!("\nlooked {} {seen:?}", error.is_some());
    wait_for_order();
}

#[test]
fn a_commit_that_failed_is_none_at_once_also_where_others_read_all_the_time() {
    const NAME: &str = "a_commit_that_failed_is_none_at_once_also_where_others_read_all_the_time";
    if let Some(arguments) = role(NAME) {
        let path = Path::new(&arguments[1]);
        let _ = system().load(None);
        return match &*arguments[0] {
            "fails" => fail_and_look(path, &arguments[2]),
            who => read_all_the_time(path, who == "stock"),
        };
    }
    if !is_possible() {
        return skipped("system calls are refused on x86_64 and aarch64 alone");
    }
    system().load(None).unwrap();
    for who in ["", "waldio", "stock"] {
        // The write that puts the frames into the page cache again fails, too: nobody may build on them then.
        for rewrite in ["", "pwrite64"] {
            let case = format!("{who}, {rewrite}");
            let scratch = Scratch::new("failed-beside-readers");
            let path = scratch.join("a.db");
            let db = system().open(&path);
            db.rows("PRAGMA journal_mode=WAL; PRAGMA busy_timeout=5000; CREATE TABLE t(a); INSERT INTO t VALUES('before')");
            let name = path.to_str().unwrap();
            let mut readers =
                (!who.is_empty()).then(|| Running::start_with_input(&mut again(NAME, &[who, name])));
            readers.iter_mut().for_each(|readers| drop(until(readers, "reading")));
            let mut fails = Running::start_with_input(&mut again(NAME, &["fails", name, rewrite]));
            assert_eq!(until(&mut fails, "looked"), r#"looked true ["0", "0"]"#, "{case}");
            // Whoever comes now builds on what is there.
            let stock = system().open_stock(&path);
            stock.rows("PRAGMA busy_timeout=5000; PRAGMA synchronous=FULL; INSERT INTO t VALUES('after')");
            for db in [&db, &stock] {
                assert_eq!(db.one("SELECT group_concat(a) FROM t"), "before,before,before,after", "{case}");
            }
            fails.tell("end\n");
            readers.iter_mut().for_each(|readers| readers.tell("end\n"));
            for process in [Some(fails), readers].into_iter().flatten() {
                let (said, status) = process.finish_with_status();
                assert!(status.success(), "{case}: {said:?}");
            }
            assert_eq!(stock.one("PRAGMA integrity_check"), "ok", "{case}");
        }
    }
}

/// Of a process whose first COMMIT meets a sync that fails: what it was told. It waits to be killed.
fn fail_first(path: &Path, options: &str, number: &str) {
    let db = system().open_with(&format!("file:{}?{options}", path.display()), None).unwrap();
    db.rows("PRAGMA synchronous=FULL; SELECT count(*) FROM t");
    refuse_after("fdatasync", "EIO", number.parse().unwrap(), 1);
    let error = db.run("INSERT INTO t VALUES('first')").1;
    println!("\ntold {}", error.is_none());
    wait_for_order();
}

#[test]
fn a_first_commit_that_failed_is_none_when_its_process_is_killed() {
    const NAME: &str = "a_first_commit_that_failed_is_none_when_its_process_is_killed";
    if let Some(arguments) = role(NAME) {
        let _ = system().load(None);
        return fail_first(Path::new(&arguments[0]), &arguments[1], &arguments[2]);
    }
    if !is_possible() {
        return skipped("system calls are refused on x86_64 and aarch64 alone");
    }
    system().load(None).unwrap();
    let mut failed = 0;
    for options in OPTIONS {
        // A new log, or one that another process has in use.
        for is_new in [true, false] {
            for number in ["0", "1", "2"] {
                let case = format!("{options}, new {is_new}, sync {number}");
                let scratch = Scratch::new("failed-first");
                let path = scratch.join("a.db");
                let open =
                    || system().open_with(&format!("file:{}?{options}", path.display()), None).unwrap();
                let db = open();
                db.rows("PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES('before')");
                let holder = (!is_new).then_some(db);
                let name = path.to_str().unwrap();
                let mut fails = Running::start_with_input(&mut again(NAME, &[name, options, number]));
                let succeeded = until(&mut fails, "told") == "told true";
                fails.kill();
                drop(fails);
                let db = if options.contains("embedded") { open() } else { system().open_stock(&path) };
                let count = db.one("SELECT count(*) FROM t WHERE a = 'first'");
                assert_eq!(count, u8::from(succeeded).to_string(), "{case}");
                assert_eq!(db.one("SELECT count(*) FROM t WHERE a = 'before'"), "1", "{case}");
                assert_eq!(db.one("PRAGMA integrity_check"), "ok", "{case}");
                failed += u32::from(!succeeded);
                drop(holder);
            }
        }
    }
    assert!(failed > 10, "{failed} commits failed");
}
