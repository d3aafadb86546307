//! What waldio does not do for a database, and what would change that: the rows `advice` of `waldio_status`.

use std::sync::Arc;

use blockio::disk::Filesystem;

use crate::connection::Connection;
use crate::database::Database;
use crate::sqlite::pinned_log;

/// What the connection that asks says of one of its databases: nothing where it could not say.
#[derive(Debug, Clone, Default)]
pub struct Asking {
    /// `PRAGMA waldio`, or why there is no such answer.
    pub state: Option<String>,
    /// `PRAGMA journal_mode`.
    pub journal_mode: Option<String>,
    /// `PRAGMA synchronous`, as a word.
    pub synchronous: Option<&'static str>,
    /// `PRAGMA waldio_durability`.
    pub durability: Option<String>,
}

impl Asking {
    fn rolls_back(&self) -> bool {
        self.journal_mode.as_ref().is_some_and(|mode| mode != "wal")
    }

    fn leaves_commits_unsynced(&self) -> bool {
        !self.rolls_back()
            && self.durability.as_deref() == Some("full")
            && matches!(self.synchronous, Some("OFF" | "NORMAL"))
    }
}

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

/// What to change where a COMMIT is not worth what it is on a disk.
fn for_place(filesystem: Filesystem) -> Option<Advice> {
    let text = match filesystem {
        Filesystem::Network => {
            "the database lies on a network filesystem. In WAL mode the processes of one machine alone may have it open, \
             and what a flush is worth is the server's choice. Keep it on a disk of this machine"
        }
        Filesystem::Tmpfs => {
            "the database lies in memory (tmpfs or ramfs): nothing there survives a power cut or a restart of the machine, \
             whatever COMMIT says. Keep it on a disk"
        }
        Filesystem::Overlay => {
            "the database lies on overlayfs, as in a container: it goes with the container, and locks may not hold where a \
             file of a lower layer is opened before its first write. Keep it on a volume, on a disk of this machine"
        }
        _ => return None,
    };
    Some((text.to_owned(), "statfs f_type"))
}

/// What to change for one database, which has these connections, perhaps the one that asks among them. Nothing where waldio does
/// all it can.
pub fn for_database(
    database: &Database,
    connections: &[Arc<Connection>],
    asking: Option<&Asking>,
) -> Vec<Advice> {
    let passed_through = database.passed_through().map(|why| {
        let text = format!(
            "waldio does nothing for this database's log: {why}. Where another VFS is the reason, load waldio \
             before it"
        );
        (text, "the log goes through the base VFS")
    });
    let rolls_back = database.rolls_back() || asking.is_some_and(Asking::rolls_back);
    let rolls_back = rolls_back.then(|| {
        let text = "waldio does nothing for a rollback journal. Use WAL: PRAGMA journal_mode=WAL".to_owned();
        (text, "SQLite opened a rollback journal, and no log since, or PRAGMA journal_mode says so")
    });
    let not_durable = connections.iter().any(|connection| connection.leaves_commits_unsynced())
        || asking.is_some_and(Asking::leaves_commits_unsynced);
    let not_durable = not_durable.then(|| {
        let text = "COMMIT returns before it is durable: a power cut takes all since the last checkpoint. \
                    PRAGMA waldio_durability=bounded keeps all but the last 10 ms and a flush or two, without a wait for the disk; \
                    PRAGMA synchronous=FULL keeps all";
        (text.to_owned(), "synchronous is NORMAL or OFF, here or at a connection's last commit")
    });
    let pinned = pinned_log::is_pinned(database, connections).then(|| {
        let text = "no checkpoint can empty the log: a reader keeps the snapshot that it began with. \
                    End that transaction: COMMIT, or reset or finalize its statement";
        (text.to_owned(), "the wal-index: more was committed since that reader began than waldio_log_bytes")
    });
    let shared_cache = connections.iter().any(|connection| connection.options().shares_cache).then(|| {
        let text = "connections that share a cache are one to waldio: their commits share no flush, and SQLite answers \
                    SQLITE_LOCKED where others wait in the queue. Leave out cache=shared";
        (text.to_owned(), "cache=shared in a URI")
    });
    let place = database.session().and_then(|session| for_place(session.filesystem));
    let not_had = connections.iter().find_map(|connection| connection.not_had()).map(|what| {
        let text = format!(
            "{what}: it was open before a connection asked for that. Set it in WALDIO_ variables, or in the URI of the \
             first connection"
        );
        (text, "options_not_had")
    });
    [passed_through, rolls_back, not_durable, pinned, shared_cache, place, not_had]
        .into_iter()
        .flatten()
        .collect()
}
