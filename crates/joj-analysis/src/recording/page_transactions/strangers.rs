//! Files that are called like a database, its journal or its log, and are written by something else than SQLite: a copy, an archive that
//! is unpacked, a download.
//!
//! SQLite takes a lock on a database before it reads or writes it, and opens journal and log while it has the database open. So where a
//! recording has SQLite's locks, a description of a database without any is none of its connections, and neither is a journal or a log that
//! is opened while no connection has the database. What was open before the recording may have had its lock before.

use std::collections::{HashMap, HashSet};

use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::page_transactions::database_files::FileRole;

/// The descriptions that are none of SQLite's.
pub fn strangers(
    calls: &[RecordedCall],
    lockers: &HashSet<u32>,
    role_of: impl Fn(u32) -> Option<(FileRole, usize)>,
) -> HashSet<u32> {
    let mut found = HashSet::new();
    if lockers.is_empty() {
        return found;
    }
    // By database the open descriptions of connections.
    let mut open: HashMap<usize, HashSet<u32>> = HashMap::new();
    for call in calls {
        let Some((role, database)) = role_of(call.description) else { continue };
        let connections = open.entry(database).or_default();
        match (call.kind, role) {
            (CallKind::Held, FileRole::Database) => {
                connections.insert(call.description);
            }
            (CallKind::Open, FileRole::Database) if lockers.contains(&call.description) => {
                connections.insert(call.description);
            }
            (CallKind::Open, FileRole::Journal | FileRole::Log) if !connections.is_empty() => {}
            (CallKind::Open, FileRole::Database | FileRole::Journal | FileRole::Log) => {
                found.insert(call.description);
            }
            (CallKind::Close | CallKind::Released, FileRole::Database) if !call.stays_open() => {
                connections.remove(&call.description);
            }
            _ => {}
        }
    }
    found
}
