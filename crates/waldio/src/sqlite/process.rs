//! What this process has open: databases by path, connections by the name SQLite gave them.
//!
//! A child of fork starts anew: what the parent had open is not the child's to use ("How To Corrupt", section 2.6),
//! its threads do not exist, and its locks may be held by threads that are gone. A child is known by a word that the kernel
//! wipes, and by its id where the kernel does not: ids begin again in a new pid namespace.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use blockio::disk::{Disk, FileId};

use crate::connection::Connection;
use crate::database::super_journal::SuperJournals;
use crate::database::{Database, Helpers};
use crate::durability::delayed_flush::Flusher;
use crate::durability::growth::Worker;
use crate::ffi::kernel::fork_word::ForkWord;
use crate::ffi::kernel::leaked;
use crate::options::Options;
use crate::threads::timer::Timer;

/// The databases and connections that this process has open.
#[derive(Debug)]
pub struct Process {
    id: u32,
    worker: Worker,
    lock_watch: Timer,
    /// Those that exist now.
    pub super_journals: Arc<SuperJournals>,
    databases: Mutex<HashMap<Key, Weak<Database>>>,
    connections: Mutex<HashMap<usize, Weak<Connection>>>,
}

/// The address of the present process's, or of a parent's where the kernel wipes nothing.
static CURRENT: ForkWord = ForkWord::new();

/// A database: its name, which disk it is on, and which file it is. A file that was renamed away and another in its place
/// are two, and so is one file under two names, as with SQLite's own journals.
type Key = (PathBuf, usize, Option<FileId>);

/// What a database is opened with.
#[derive(Debug, Clone)]
pub struct Opening {
    /// The database file.
    pub path: PathBuf,
    /// Which file that is; `None` where nobody can tell, and then it is nobody else's.
    pub file_id: Option<FileId>,
    /// Name of the VFS below.
    pub base_name: String,
    /// Where its log is.
    pub disk: Arc<dyn Disk>,
    /// True where growth happens in the caller.
    pub inline_worker: bool,
    /// Its options, unless it is open already.
    pub options: Options,
}

impl Process {
    /// This process's. It is never freed: extensions stay loaded.
    pub fn current() -> &'static Process {
        let id = std::process::id();
        let current = CURRENT.get();
        let found = current.load(SeqCst);
        if let Some(process) = leaked::at::<Process>(found)
            && process.id == id
        {
            return process;
        }
        let fresh = Box::leak(Box::new(Process {
            id,
            worker: Worker::thread(),
            lock_watch: Timer::new("waldio-locks"),
            super_journals: Arc::default(),
            databases: Mutex::default(),
            connections: Mutex::default(),
        }));
        let fresh = std::ptr::from_mut(fresh).expose_provenance();
        // Where another thread was faster its table serves, and this one, empty, is leaked.
        let _ = current.compare_exchange(found, fresh, SeqCst, SeqCst);
        Process::current()
    }

    fn databases(&self) -> MutexGuard<'_, HashMap<Key, Weak<Database>>> {
        self.databases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connections(&self) -> MutexGuard<'_, HashMap<usize, Weak<Connection>>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new connection to the database at this path, which its connections in this process share. SQLite named the database with
    /// this very pointer (docs/sqlite_internals.md: the name's address pairs a log with its database even when other shims stand
    /// above us).
    ///
    /// A database that nobody has open is opened anew, though a helper thread may still look at it: what failed before goes with
    /// the last connection.
    pub fn connect(&self, opening: Opening, name: usize) -> Arc<Connection> {
        let options = opening.options;
        // Held until the connection counts: else who opens next to it would have another database.
        let mut databases = self.databases();
        let connection = Arc::new(Connection::new(self.database(&mut databases, opening), options));
        self.connections().insert(name, Arc::downgrade(&connection));
        connection
    }

    fn database(&self, databases: &mut HashMap<Key, Weak<Database>>, opening: Opening) -> Arc<Database> {
        let disk_identity = Arc::as_ptr(&opening.disk).cast::<()>().addr();
        let key = (opening.path.clone(), disk_identity, opening.file_id);
        let known = databases.get(&key).filter(|_| opening.file_id.is_some());
        let is_open = |database: &Arc<Database>| !self.connections_of(database).is_empty();
        if let Some(database) = known.and_then(Weak::upgrade).filter(is_open) {
            return database;
        }
        databases.retain(|_, database| database.strong_count() > 0);
        let (worker, flusher) = if opening.inline_worker {
            (Worker::Inline, Flusher::Never)
        } else {
            (self.worker.clone(), Flusher::thread())
        };
        let helpers = Helpers {
            worker,
            flusher,
            lock_watch: self.lock_watch.clone(),
            super_journals: Arc::clone(&self.super_journals),
        };
        let database = Arc::new(Database::new(
            opening.path,
            opening.file_id,
            opening.base_name,
            opening.disk,
            helpers,
            opening.options,
        ));
        databases.insert(key, Arc::downgrade(&database));
        database
    }

    /// Every database that is open, by path.
    pub fn open_databases(&self) -> Vec<Arc<Database>> {
        let mut open: Vec<_> = self.databases().values().filter_map(Weak::upgrade).collect();
        open.sort_by(|one, other| one.path.cmp(&other.path));
        open
    }

    /// The open database whose log this is: of those that had this name, the one that stands there now.
    pub fn database_of_log(&self, log_path: &Path, disk: &Arc<dyn Disk>) -> Option<Arc<Database>> {
        let is_there = |database: &Arc<Database>| {
            Arc::ptr_eq(&database.disk, disk)
                && database.log_path == log_path
                && database.file_id == disk.identity_of(&database.path).ok()
        };
        self.databases().values().filter_map(Weak::upgrade).find(is_there)
    }

    /// SQLite opens the rollback journal of this name: of those that had it, the database that stands there now.
    pub fn note_rollback_journal(&self, journal: &Path) {
        let Some(path) = journal.as_os_str().as_bytes().strip_suffix(b"-journal") else { return };
        let is_its = |known: &Arc<Database>| known.path.as_os_str().as_bytes() == path;
        let mut its: Vec<_> = self.databases().values().filter_map(Weak::upgrade).filter(is_its).collect();
        if its.len() > 1 {
            its.retain(|known| known.file_id == known.disk.identity_of(&known.path).ok());
        }
        its.iter().for_each(|database| database.note_rollback_journal());
    }

    /// The connections that this process has to a database.
    pub fn connections_of(&self, database: &Database) -> Vec<Arc<Connection>> {
        let has_it = |connection: &Arc<Connection>| std::ptr::eq(&*connection.database, database);
        self.connections().values().filter_map(Weak::upgrade).filter(has_it).collect()
    }

    /// Forgets a connection.
    pub fn remove_connection(&self, name: usize) {
        self.connections().remove(&name);
    }

    /// The connection with this name.
    pub fn connection(&self, name: usize) -> Option<Arc<Connection>> {
        self.connections().get(&name).and_then(Weak::upgrade)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::io::Error;

    use blockio::disk::OpenOptions;
    use blockio::simulated::disk::SimDisk;
    use blockio::simulated::image::Image;
    use blockio::simulated::state::SimOptions;

    use crate::log::layout::Layout;

    #[test]
    fn what_failed_goes_with_the_last_connection_though_somebody_looks_at_the_database() {
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::from_image(&Image::default(), SimOptions::default()));
        let path = PathBuf::from("/process.db");
        drop(disk.open(&path, OpenOptions { create: true, ..OpenOptions::EXISTING }).expect("an empty disk"));
        let opening = Opening {
            file_id: disk.identity_of(&path).ok(),
            path,
            base_name: "base".to_owned(),
            disk,
            inline_worker: true,
            options: Options::default(),
        };
        let process = Process::current();
        let connect = |name| process.connect(opening.clone(), name);
        let [one, other] = [1, 2].map(connect);
        assert!(Arc::ptr_eq(&one.database, &other.database));
        let (session, _) = one.database.open_log(true, Layout::Stock).expect("a sound disk");
        session.durability.poison("test", Error::other("planted"));
        drop(session);
        let looked_at = Arc::clone(&one.database);
        process.remove_connection(1);
        drop(one);
        let third = connect(3);
        assert!(Arc::ptr_eq(&third.database, &other.database), "one still has it open");
        [2, 3].into_iter().for_each(|name| process.remove_connection(name));
        drop((other, third));
        let again = connect(4);
        assert!(!Arc::ptr_eq(&again.database, &looked_at));
        let (session, _) = again.database.open_log(true, Layout::Stock).expect("a sound disk");
        assert!(session.durability.check().is_ok());
        process.remove_connection(4);
    }
}
