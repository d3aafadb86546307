//! Goal: beside SQLite's cksumvfs, above it or below, whichever layout is asked for, no row and no checksum is lost; the layout
//! falls back, and says why.
//! Method: the shim itself, built from the source package that SQLite's suite comes from, and once more with what SQLite 3.51 changed
//! in it: before, it wrote into pages behind the log's checksums, and a recovery found nothing, with waldio or without.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::path::{Path, PathBuf};
use std::process::Command;

use real::child::{Running, again, in_own_process, must, role};
use real::place::{Scratch, skipped};
use real::sqlite::{Connection, extension_path, system};

const ROWS: usize = 60;
/// What cksumvfs wants reserved in each page; without it, it does nothing.
const CHECKSUM_BYTES: u8 = 8;
const TO_EMBEDDED: &str = "SELECT waldio_convert('main', 'embedded')";

/// Where the shim stands, seen from waldio.
const PLACES: [&str; 2] = ["above", "below"];
const LAYOUTS: [&str; 2] = ["stock", "embedded"];

/// SQLite 3.51: checksums are made and looked at in the database alone, in checkpoints too.
const MENDED: [(&str, &str); 2] = [
    ("(flags & (SQLITE_OPEN_MAIN_DB|SQLITE_OPEN_WAL))==0", "(flags & SQLITE_OPEN_MAIN_DB)==0"),
    ("&& !p->inCkpt", ""),
];

/// Builds the shim, as it is in this SQLite or as 3.51 has it; why it cannot be had.
fn build(scratch: &Scratch, mended: bool) -> Result<PathBuf, String> {
    let library = extension_path();
    let source = library
        .ancestors()
        .map(|folder| folder.join("sqlite-suite/source/ext/misc/cksumvfs.c"))
        .find(|path| path.exists())
        .ok_or("no source of cksumvfs: tests/tcl/fetch.sh target/sqlite-suite fetches it")?;
    let text = std::fs::read_to_string(source).unwrap();
    let replaced = |text: String, (old, new): &(&str, &str)| text.replace(old, new);
    let text = if mended { MENDED.iter().fold(text, replaced) } else { text };
    let source = scratch.join("cksumvfs.c");
    std::fs::write(&source, text).unwrap();
    let shim = scratch.join("cksumvfs.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-w", "-fPIC", "-shared", "-o"]).arg(&shim).arg(source);
    let output = compiler.output().map_err(|error| format!("cc: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("sqlite3ext.h: No such file") {
        return Err("no sqlite3ext.h to build cksumvfs with: install libsqlite3-dev".to_owned());
    }
    assert!(output.status.success(), "{said}");
    Ok(shim)
}

/// Loads the shim and waldio; the one that comes last stands above.
fn stack(place: &str, shim: &Path) {
    let load_shim = || system().open_with(":memory:", None).unwrap().load_extension(shim, None).unwrap();
    match place {
        "above" => {
            system().load(None).unwrap();
            load_shim();
        }
        "below" => {
            load_shim();
            system().load(None).unwrap();
        }
        _ => load_shim(),
    }
}

fn open(path: &Path, layout: &str) -> Connection {
    system().open_with(&format!("file:{}?waldio_layout={layout}", path.display()), None).unwrap()
}

/// A database with so many bytes reserved, or as many as whoever is loaded wants, and `ROWS` commits.
fn write(path: &Path, layout: &str, reserved_bytes: Option<u8>) -> Connection {
    let db = open(path, layout);
    if let Some(bytes) = reserved_bytes {
        db.reserve_bytes(bytes);
    }
    db.rows("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t(a INTEGER PRIMARY KEY, b)");
    for row in 1..=ROWS {
        db.rows(&format!("INSERT INTO t(b) VALUES (printf('%d %.*c', {row}, 900, 'x'))"));
    }
    db
}

#[track_caller]
fn whole(db: &Connection) {
    assert_eq!(db.one("PRAGMA integrity_check"), "ok");
    assert_eq!(db.one("SELECT count(*) FROM t"), ROWS.to_string());
}

/// Every page of the file, as the shim judges it.
fn checksums_are_right(db: &Connection, path: &Path) -> bool {
    let file = std::fs::read(path).unwrap();
    let hex = |page: &[u8]| page.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    file.chunks(4096).all(|page| db.one(&format!("SELECT verify_checksum(x'{}')", hex(page))) == "1")
}

#[track_caller]
fn falls_back(db: &Connection, place: &str, layout: &str) {
    let (log, found) = (db.status_row("log"), db.status_row("layout"));
    assert_eq!(found[0], "stock", "{place}, {layout}: {found:?}");
    match place {
        "above" => assert_eq!(log[0], "open"),
        _ => {
            assert_eq!(log[0], "passed through");
            assert!(log[1].contains("cksmvfs") && found[1] == log[1], "{log:?} {found:?}");
        }
    }
    if (place, layout) == ("above", "embedded") {
        assert!(found[1].contains("8 reserved bytes, cksumvfs's checksums"), "{found:?}");
        assert!(!found[1].contains("waldio_convert"), "which refuses: {found:?}");
    }
    let said = db.run(TO_EMBEDDED).1.expect("there is no room").message;
    let why = if place == "above" { "cksumvfs's checksums" } else { "the VFS below is cksmvfs" };
    assert!(said.contains(why), "{said}");
}

/// Clean closes: in one arrangement.
fn keeps_everything(scratch: &Scratch, place: &str, layout: &str) {
    let path = scratch.join(&format!("{layout}.db"));
    let db = write(&path, layout, Some(CHECKSUM_BYTES));
    whole(&db);
    falls_back(&db, place, layout);
    drop(db);
    let mut bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes[20], CHECKSUM_BYTES, "{place}, {layout}");
    for _ in 0..2 {
        let db = open(&path, layout);
        whole(&db);
        assert_eq!(db.one("PRAGMA checksum_verification"), "1");
        assert!(checksums_are_right(&db, &path), "{place}, {layout}");
        db.rows("UPDATE t SET b = b || 'y'; PRAGMA wal_checkpoint(TRUNCATE)");
    }
    whole(&system().open_stock(&path));
    // That they are checksums: with a byte of a page changed it is not read.
    bytes[4096 + 3000] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let error = open(&path, layout).run("SELECT sum(length(b)) FROM t; PRAGMA integrity_check").1;
    assert_eq!(error.map(|error| error.code), Some(10 | 32 << 8), "SQLITE_IOERR_DATA");
}

#[test]
fn beside_the_shim_nothing_is_lost_and_the_layout_falls_back() {
    const NAME: &str = "beside_the_shim_nothing_is_lost_and_the_layout_falls_back";
    if let Some(arguments) = role(NAME) {
        let scratch = Scratch::new("cksumvfs");
        stack(&arguments[0], Path::new(&arguments[1]));
        return LAYOUTS.iter().for_each(|layout| keeps_everything(&scratch, &arguments[0], layout));
    }
    let scratch = Scratch::new("cksumvfs-build");
    for mended in [false, true] {
        let shim = match build(&scratch, mended) {
            Ok(shim) => shim,
            Err(why) => return skipped(&why),
        };
        for place in PLACES {
            must(&mut again(NAME, &[place, shim.to_str().unwrap()]));
        }
    }
}

/// Rows that are there after a kill -9, by the one who wrote them, and by who opens the database in the same arrangement then.
fn survive(name: &str, place: &str, layout: &str, reserved_bytes: &str, shim: &Path) -> String {
    let scratch = Scratch::new("cksumvfs-kill");
    let path = scratch.join("a.db");
    let arguments = ["write", place, layout, reserved_bytes, shim.to_str().unwrap(), path.to_str().unwrap()];
    let mut writer = Running::start(&mut again(name, &arguments));
    writer.wait_until_ready();
    writer.kill();
    drop(writer);
    let arguments = [&["count"], &arguments[1..]].concat();
    let said = must(&mut again(name, &arguments));
    said.lines().find_map(|line| line.strip_prefix("found ")).unwrap().to_owned()
}

/// As a child of `survive`.
fn survivor(arguments: &[String]) {
    let [act, place, layout, reserved_bytes, shim, path] = arguments else { panic!("{arguments:?}") };
    stack(place, Path::new(shim));
    if act == "write" {
        let _open = write(Path::new(path), layout, reserved_bytes.parse().ok());
        println!("\nready");
        return std::thread::sleep(std::time::Duration::from_secs(60));
    }
    let db = open(Path::new(path), layout);
    // The first commit makes the table, which may be what the shim's recovery does not find.
    let (rows, error) = db.run("SELECT count(*) FROM t");
    let rows = if error.is_some() { "no table".to_owned() } else { rows[0][0].clone() };
    println!("\nfound {rows}, {}", db.one("PRAGMA integrity_check"));
}

#[test]
fn a_kill_takes_no_more_than_from_the_shim_alone() {
    const NAME: &str = "a_kill_takes_no_more_than_from_the_shim_alone";
    if let Some(arguments) = role(NAME) {
        return survivor(&arguments);
    }
    let scratch = Scratch::new("cksumvfs-build");
    for mended in [false, true] {
        let shim = match build(&scratch, mended) {
            Ok(shim) => shim,
            Err(why) => return skipped(&why),
        };
        let alone = survive(NAME, "alone", "stock", "8", &shim);
        for (place, layout) in PLACES.into_iter().flat_map(|place| LAYOUTS.map(|layout| (place, layout))) {
            let found = survive(NAME, place, layout, "8", &shim);
            assert_eq!(found, alone, "{place}, {layout}: other than with the shim alone");
            // A database with nothing reserved for the shim: it does nothing there.
            let passive = survive(NAME, place, layout, "default", &shim);
            assert_eq!(passive, format!("{ROWS}, ok"), "{place}, {layout}, no checksums");
            if mended {
                assert_eq!(found, passive, "{place}, {layout}");
            }
        }
    }
}

/// A database with room for the `embedded` layout has none for checksums: the shim above does nothing. Over the shim the log
/// goes through it, and one in that layout is refused as by SQLite without us.
#[test]
fn a_log_in_the_embedded_layout_is_whole_above_the_shim_and_refused_over_it() {
    const NAME: &str = "a_log_in_the_embedded_layout_is_whole_above_the_shim_and_refused_over_it";
    if let Some(arguments) = role(NAME) {
        let [act, shim, path] = &arguments[..] else { panic!("{arguments:?}") };
        let path = Path::new(path);
        if act == "write" {
            system().load(None).unwrap();
            let db = write(path, "embedded", None);
            println!("\nready {}", db.status("layout"));
            return std::thread::sleep(std::time::Duration::from_secs(60));
        }
        stack(act, Path::new(shim));
        let db = open(path, "embedded");
        if act == "below" {
            return assert_eq!(db.run("SELECT count(*) FROM t").1.unwrap().primary(), 14, "SQLITE_CANTOPEN");
        }
        whole(&db);
        return assert_eq!(db.status("layout"), "embedded");
    }
    in_own_process(NAME, || {
        let scratch = Scratch::new("cksumvfs-hot");
        let shim = match build(&scratch, false) {
            Ok(shim) => shim,
            Err(why) => return skipped(&why),
        };
        let path = scratch.join("a.db");
        let act = |act: &str| again(NAME, &[act, shim.to_str().unwrap(), path.to_str().unwrap()]);
        let mut writer = Running::start(&mut act("write"));
        while writer.line().expect("it ended") != "ready embedded" {}
        writer.kill();
        drop(writer);
        let log = scratch.join("a.db-wal");
        let bytes = || [&path, &log].map(|path| std::fs::read(path).unwrap());
        let before = bytes();
        must(&mut act("below"));
        assert!(bytes() == before, "it changed a file");
        must(&mut act("above"));
        whole(&system().open_stock(&path));
    });
}
