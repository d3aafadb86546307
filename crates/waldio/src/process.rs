//! What this process has open: databases by path, connections by the name SQLite gave them.
//!
//! A child of fork starts anew: what the parent had open is not the child's to use ("How To Corrupt", section 2.6),
//! its threads do not exist, and its locks may be held by threads that are gone. A child is known by a word that the kernel
//! wipes, and by its id where the kernel does not: ids begin again in a new pid namespace.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use blockio::disk::Disk;

use crate::connection::Connection;
use crate::database::Database;
use crate::ffi::fork_word::ForkWord;
use crate::ffi::leaked;
use crate::options::Options;
use crate::super_journal::SuperJournals;
use crate::window::Flusher;
use crate::worker::Worker;

/// See the file's head.
#[derive(Debug)]
pub struct Process {
    id: u32,
    worker: Worker,
    /// Those that exist now.
    pub super_journals: Arc<SuperJournals>,
    databases: Mutex<HashMap<(PathBuf, usize), Weak<Database>>>,
    connections: Mutex<HashMap<usize, Weak<Connection>>>,
}

/// The address of the present process's, or of a parent's where the kernel wipes nothing.
static CURRENT: ForkWord = ForkWord::new();

/// What a database is opened with.
#[derive(Debug, Clone)]
pub struct Opening {
    /// The database file.
    pub path: PathBuf,
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
            super_journals: Arc::default(),
            databases: Mutex::default(),
            connections: Mutex::default(),
        }));
        let fresh = std::ptr::from_mut(fresh).expose_provenance();
        // Where another thread was faster its table serves, and this one, empty, is leaked.
        let _ = current.compare_exchange(found, fresh, SeqCst, SeqCst);
        Process::current()
    }

    fn databases(&self) -> MutexGuard<'_, HashMap<(PathBuf, usize), Weak<Database>>> {
        self.databases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connections(&self) -> MutexGuard<'_, HashMap<usize, Weak<Connection>>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The database at this path, which connections of this process share.
    pub fn database(&self, opening: Opening) -> Arc<Database> {
        let disk_identity = Arc::as_ptr(&opening.disk).cast::<()>().addr();
        let mut databases = self.databases();
        let key = (opening.path.clone(), disk_identity);
        if let Some(database) = databases.get(&key).and_then(Weak::upgrade) {
            return database;
        }
        databases.retain(|_, database| database.strong_count() > 0);
        let (worker, flusher) = if opening.inline_worker {
            (Worker::Inline, Flusher::Never)
        } else {
            (self.worker.clone(), Flusher::thread())
        };
        let shared = (worker, flusher, Arc::clone(&self.super_journals));
        let database =
            Arc::new(Database::new(opening.path, opening.base_name, opening.disk, shared, opening.options));
        databases.insert(key, Arc::downgrade(&database));
        database
    }

    /// Every database that is open, by path.
    pub fn open_databases(&self) -> Vec<Arc<Database>> {
        let mut open: Vec<_> = self.databases().values().filter_map(Weak::upgrade).collect();
        open.sort_by(|one, other| one.path.cmp(&other.path));
        open
    }

    /// The open database whose log this is.
    pub fn database_of_log(&self, log_path: &Path, disk: &Arc<dyn Disk>) -> Option<Arc<Database>> {
        let same_disk = |database: &Arc<Database>| Arc::ptr_eq(&database.disk, disk);
        let is_it = |database: &Arc<Database>| database.log_path == log_path && same_disk(database);
        self.databases().values().filter_map(Weak::upgrade).find(is_it)
    }

    /// A connection whose database SQLite named with this very pointer (F6: the name's address pairs a log with
    /// its database even when other shims stand above us).
    pub fn add_connection(&self, name: usize, connection: &Arc<Connection>) {
        self.connections().insert(name, Arc::downgrade(connection));
    }

    /// How many connections of this process have it open.
    pub fn count_connections(&self, database: &Arc<Database>) -> usize {
        let has_it = |connection: &Arc<Connection>| Arc::ptr_eq(&connection.database, database);
        self.connections().values().filter_map(Weak::upgrade).filter(has_it).count()
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
