//! Goal: beside SQLite's cksumvfs, above it or below, whichever layout is asked for, no row and no checksum is lost; the layout
//! falls back, and says why.
//! Method: the shim itself, built from the source package that SQLite's suite comes from, and once more with what SQLite 3.51 changed
//! in it: before, it wrote into pages behind the log's checksums, and a recovery found nothing, with waldio or without.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::path::{Path, PathBuf};
use std::process::Command;

use real::child::{again, must, role};
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
