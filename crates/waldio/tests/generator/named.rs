//! Short programs that once lost data, hung or differed, by name. Data only: the engine runs them.

/// A program of this name.
/// # Panics
/// Where there is none.
pub fn named(name: &str) -> &'static str {
    let found = NAMED.iter().find(|(other, _)| *other == name);
    found.unwrap_or_else(|| panic!("no program is called {name}")).1
}

/// All of them.
pub const NAMED: [(&str, &str); 1] = [
    (
        "exclusive_rollback",
        // No unlock tells that an exclusive transaction was rolled back: its frames must not be read or copied. Each page
        // is written once, with its salts; a page that is written again makes SQLite leave the salts out.
        "A = 1 waldio app.db
         B = 2 stock app.db
         A> PRAGMA cache_size = 2
         A> PRAGMA locking_mode = EXCLUSIVE
         A> INSERT INTO kept VALUES (1)
         A> INSERT INTO kept VALUES (2)
         A> INSERT INTO kept VALUES (3)
         A> BEGIN
         A> UPDATE t SET c = replace(c, 'o', 'r')
         A> ROLLBACK
         A> PRAGMA locking_mode = NORMAL
         A> SELECT count(*) FROM t
         B> INSERT INTO kept VALUES (4)
         B> UPDATE t SET c = 'committed' || a
         A> SELECT count(*), max(c) FROM t
         A> PRAGMA wal_checkpoint(TRUNCATE)",
    ),
];
