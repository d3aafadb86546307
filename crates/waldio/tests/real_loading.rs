//! Goal: waldio comes into a program as documented: by default or on demand, beside other shims and other copies of
//! SQLite, before a fork, and not at all into a SQLite that is too old.
//! Method: the built library, loaded by path into Debian's SQLite in processes of their own.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use real::child::{again, in_own_process, no_python, output_within, python};
use real::place::{Scratch, skipped};
use real::seldom::restart;
use real::sqlite::{Connection, Library, SqlError, bundled, extension_path, system};
use real::sqlite_config::error_log;
use real::sqlite_shim::{self, Event};

const WAL: &str = "PRAGMA journal_mode = WAL; CREATE TABLE IF NOT EXISTS t(a INTEGER PRIMARY KEY, b)";

fn open_uri(path: &Path, parameters: &str) -> Result<Connection, SqlError> {
    system().open_with(&format!("file:{}?{parameters}", path.display()), None)
}

#[test]
fn loading_makes_it_the_default_and_leaves_unix() {
    in_own_process("loading_makes_it_the_default_and_leaves_unix", || {
        let (library, scratch) = (system(), Scratch::new("load"));
        assert_eq!(library.vfs_name(None).as_deref(), Some("unix"));
        library.load(None).unwrap();
        assert_eq!(library.vfs_name(None).as_deref(), Some("waldio"));
        assert_eq!(library.vfs_name(Some("unix")).as_deref(), Some("unix"));
        // Each connection of a Python program loads it anew.
        library.load(None).unwrap();
        assert_eq!(library.vfs_name(None).as_deref(), Some("waldio"));

        let path = scratch.join("app.db");
        let connection = library.open(&path);
        connection.rows(WAL);
        assert_eq!(connection.status("log"), "open");
        let beside = open_uri(&path, "vfs=unix").unwrap();
        beside.rows("INSERT INTO t(b) VALUES (1)");
        assert_eq!(connection.one("SELECT count(*) FROM t"), "1");
    });
}

/// SQLite makes the entry point's name of the file's, where the library has none of the name that it tries first.
#[test]
fn a_library_that_was_renamed_loads() {
    in_own_process("a_library_that_was_renamed_loads", || {
        let scratch = Scratch::new("renamed");
        let renamed = scratch.join("w.so");
        std::fs::copy(extension_path(), &renamed).unwrap();
        system().open(Path::new(":memory:")).load_extension(&renamed, None).unwrap();
        assert_eq!(system().vfs_name(None).as_deref(), Some("waldio"));
    });
}

/// SQLite registers its own anew, as the default, and forgets what shall run for each connection.
#[test]
fn after_a_restart_of_sqlite_loading_again_makes_it_the_default_again() {
    in_own_process("after_a_restart_of_sqlite_loading_again_makes_it_the_default_again", || {
        let (library, scratch) = (system(), Scratch::new("restart"));
        library.load(None).unwrap();
        for round in 0..3 {
            let path = scratch.join(&format!("{round}.db"));
            let connection = library.open(&path);
            connection.rows(WAL);
            connection.rows("INSERT INTO t(b) VALUES (1)");
            assert_eq!(connection.status("log"), "open");
            drop(connection);
            restart(library);
            assert_eq!(library.vfs_name(None).as_deref(), Some("unix"));
            // By name it is there all the same.
            let by_name = open_uri(&path, "vfs=waldio").unwrap();
            by_name.rows("INSERT INTO t(b) VALUES (2)");
            assert_eq!(by_name.one("SELECT count(*) FROM t"), "2");
            assert!(by_name.run("SELECT * FROM waldio_status").1.is_some(), "no such table");
            drop(by_name);
            library.load(None).unwrap();
            assert_eq!(library.vfs_name(None).as_deref(), Some("waldio"));
        }
    });
}

/// Drivers and pools load it by SQL on every connection, which then has what it brings already, and a statement runs.
#[test]
fn every_connection_of_a_process_may_load_it_by_sql() {
    in_own_process("every_connection_of_a_process_may_load_it_by_sql", || {
        let (library, scratch) = (system(), Scratch::new("by-sql"));
        library.load(None).unwrap();
        let sql = format!("SELECT load_extension('{}')", extension_path().display());
        for number in 0..3 {
            let connection = library.open(&scratch.join(&format!("{number}.db")));
            // Allows SQL to do so, too.
            connection.load_extension(&extension_path(), None).unwrap();
            for _ in 0..2 {
                connection.rows(&sql);
            }
            assert_eq!(
                connection.one("SELECT count(*) > 0 FROM pragma_function_list WHERE name = 'waldio_convert'"),
                "1"
            );
        }
    });
}

/// A connection that waldio came too late for would go on without a word. What the message says to do helps.
#[test]
fn loading_into_a_connection_whose_file_is_open_is_an_error_that_says_why() {
    in_own_process("loading_into_a_connection_whose_file_is_open_is_an_error_that_says_why", || {
        let (library, scratch) = (system(), Scratch::new("late"));
        let path = scratch.join("app.db");
        let early = library.open(&path);
        let by_name = early.load_extension(&extension_path(), Some("sqlite3_waldio_register_init"));
        assert_eq!(by_name, Ok(()), "who names vfs=waldio chooses it for each database");
        let file = path.display().to_string();
        for _ in 0..2 {
            let message = early.load_extension(&extension_path(), None).unwrap_err();
            let parts = ["not active on this connection", &file, "(unix)", "Open the database again"];
            assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        }
        let sql = format!("SELECT load_extension('{}')", extension_path().display());
        let message = early.run(&sql).1.unwrap().message;
        assert!(message.contains("not active on this connection"), "{message}");
        assert_eq!(early.one("PRAGMA waldio"), "", "SQLite's own answer is no row");
        let again = library.open(&path);
        again.load_extension(&extension_path(), None).unwrap();
        assert!(again.one("PRAGMA waldio").starts_with("waiting: "));
        for parameters in ["waldio=off", "vfs=waldio"] {
            let chosen = open_uri(&path, parameters).unwrap();
            chosen.load_extension(&extension_path(), None).expect(parameters);
        }
        let memory = library.open_with("file:/shared?vfs=memdb", None).unwrap();
        memory.load_extension(&extension_path(), None).unwrap();
        let mixed = library.open(&path);
        mixed.rows(&format!("ATTACH 'file:{}?vfs=unix' AS other", scratch.join("other.db").display()));
        let message = mixed.load_extension(&extension_path(), None).unwrap_err();
        assert!(message.contains("other.db"), "{message}");
    });
}

/// A misspelt value was a line in a log that nobody reads.
#[test]
fn a_wrong_value_in_the_environment_is_an_error_of_loading() {
    const NAME: &str = "a_wrong_value_in_the_environment_is_an_error_of_loading";
    const VARIABLE: &str = "WALDIO_TEST_WRONG";
    if std::env::var_os(VARIABLE).is_some() {
        for entry in [None, Some("sqlite3_waldio_register_init")] {
            let message = system().load(entry).unwrap_err();
            for part in ["WALDIO_PERSIST", "auto, flush or fua, not \"flsh\"", "WALDIO_STRICT", "on or off"] {
                assert!(message.contains(part), "{message}");
            }
        }
        assert_eq!(system().vfs_name(Some("waldio")), None, "nothing is loaded");
        return;
    }
    use std::os::unix::ffi::OsStrExt;
    let output = again(NAME, &[])
        .env(VARIABLE, "1")
        .env("WALDIO_PERSIST", "flsh")
        .env("WALDIO_STRICT", std::ffi::OsStr::from_bytes(b"\xff"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// A pool opens its first connections at the same moment, and each loads. Two that both found it missing would register
/// it twice, one over the other, and a log over waldio is passed through.
#[test]
fn threads_that_load_it_at_the_same_moment_register_it_once() {
    const NAME: &str = "threads_that_load_it_at_the_same_moment_register_it_once";
    const ROUNDS: usize = 300;
    const THREADS: usize = 4;
    in_own_process(NAME, || {
        let library = system();
        library.routines();
        for number in 0..ROUNDS {
            let name: &'static CStr = Box::leak(CString::new(format!("at-once-{number}")).unwrap().into());
            let ready = Barrier::new(THREADS);
            std::thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        ready.wait();
                        library.register_as_default(name);
                    });
                }
            });
        }
        let mut names = library.vfs_names();
        assert!(names.len() > ROUNDS, "{names:?}");
        names.sort();
        let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "{} registered twice: {twice:?}", twice.len());
    });
}

#[test]
fn the_second_entry_point_leaves_the_default() {
    in_own_process("the_second_entry_point_leaves_the_default", || {
        let (library, scratch) = (system(), Scratch::new("register"));
        library.load(Some("sqlite3_waldio_register_init")).unwrap();
        assert_eq!(library.vfs_name(None).as_deref(), Some("unix"));
        let by_default = library.open(&scratch.join("a.db"));
        by_default.rows(WAL);
        assert_eq!(
            by_default.one("SELECT group_concat(name) FROM waldio_status"),
            "this_connection,journal_mode,synchronous,advice"
        );
        let asked = open_uri(&scratch.join("b.db"), "vfs=waldio").unwrap();
        asked.rows(WAL);
        assert_eq!(asked.status("log"), "open");
        library.load(None).unwrap();
        assert_eq!(library.vfs_name(None).as_deref(), Some("waldio"));
    });
}

#[test]
fn a_database_can_be_left_out() {
    system().load(None).unwrap();
    let scratch = Scratch::new("off");
    let path = scratch.join("app.db");
    for value in ["off", "0", "no", "false"] {
        let connection = open_uri(&path, &format!("waldio={value}")).unwrap();
        connection.rows(WAL);
        connection.rows("INSERT INTO t(b) VALUES (1)");
        let rows = format!("SELECT count(*) FROM waldio_status WHERE database = '{}'", path.display());
        assert_eq!(connection.one(&rows), "3", "waldio={value}: of the connection, and none of a log");
        assert_eq!(connection.status("this_connection"), "inactive: its URI says waldio=off");
    }
    assert!(!scratch.join("app.db-wal-spare").exists());
}

const GOOD: [(&str, &str); 9] = [
    ("waldio_fill", "auto"),
    ("waldio_fill", "zeroes"),
    ("waldio_fill", "write-zeroes"),
    ("waldio_fill", "unwritten"),
    ("waldio_persist", "auto"),
    ("waldio_persist", "flush"),
    ("waldio_persist", "fua"),
    ("waldio_log_bytes", "1048576"),
    ("waldio_strict", "1"),
];

#[test]
fn options_are_taken_from_the_uri_and_from_pragmas() {
    system().load(None).unwrap();
    let scratch = Scratch::new("options");
    for (number, (name, value)) in GOOD.into_iter().enumerate() {
        let path = scratch.join(&format!("{number}.db"));
        let by_uri = open_uri(&path, &format!("{name}={value}")).unwrap();
        assert_eq!(by_uri.one(&format!("PRAGMA {name}")), value, "URI {name}");
        drop(by_uri);
        let by_pragma = system().open(&path);
        assert_eq!(by_pragma.one(&format!("PRAGMA {name} = '{value}'")), value, "PRAGMA {name}");
        by_pragma.rows(WAL);
        by_pragma.rows("INSERT INTO t(b) VALUES (1)");
        assert_eq!(by_pragma.one(&format!("PRAGMA {name}")), value);
        assert_eq!(by_pragma.status("errors"), "0", "{name}={value}");
        // Too late: the log is open.
        let error = by_pragma.run(&format!("PRAGMA {name} = '{value}'")).1.unwrap();
        assert!(error.message.contains("while the log is open"), "{error}");
        drop(by_pragma);
        assert_eq!(system().open_stock(&path).one("SELECT count(*) FROM t"), "1");
    }
}

#[test]
fn wrong_options_are_refused_with_what_is_right() {
    system().load(None).unwrap();
    let scratch = Scratch::new("wrong");
    let path = scratch.join("app.db");
    let wrong = [
        ("waldio_fill", "yes", "auto, write-zeroes, zeroes or unwritten"),
        ("waldio_persist", "", "auto, flush or fua"),
        ("waldio_log_bytes", "1", "65536 to 1073741824"),
        ("waldio_log_bytes", "4M", "65536 to 1073741824"),
        ("waldio_strict", "maybe", "on or off"),
        ("waldio_groop", "16KiB,2ms", "group, layout, db_chunk"),
    ];
    for (name, value, right) in wrong {
        let refused = open_uri(&path, &format!("{name}={value}")).err().expect("a wrong value opens nothing");
        assert_eq!(refused.primary(), 14, "SQLITE_CANTOPEN: {refused}");
        let said = error_log().into_iter().rev().find(|line| line.contains(name) && line.contains(right));
        assert!(said.is_some(), "{name}={value} is not explained in {:?}", error_log());
        assert!(!path.exists(), "a refused open leaves no file");
        let connection = system().open_with(":memory:", None).unwrap();
        connection.rows(&format!("ATTACH '{}' AS other", path.display()));
        let complaint = connection.run(&format!("PRAGMA other.{name} = '{value}'")).1.unwrap();
        assert!(complaint.message.contains(right), "{complaint}");
        drop(connection);
        let _ = std::fs::remove_file(&path);
    }
}

#[test]
fn a_sqlite_that_is_too_old_is_refused_with_the_reason() {
    in_own_process("a_sqlite_that_is_too_old_is_refused_with_the_reason", || {
        let (code, message) = system().load_as_3_31();
        assert_eq!(code, 1, "SQLITE_ERROR");
        assert!(message.contains("needs SQLite 3.32.0 or newer, and this is 3.31.1"), "{message}");
        assert_eq!(system().vfs_name(None).as_deref(), Some("unix"));
        assert_eq!(system().vfs_name(Some("waldio")), None);
    });
}

/// What one copy does in a round, and what comes out of it.
fn round(library: &'static Library, path: &Path) -> String {
    let connection = library.open(path);
    connection.rows(WAL);
    // Strings that waldio allocates with the library's allocator, and SQLite frees.
    for name in ["waldio_fill", "waldio_persist", "waldio_log_bytes"] {
        connection.rows(&format!("PRAGMA {name}"));
    }
    connection.run("PRAGMA waldio_fill = 'wrong'");
    connection.rows("INSERT INTO t(b) VALUES (hex(zeroblob(500)))");
    connection.rows("SELECT * FROM waldio_status");
    connection.status("log")
}

/// Two builds in one process would each take the other's files for another process's.
#[test]
fn a_second_copy_of_waldio_is_refused_and_told_why() {
    in_own_process("a_second_copy_of_waldio_is_refused_and_told_why", || {
        let scratch = Scratch::new("second-copy");
        let copy = scratch.join("libwaldio.so");
        std::fs::copy(extension_path(), &copy).unwrap();
        let db = system().open_with(":memory:", None).unwrap();
        db.load_extension(&extension_path(), None).unwrap();
        let message = db.load_extension(&copy, None).unwrap_err();
        assert!(message.contains("another copy of waldio"), "{message}");
        db.load_extension(&extension_path(), None).unwrap();
    });
}

#[test]
fn two_copies_of_sqlite_keep_their_memory_apart() {
    in_own_process("two_copies_of_sqlite_keep_their_memory_apart", || {
        let scratch = Scratch::new("copies");
        let copies = [(system(), scratch.join("system.db")), (bundled(), scratch.join("bundled.db"))];
        for (library, _) in &copies {
            library.load(None).unwrap();
            assert_eq!(library.vfs_name(None).as_deref(), Some("waldio"));
        }
        assert_ne!(system().version_number(), bundled().version_number(), "one copy proves nothing");
        let mut before = [0, 0];
        for number in 0..120 {
            for ((library, path), before) in copies.iter().zip(&mut before) {
                assert_eq!(round(library, path), "open");
                if number < 20 {
                    *before = library.memory_used();
                }
                // Memory freed by the other copy is missed in the first one's count for ever.
                let more = library.memory_used() - *before;
                assert!(more.abs() < 2000, "{more} bytes more in use after round {number}");
            }
        }
        for (_, path) in &copies {
            assert_eq!(system().open_stock(path).one("SELECT count(*) FROM t"), "120");
        }
    });
}

#[test]
fn a_shim_above_changes_nothing() {
    in_own_process("a_shim_above_changes_nothing", || {
        let (library, scratch) = (system(), Scratch::new("above"));
        library.load(None).unwrap();
        let opened = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&opened);
        sqlite_shim::register(library, c"above", None, true, move |event| {
            count.fetch_add(usize::from(matches!(event, Event::Open(_))), SeqCst);
        });
        // Loading again must not take the shim's place.
        library.load(None).unwrap();
        assert_eq!(library.vfs_name(None).as_deref(), Some("above"));
        let path = scratch.join("app.db");
        let connection = library.open(&path);
        connection.rows(WAL);
        for row in 0..100 {
            connection.rows(&format!("INSERT INTO t(b) VALUES ({row})"));
        }
        assert!(opened.load(SeqCst) >= 2, "the shim sees the database and the log");
        assert_eq!(connection.status("log"), "open");
        assert_eq!(connection.status("commits"), "101", "100 rows and the table");
        drop(connection);
        assert_eq!(library.open_stock(&path).one("SELECT count(*) FROM t"), "100");
    });
}

#[test]
fn over_a_shim_the_log_is_passed_through() {
    in_own_process("over_a_shim_the_log_is_passed_through", || {
        let (library, scratch) = (system(), Scratch::new("below"));
        let logs = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&logs);
        sqlite_shim::register(library, c"below", Some(c"unix"), true, move |event| {
            const SQLITE_OPEN_WAL: i32 = 0x80000;
            count.fetch_add(
                usize::from(matches!(event, Event::Open(flags) if flags & SQLITE_OPEN_WAL != 0)),
                SeqCst,
            );
        });
        library.load(None).unwrap();
        let path = scratch.join("app.db");
        let connection = open_uri(&path, "waldio_layout=embedded").unwrap();
        connection.rows(WAL);
        connection.rows("INSERT INTO t(b) VALUES (1)");
        assert_eq!(connection.status("base_vfs"), "below");
        let log = connection.status_row("log");
        assert_eq!(log[0], "passed through");
        assert!(log[1].contains("below"), "the reason is {:?}", log[1]);
        let advice = connection.status("advice");
        assert!(
            advice.contains("VFS below is below") && advice.contains("load waldio before it"),
            "{advice}"
        );
        assert_eq!(logs.load(SeqCst), 1, "the shim below gets the log");
        assert_eq!(connection.status_row("layout"), ["stock", &*log[1]]);
        drop(connection);
        assert_eq!(std::fs::read(&path).unwrap()[20], 0, "bytes are reserved for a layout that cannot be");
        assert_eq!(library.open_stock(&path).one("SELECT count(*) FROM t"), "1");
    });
}

#[test]
fn parent_and_children_of_a_fork_all_commit() {
    if let Some(why) = no_python() {
        return skipped(&why);
    }
    let scratch = Scratch::new("fork");
    let database = scratch.join("app.db");
    let arguments = [database.to_str().unwrap(), scratch.path().to_str().unwrap()];
    let output = output_within(Duration::from_secs(60), &mut python("forks.py", &arguments));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    // Parent: 3 times 60 and the first child's 60. Children: 4 times 60, the grandchild's database twice.
    assert_eq!(out.trim(), "240 360");
}
