//! Goal: `waldio_convert` makes room for the `embedded` layout in a database with rows, loses none, and refuses with a reason.
//! Method: real files; what a power cut leaves is the business of crash/embedded.rs, which runs the same statements.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]

mod real;

use std::path::{Path, PathBuf};

use real::child::{Running, again, in_own_process, role};
use real::place::Scratch;
use real::sqlite::{Connection, system};

const TO_EMBEDDED: &str = "SELECT waldio_convert('main', 'embedded')";

/// A database of SQLite's own, in WAL mode, with a hundred rows in indexed tables.
fn prepare(scratch: &Scratch, first: &str) -> PathBuf {
    let path = scratch.join("a.db");
    let db = system().open_stock(&path);
    db.rows(&format!("{first}; PRAGMA journal_mode=WAL; CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT); CREATE INDEX i ON t(b)"));
    db.rows("WITH n(a) AS (VALUES(1) UNION ALL SELECT a+1 FROM n WHERE a<100) INSERT INTO t SELECT a, hex(zeroblob(a*7)) FROM n");
    drop(db);
    system().load(None).unwrap();
    path
}

fn whole(db: &Connection) {
    assert_eq!(db.one("SELECT count(*) || ' ' || sum(length(b)) FROM t"), format!("100 {}", 7 * 2 * 5050));
    assert_eq!(db.one("PRAGMA integrity_check"), "ok");
}

fn refusal(db: &Connection, sql: &str) -> String {
    db.run(sql).1.unwrap_or_else(|| panic!("{sql} was not refused")).message
}

#[test]
fn a_database_converts_and_comes_back() {
    in_own_process("a_database_converts_and_comes_back", || {
        let scratch = Scratch::new("convert");
        let path = prepare(&scratch, "SELECT 1");
        let db = system().open(&path);
        whole(&db);
        let said = db.one(TO_EMBEDDED);
        assert!(said.starts_with("embedded: from the next opening"), "{said}");
        whole(&db);
        assert_eq!(db.status("layout"), "stock", "other connections could not know");
        db.rows("PRAGMA journal_mode=DELETE; PRAGMA journal_mode=WAL");
        whole(&db);
        assert_eq!(db.status("layout"), "embedded");
        db.rows("INSERT INTO t VALUES(101, ''); DELETE FROM t WHERE a=101");
        assert!(db.one("SELECT waldio_convert('main', 'stock')").starts_with("stock"));
        drop(db);
        let stock = system().open_stock(&path);
        whole(&stock);
        drop(stock);
        assert_eq!(std::fs::read(&path).unwrap()[20], 24);
        let db = system().open(&path);
        whole(&db);
        assert_eq!(db.status("layout"), "stock", "who asks for nothing has SQLite's own");
        drop(db);
        let db =
            system().open_with(&format!("file:{}?waldio_layout=embedded", path.display()), None).unwrap();
        whole(&db);
        assert_eq!(db.status("layout"), "embedded");
    });
}

#[test]
fn it_refuses_with_a_reason_and_changes_nothing() {
    const NAME: &str = "it_refuses_with_a_reason_and_changes_nothing";
    if let Some(arguments) = role(NAME) {
        let db = system().open_stock(Path::new(&arguments[0]));
        db.rows("SELECT count(*) FROM t");
        println!("\nready");
        return std::thread::sleep(std::time::Duration::from_secs(60));
    }
    in_own_process(NAME, || {
        let scratch = Scratch::new("convert-refused");
        let path = prepare(&scratch, "SELECT 1");
        let db = system().open(&path);
        whole(&db);
        for (sql, why) in [
            ("SELECT waldio_convert('main', 'x')", "waldio_layout is stock or embedded"),
            ("SELECT waldio_convert('nope', 'embedded')", "is not a database in a file"),
            ("SELECT waldio_convert('temp', 'embedded')", "is not a database in a file"),
            ("SELECT waldio_convert(NULL, 'embedded')", "wants a schema and a layout"),
            ("BEGIN; SELECT waldio_convert('main', 'embedded')", "COMMIT or ROLLBACK first"),
        ] {
            let said = refusal(&db, sql);
            assert!(said.contains(why), "{sql}: {said}");
        }
        db.rows("ROLLBACK");
        let second = system().open(&path);
        assert!(refusal(&db, TO_EMBEDDED).contains("other connections"));
        drop(second);
        let mut other = Running::start(&mut again(NAME, &[path.to_str().unwrap()]));
        other.wait_until_ready();
        assert!(refusal(&db, TO_EMBEDDED).contains("other connections"));
        other.kill();
        drop(other);
        let memory = system().open_with(":memory:", None).unwrap();
        assert!(refusal(&memory, TO_EMBEDDED).contains("is not a database in a file"));
        whole(&db);
        drop(db);
        assert_eq!(std::fs::read(&path).unwrap()[20], 0);
    });
}

#[test]
fn pages_that_are_somebody_elses_are_refused() {
    in_own_process("pages_that_are_somebody_elses_are_refused", || {
        let cases: [(&str, u8, &str); 3] = [
            ("PRAGMA page_size=8192", 0, "pages have 8192 bytes"),
            ("SELECT 1", 8, "cksumvfs"),
            ("SELECT 1", 80, "80 reserved bytes, which are somebody else's"),
        ];
        for (first, reserved, why) in cases {
            let scratch = Scratch::new("convert-pages");
            let path = scratch.join("a.db");
            let stock = system().open_stock(&path);
            if reserved > 0 {
                stock.reserve_bytes(reserved);
            }
            stock.rows(&format!("{first}; PRAGMA journal_mode=WAL; CREATE TABLE t(a)"));
            drop(stock);
            system().load(None).unwrap();
            let said = refusal(&system().open(&path), TO_EMBEDDED);
            assert!(said.contains(why), "{reserved}: {said}");
        }
    });
}

/// INSERT and VACUUM are refused on such a connection, and so is what rewrites the file; the file keeps each byte.
#[test]
fn who_may_only_read_converts_nothing() {
    in_own_process("who_may_only_read_converts_nothing", || {
        let scratch = Scratch::new("convert-reader");
        let path = prepare(&scratch, "SELECT 1");
        let before = std::fs::read(&path).unwrap();
        for (parameters, first) in [
            ("mode=ro", "SELECT 1"),
            ("mode=ro&waldio_layout=embedded", "SELECT 1"),
            ("immutable=1", "SELECT 1"),
            ("mode=rw", "PRAGMA query_only=1"),
        ] {
            let uri = format!("file:{}?{parameters}", path.display());
            let db = system().open_with(&uri, None).unwrap();
            db.rows(first);
            for sql in [
                TO_EMBEDDED,
                "SELECT waldio_convert('main', 'stock')",
                "SELECT count(*) FROM t WHERE waldio_convert('main', 'embedded') <> ''",
            ] {
                let refused = db.run("INSERT INTO t VALUES(101, '')").1.unwrap();
                let said = refusal(&db, sql);
                assert_eq!(refused.primary(), 8, "{refused}");
                assert!(said.contains("only read"), "{parameters}, {first}, {sql}: {said}");
            }
            whole(&db);
            drop(db);
            assert!(std::fs::read(&path).unwrap() == before, "{parameters}, {first}: the file changed");
        }
        // Another database of the connection is no reason, and neither is what was switched off again.
        let (db, other) = (system().open(&path), scratch.join("b.db"));
        system().open_stock(&other).rows("CREATE TABLE u(a)");
        db.rows(&format!("ATTACH 'file:{}?mode=ro' AS other; PRAGMA query_only=1", other.display()));
        db.rows("PRAGMA query_only=0");
        assert!(db.one(TO_EMBEDDED).starts_with("embedded"));
    });
}
