//! What waldio does not do for a database, and what would change that: the rows `advice` of `waldio_status`.

use std::sync::atomic::Ordering::Relaxed;

use blockio::disk::Filesystem;

use crate::database::Database;
use crate::options::{DurabilityChoice, Options};

/// A sentence, and the fact that it follows from.
pub type Advice = (String, &'static str);

/// What to change for a connection that has its database through this VFS, not through waldio.
pub fn for_passed_by(vfs: &str) -> Advice {
    let text = format!(
        "waldio does nothing for this connection, which goes through the VFS {vfs}: it was opened before waldio was loaded, \
         or it asked for that VFS. Load waldio, then open the database again"
    );
    (text, "SQLITE_FCNTL_VFSNAME")
}

/// What to change for one database, whose connections have these options. Nothing where waldio does all it can.
pub fn for_database(database: &Database, connections: &[Options]) -> Vec<Advice> {
    let passed_through = database.passed_through().map(|why| {
        let text = format!(
            "waldio does nothing for this database's log: {why}. Where another VFS is the reason, load waldio \
             before it"
        );
        (text, "the log goes through the base VFS")
    });
    let rolls_back = database.rolls_back().then(|| {
        let text = "waldio does nothing for a rollback journal. Use WAL: PRAGMA journal_mode=WAL".to_owned();
        (text, "SQLite opened a rollback journal, and no log since")
    });
    let follows_synchronous = |options: &Options| options.durability == DurabilityChoice::Full;
    let is_unsynced = database.stats.is_newest_unsynced.load(Relaxed);
    let not_durable = (is_unsynced && connections.iter().any(follows_synchronous)).then(|| {
        let text = "COMMIT returns before it is durable: a power cut takes all since the last checkpoint. \
                    PRAGMA waldio_durability=bounded keeps all but the last 10 ms and a flush or two, without a wait for the disk; \
                    PRAGMA synchronous=FULL keeps all";
        (text.to_owned(), "the newest commit asked for no sync: synchronous is NORMAL or OFF")
    });
    let pinned = database.barrier.is_pinned().then(|| {
        let text = "the log grows: a reader keeps the snapshot that it began with, and no checkpoint can empty the log. \
                    End that transaction: COMMIT, or reset or finalize its statement";
        (text.to_owned(), "the last three checkpoints waited for the same reader")
    });
    let shared_cache = connections.iter().any(|options| options.shares_cache).then(|| {
        let text = "connections that share a cache are one to waldio: their commits share no flush, and SQLite answers \
                    SQLITE_LOCKED where others wait in the queue. Leave out cache=shared";
        (text.to_owned(), "cache=shared in a URI")
    });
    let filesystem = database.session().map(|session| session.filesystem);
    let remote = (filesystem == Some(Filesystem::Network)).then(|| {
        let text = "the database lies on a network filesystem. In WAL mode the processes of one machine alone may have it \
                    open, and what a flush is worth is the server's choice. Keep it on a disk of this machine";
        (text.to_owned(), "statfs f_type")
    });
    let not_had = database.not_had().map(|what| {
        let text = format!(
            "{what} came too late: set it in WALDIO_ variables, or in the URI of the first connection"
        );
        (text, "options_not_had")
    });
    [passed_through, rolls_back, not_durable, pinned, shared_cache, remote, not_had]
        .into_iter()
        .flatten()
        .collect()
}
