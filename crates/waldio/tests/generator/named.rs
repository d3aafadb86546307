//! Short programs that once lost data, hung or differed, by name. Data only: the engine runs them.

/// A program of this name.
/// # Panics
/// Where there is none.
pub fn named(name: &str) -> &'static str {
    let found = NAMED.iter().find(|(other, _)| *other == name);
    found.unwrap_or_else(|| panic!("no program is called {name}")).1
}

/// All of them.
pub const NAMED: [(&str, &str); 29] = [
    (
        "exclusive_rollback",
        "# No unlock tells that an exclusive transaction was rolled back: its frames must not be read or copied. Each page is
         # written once, with its salts; a page that is written again makes SQLite leave the salts out.
         A = 1 waldio app.db
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
    (
        "replaced_files",
        "# Database and log are replaced under A; C opens the new ones at the same path, in the same process.
         A = 1 waldio app.db
         B = 1 waldio app.db
         C = 2 stock app.db
         A> INSERT INTO kept VALUES (1)
         A> INSERT INTO u VALUES (1, 1)
         *: replace app.db
         B> INSERT INTO kept VALUES (2)
         B> INSERT INTO kept VALUES (3)
         A> INSERT INTO u VALUES (2, 2)
         B> INSERT INTO kept VALUES (4)
         B> SELECT count(*) FROM kept
         A> SELECT count(*) FROM u
         *: check
         C> INSERT INTO kept VALUES (5)
         B> SELECT count(*) FROM kept
         1: kill",
    ),
    (
        "closed_descriptors",
        "# Descriptor 2 is closed between the opening and the first statement, and something is printed.
         A = 1 waldio app.db
         A: open
         1: stderr
         A> INSERT INTO kept VALUES (1)
         A> INSERT INTO kept VALUES (2)
         A> INSERT INTO kept VALUES (3)
         1: complain
         A> INSERT INTO kept VALUES (4)
         1: complain
         1: kill
         A> SELECT count(*) FROM kept",
    ),
    (
        "locks_beside_closed_descriptors",
        "# SQLite closes a database that it opens at a standard stream's descriptor, and gives back all of the process's locks on
         # it: B's opening must not come so low. Found by seed 1795566688004404.
         A = 1 waldio app.db
         B = 1 waldio app.db
         C = 2 waldio app.db
         A> PRAGMA locking_mode = EXCLUSIVE
         A> INSERT INTO kept VALUES (1)
         1: standard
         B> SELECT count(*) FROM kept
         C> INSERT INTO kept VALUES (2)
         A> INSERT INTO kept VALUES (3)",
    ),
    (
        "unreadable_folder",
        "# The folder cannot be opened, so its entries cannot be synced.
         user = nobody
         A = 1 waldio app.db
         *: mode 333
         A> INSERT INTO kept VALUES (1)
         A> INSERT INTO kept VALUES (2)
         1: kill
         A> INSERT INTO kept VALUES (3)",
    ),
    (
        "no_descriptor_at_first_commit",
        "# Nothing can be opened for a moment, at the first commit of a new log.
         A = 1 waldio app.db
         A> SELECT count(*) FROM t
         1: fail openat EMFILE 2
         A> INSERT INTO kept VALUES (1)
         1: fail openat EMFILE 0
         A! INSERT INTO kept VALUES (2)",
    ),
    (
        "refused_cachestat",
        "# A sandbox that answers EPERM to calls that it does not know.
         A = 1 waldio app.db waldio_persist=fua
         1: fail cachestat EPERM all
         A> INSERT INTO kept VALUES (1)
         A> INSERT INTO kept VALUES (2)
         A> INSERT INTO kept VALUES (3)
         A> INSERT INTO kept VALUES (4)",
    ),
    (
        "refused_pwritev2",
        "# The same for the call that writes durably at once.
         A = 1 waldio app.db waldio_persist=fua
         A> INSERT INTO kept VALUES (1)
         A> INSERT INTO kept VALUES (2)
         A> INSERT INTO kept VALUES (3)
         1: fail pwritev2 EPERM 1
         A> INSERT INTO kept VALUES (4)
         A> INSERT INTO kept VALUES (5)",
    ),
    (
        "sleep_after_refusal",
        "# A program that was refused a lock sleeps as long as it asked for.
         A = 1 waldio app.db
         B = 1 stock app.db
         B> BEGIN IMMEDIATE
         A> INSERT INTO kept VALUES (1)
         1: sleep 30",
    ),
    (
        "stale_refusal",
        "# The lock was refused to B, and is free again: A gets it, whatever the thread slept on.
         A = 1 waldio app.db
         B = 1 waldio app.db
         A> BEGIN IMMEDIATE
         B> INSERT INTO kept VALUES (1)
         A> INSERT INTO kept VALUES (2)
         A> COMMIT
         1: sleep 1
         A> BEGIN IMMEDIATE
         A> INSERT INTO kept VALUES (3)
         A> COMMIT
         B> INSERT INTO kept VALUES (4)",
    ),
    (
        "file_beside_the_log_not_opened",
        "# What the embedded layout has beside the log cannot be opened once. The unix VFS then opens it for reading only.
         page = 4096
         reserved = 24
         A = 1 waldio app.db waldio_layout=embedded
         B = 2 waldio app.db waldio_layout=embedded
         A> INSERT INTO kept VALUES (1)
         B: open
         2: fail openat-waldio EMFILE 1
         B> SELECT count(*) FROM kept
         2: fail openat-waldio EMFILE 0
         B> INSERT INTO kept VALUES (2)
         A: close
         B: close
         *: check
         A> SELECT count(*) FROM kept",
    ),
    (
        "crashed_log_not_opened_1",
        "# A crashed log in SQLite's layout, found by one who would write the other layout, while nothing can be opened.
         page = 4096
         reserved = 24
         A = 1 waldio app.db
         B = 2 waldio app.db waldio_layout=embedded
         A> INSERT INTO kept VALUES (1)
         A> INSERT INTO kept VALUES (2)
         1: kill
         B: open
         2: fail openat-wal EMFILE 1
         B> SELECT count(*) FROM kept
         2: fail openat-wal EMFILE 0
         B> SELECT count(*) FROM kept
         B: close
         *: check
         B> SELECT count(*) FROM kept",
    ),
    (
        "crashed_log_not_opened_2",
        "# A crashed log in SQLite's layout, found by one who would write the other layout, while nothing can be opened.
         page = 4096
         reserved = 24
         A = 1 waldio app.db
         B = 2 waldio app.db waldio_layout=embedded
         A> INSERT INTO kept VALUES (1)
         A> INSERT INTO kept VALUES (2)
         1: kill
         B: open
         2: fail openat-wal EMFILE 2
         B> SELECT count(*) FROM kept
         2: fail openat-wal EMFILE 0
         B> SELECT count(*) FROM kept
         B: close
         *: check
         B> SELECT count(*) FROM kept",
    ),
    (
        "crashed_log_not_opened_3",
        "# A crashed log in SQLite's layout, found by one who would write the other layout, while nothing can be opened.
         page = 4096
         reserved = 24
         A = 1 waldio app.db
         B = 2 waldio app.db waldio_layout=embedded
         A> INSERT INTO kept VALUES (1)
         A> INSERT INTO kept VALUES (2)
         1: kill
         B: open
         2: fail openat-wal EMFILE 3
         B> SELECT count(*) FROM kept
         2: fail openat-wal EMFILE 0
         B> SELECT count(*) FROM kept
         B: close
         *: check
         B> SELECT count(*) FROM kept",
    ),
    (
        "deleted_text",
        "# What was deleted securely is in no file once everybody has closed.
         A = 1 waldio app.db
         A> PRAGMA secure_delete = ON
         A> CREATE TABLE s(a)
         A> WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 90) INSERT INTO s SELECT printf('SECRETWORD%300d', i) FROM n
         A> DROP TABLE s
         A> VACUUM
         A: close
         *: absent SECRETWORD
         *: files",
    ),
    (
        "files_after_close",
        "# No file is left that stock SQLite would not leave, nor one with another owner or mode.
         A = 1 waldio app.db
         A> UPDATE t SET c = replace(c, 'o', 'r')
         A> UPDATE t SET c = replace(c, 'r', 'o')
         *: chmod app.db 600
         A: close
         *: files
         A> INSERT INTO kept VALUES (1)
         A> PRAGMA journal_mode = DELETE
         A: close
         *: files",
    ),
    (
        "full_disk_after_crash",
        "# A crashed database whose log cannot be written: it can be read all the same, and written when there is room.
         A = 1 waldio app.db
         B = 2 waldio app.db
         A> PRAGMA wal_autocheckpoint = 0
         A> UPDATE t SET c = c || zeroblob(900)
         A> UPDATE t SET c = c || 'x'
         A> INSERT INTO kept VALUES (1)
         1: kill
         B: open
         2: bytes 34000
         B! SELECT count(*) FROM kept
         B! SELECT count(*) FROM t
         2: bytes all
         B! SELECT count(*) FROM kept",
    ),
    (
        "interrupted_sync",
        "# A signal without SA_RESTART comes while a sync is under way.
         A = 1 waldio app.db waldio_persist=flush
         A> INSERT INTO kept VALUES (1)
         A> INSERT INTO kept VALUES (2)
         1: fail fdatasync EINTR 1
         A> INSERT INTO kept VALUES (3)
         A! INSERT INTO kept VALUES (4)",
    ),
    (
        "interrupted_database_sync",
        "# The same while waldio syncs the database, which another process has copied frames into, before a new log.
         A = 1 waldio app.db
         B = 1 waldio app.db
         C = 2 stock app.db
         A> INSERT INTO kept VALUES (1)
         C> PRAGMA wal_checkpoint(PASSIVE)
         1: fail fdatasync EINTR 2
         B> INSERT INTO kept VALUES (2)",
    ),
    (
        "file_size_limit",
        "# The process may write no file so large, then it may.
         A = 1 waldio app.db
         A> PRAGMA cache_size = 2
         A> INSERT INTO kept VALUES (1)
         A> INSERT INTO kept VALUES (2)
         1: bytes 40000
         A> UPDATE t SET c = c || zeroblob(900)
         A> INSERT INTO kept VALUES (3)
         1: bytes all
         A> INSERT INTO kept VALUES (4)",
    ),
    (
        "closed_descriptors_in_line",
        "# The page that processes share is no standard stream's either. Found by seed 70006.
         page = 1024
         user = nobody
         A = 1 waldio app.db
         B = 1 waldio app.db
         C = 1 stock app.db
         B> PRAGMA wal_checkpoint(RESTART)
         C> BEGIN IMMEDIATE
         1: standard
         B> UPDATE OR REPLACE t SET b = 10 * (b / 10 % 7 + 4)
         1: standard",
    ),
    (
        "file_size_limit_in_exclusive_mode",
        "# The rollback is no call there, and a smaller transaction must not carry what it left.
         A = 1 waldio app.db
         A> PRAGMA locking_mode = EXCLUSIVE
         A> INSERT INTO kept VALUES (1)
         1: bytes 400000
         A> UPDATE t SET c = c || zeroblob(90000)
         A> INSERT INTO kept VALUES (2)
         A> SELECT count(*) FROM kept
         1: bytes all
         A> INSERT INTO kept VALUES (3)",
    ),
    (
        "file_size_limit_after_truncate",
        "# The same for a log that was cut.
         A = 1 waldio app.db
         A> INSERT INTO kept VALUES (1)
         A> PRAGMA wal_checkpoint(TRUNCATE)
         1: bytes 40000
         A> UPDATE t SET c = c || zeroblob(900)
         1: bytes all
         A> INSERT INTO kept VALUES (2)",
    ),
    (
        "convert_read_only",
        "# Who may not write converts nothing.
         page = 4096
         A = 1 waldio app.db mode=ro
         A> SELECT count(*) FROM t
         *: remember app.db
         A? SELECT waldio_convert('main', 'embedded')
         *: unchanged app.db",
    ),
    (
        "convert_query_only",
        "page = 4096
         A = 1 waldio app.db
         A> SELECT count(*) FROM t
         A> PRAGMA query_only = ON
         *: remember app.db
         A? SELECT waldio_convert('main', 'embedded')
         *: unchanged app.db",
    ),
    (
        "refused_stock_connection_stays",
        "# A stock connection that was refused an embedded log reads when waldio has closed.
         page = 4096
         reserved = 24
         A = 1 waldio app.db waldio_layout=embedded
         B = 2 stock app.db
         A> INSERT INTO kept VALUES (1)
         B? SELECT count(*) FROM kept
         A: close
         B> SELECT count(*) FROM kept",
    ),
    (
        "embedded_persist_wal",
        "# PERSIST_WAL keeps the log at the last close; stock SQLite opens what is left.
         page = 4096
         reserved = 24
         A = 1 waldio app.db waldio_layout=embedded
         B = 2 stock app.db
         A> INSERT INTO kept VALUES (1)
         A: control 10 1
         A: close
         B> SELECT count(*) FROM kept
         B> INSERT INTO kept VALUES (2)",
    ),
    (
        "long_name",
        "# With its suffix a log's name fits, and no longer one would.
         A = 1 waldio aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.db
         A> INSERT INTO kept VALUES (1)
         A> INSERT INTO kept VALUES (2)
         A: close
         A> SELECT count(*) FROM kept
         1: kill",
    ),
    (
        "forked_child_sleeps",
        "A = 1 waldio app.db
         B = 1 waldio app.db
         A> BEGIN IMMEDIATE
         B> INSERT INTO kept VALUES (1)
         1: fork
         A> INSERT INTO kept VALUES (2)
         A> COMMIT
         1: fork
         1: fork
         B> INSERT INTO kept VALUES (3)",
    ),
];
