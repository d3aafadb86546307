//! Goal: a database that SQLCipher encrypts loses nothing with waldio, whichever layout is asked for; the layout stays SQLite's own, with a
//! reason. An SQLCipher that is too old is told so, and goes on as without waldio.
//! Method: the distribution's libsqlcipher (Debian 12's is SQLite 3.15.2), or the one that SQLCIPHER_LIBRARY names; clean closes and kills.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::path::Path;
use std::time::Duration;

use real::child::{Running, again, must, role};
use real::place::{Scratch, skipped};
use real::sqlite::{Connection, Library, sqlcipher, system};

const ROWS: usize = 60;
const VERSION_MIN: i32 = 3_032_000;
/// A key and the salt that SQLCipher would otherwise keep in the first bytes of the file.
const KEY: &str = "PRAGMA key = \"x'000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f000102030405060708090a0b0c0d0e0f'\"";
/// What the first bytes of the file are: the salt, or SQLite's own.
const HEADERS: [&str; 2] = ["0", "32"];
const LAYOUTS: [&str; 2] = ["stock", "embedded"];

fn open(path: &Path, parameters: &str, header: &str) -> Connection {
    let db = sqlcipher().unwrap().open_with(&format!("file:{}?{parameters}", path.display()), None).unwrap();
    db.rows(&format!("{KEY}; PRAGMA cipher_plaintext_header_size = {header}"));
    db
}

fn write(db: &Connection) {
    db.rows("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t(a INTEGER PRIMARY KEY, b)");
    for row in 1..=ROWS {
        db.rows(&format!("INSERT INTO t(b) VALUES (printf('%d %.*c', {row}, 900, 'x'))"));
    }
}

#[track_caller]
fn whole(db: &Connection) {
    assert_eq!(db.one("PRAGMA integrity_check"), "ok");
    assert_eq!(db.one("SELECT count(*) FROM t"), ROWS.to_string());
}

#[track_caller]
fn falls_back(db: &Connection, layout: &str, header: &str) {
    let found = db.status_row("layout");
    assert_eq!((&*db.status("log"), &*found[0]), ("open", "stock"), "{found:?}");
    let why = if header == "0" { "is it encrypted?" } else { "80 reserved bytes" };
    assert_eq!(found[1].contains(why), layout == "embedded", "{layout}, header {header}: {found:?}");
    let refused = db.run("SELECT waldio_convert('main', 'embedded')").1.expect("there is no room").message;
    let why = if header == "0" { "without a key" } else { "" };
    assert!(refused.contains(why), "{refused}");
}

/// The library, where it can have waldio; else why not.
fn new_enough() -> Result<&'static Library, String> {
    let library =
        sqlcipher().ok_or("no libsqlcipher: install libsqlcipher0, or name one in SQLCIPHER_LIBRARY")?;
    let version = library.version_number();
    if version >= VERSION_MIN {
        return Ok(library);
    }
    Err(format!(
        "this SQLCipher's SQLite is {version}, and waldio takes {VERSION_MIN}: SQLCIPHER_LIBRARY may name another"
    ))
}

#[test]
fn an_sqlcipher_that_is_too_old_is_told_and_goes_on() {
    let Some(library) = sqlcipher() else { return skipped(&new_enough().err().unwrap()) };
    if library.version_number() >= VERSION_MIN {
        return skipped("this SQLCipher is new enough for waldio");
    }
    let said = library.load(None).unwrap_err();
    assert!(said.contains("waldio needs SQLite 3.32.0 or newer"), "{said}");
    let scratch = Scratch::new("sqlcipher-old");
    let path = scratch.join("a.db");
    write(&open(&path, "", "0"));
    whole(&open(&path, "", "0"));
    assert_eq!(library.vfs_name(None).as_deref(), Some("unix"));
}

#[test]
fn an_encrypted_database_is_whole_and_its_layout_falls_back() {
    let library = match new_enough() {
        Ok(library) => library,
        Err(why) => return skipped(&why),
    };
    library.load(None).unwrap();
    let scratch = Scratch::new("sqlcipher");
    for (layout, header) in LAYOUTS.into_iter().flat_map(|layout| HEADERS.map(|header| (layout, header))) {
        let path = scratch.join(&format!("{layout}-{header}.db"));
        let ours = format!("waldio_layout={layout}");
        let db = open(&path, &ours, header);
        write(&db);
        falls_back(&db, layout, header);
        whole(&db);
        drop(db);
        whole(&open(&path, &ours, header));
        whole(&open(&path, "vfs=unix", header));
        let refused = system().open_stock(&path).run("SELECT count(*) FROM t").1;
        assert!(refused.is_some(), "SQLite reads it without a key: it is not encrypted");
    }
}

#[test]
fn a_kill_takes_nothing_of_an_encrypted_database() {
    const NAME: &str = "a_kill_takes_nothing_of_an_encrypted_database";
    if let Some(arguments) = role(NAME) {
        let [act, layout, header, path] = &arguments[..] else { panic!("{arguments:?}") };
        sqlcipher().unwrap().load(None).unwrap();
        let db = open(Path::new(path), &format!("waldio_layout={layout}"), header);
        if act == "write" {
            write(&db);
            println!("\nready");
            return std::thread::sleep(Duration::from_secs(60));
        }
        return whole(&db);
    }
    if let Err(why) = new_enough() {
        return skipped(&why);
    }
    let scratch = Scratch::new("sqlcipher-kill");
    for (layout, header) in LAYOUTS.into_iter().flat_map(|layout| HEADERS.map(|header| (layout, header))) {
        let path = scratch.join(&format!("{layout}-{header}.db"));
        let act = |act: &str| again(NAME, &[act, layout, header, path.to_str().unwrap()]);
        let mut writer = Running::start(&mut act("write"));
        writer.wait_until_ready();
        writer.kill();
        drop(writer);
        assert!(scratch.join(&format!("{layout}-{header}.db-wal")).exists(), "there is nothing to recover");
        must(&mut act("count"));
    }
}
