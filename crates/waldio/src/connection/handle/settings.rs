//! What a connection asked for and got, and its pragmas: `waldio_*`, and `synchronous` on its way to SQLite.

use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use super::Connection;
use crate::failure::Failure;
use crate::options::{self, DurabilityChoice, OptionError, Options};

impl Connection {
    /// What this connection asked for.
    pub fn options(&self) -> Options {
        *self.options.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether its commits share flushes with others, and it stands in the queue for the write lock. In a child of fork there are none.
    pub fn shares_commits(&self) -> bool {
        !self.database.origin.is_parent() && self.options().group_commit
    }

    /// True where SQLite asks for no sync of its commits, and the options leave it at that: a guess, from the last one.
    pub fn leaves_commits_unsynced(&self) -> bool {
        self.is_unsynced.load(Relaxed) && self.options().durability == DurabilityChoice::Full
    }

    /// What it asked for and did not get, because the log was open already.
    pub fn not_had(&self) -> Option<String> {
        self.not_had.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether its readers wait until what they see is durable.
    pub fn reads_durably(&self) -> bool {
        self.options().durable_reads
    }

    /// The base VFS opened the database for reading only.
    pub fn note_reads_only(&self) {
        self.reads_only.store(true, Relaxed);
    }

    /// True where it did.
    pub fn reads_only(&self) -> bool {
        self.reads_only.load(Relaxed)
    }

    /// It was opened with `readonly_shm=1`.
    pub fn note_reads_only_wal_index(&self) {
        self.reads_only_wal_index.store(true, Relaxed);
    }

    /// True where SQLite may make its wal-index for this connection.
    pub fn may_make_wal_index(&self) -> bool {
        !self.reads_only() && !self.reads_only_wal_index.load(Relaxed)
    }

    /// Everything in the log, whoever wrote it, is durable when this returns, and what it builds on; what there was to do.
    fn flush_now(&self, database_first: impl FnOnce() -> Result<(), Failure>) -> Result<String, Failure> {
        database_first()?;
        let done = match self.state()?.log.as_mut() {
            Some(log) => log.flush_now().map(|()| true),
            // Not opened by this connection yet, or not by us.
            None => self.database.flush_now(),
        }?;
        Ok(if done { "durable" } else { "no log" }.to_owned())
    }

    /// `SQLITE_FCNTL_PRAGMA`: an answer where the pragma is ours; `Err` holds the complaint.
    /// `database_first` syncs the database, where the log is flushed next.
    pub fn pragma(
        &self,
        name: &str,
        value: Option<&str>,
        database_first: impl FnOnce() -> Result<(), Failure>,
    ) -> Option<Result<String, String>> {
        let name = name.to_ascii_lowercase();
        if name == "synchronous" {
            if value.is_some()
                && let Ok(mut state) = self.state()
                && let Some(log) = state.log.as_mut()
            {
                log.forget_sync_follows();
                self.note_pending(log);
            }
            return None;
        }
        if name == "waldio" {
            let asks_only = "PRAGMA waldio asks, and sets nothing: waldio=off belongs in the database's URI";
            return Some(if value.is_some() { Err(asks_only.to_owned()) } else { Ok(self.in_a_sentence()) });
        }
        if !name.starts_with("waldio_") {
            return None;
        }
        if name == "waldio_flush" {
            return Some(self.flush_now(database_first).map_err(|failure| failure.to_string()));
        }
        let Some(setting) = self.setting(&name) else {
            // SQLite ignores a pragma that nobody knows, and the user would believe that it holds.
            return Some(Err(OptionError::Unknown(name).to_string()));
        };
        let Some(value) = value else { return Some(Ok(setting)) };
        if let Err(complaint) = self.set_option(&name, value) {
            return Some(Err(complaint.to_string()));
        }
        self.setting(&name).map(Ok)
    }

    /// `PRAGMA waldio`: one word, and a sentence behind a colon.
    fn in_a_sentence(&self) -> String {
        if let Some(why) = self.database.poisoned() {
            return format!("failed: {why}; close every connection of this process to the database");
        }
        let has_log = match self.state() {
            Ok(state) => state.log.is_some(),
            Err(failure) => return format!("failed: {failure}"),
        };
        if has_log {
            return match self.options().durability {
                DurabilityChoice::Full => {
                    "active: with synchronous=FULL a COMMIT is on the disk when it returns".to_owned()
                }
                DurabilityChoice::Bounded(delay) => format!(
                    "active: COMMIT does not wait, and a power cut takes the last {} ms and a flush or two at most",
                    delay.time.as_millis()
                ),
                DurabilityChoice::Normal => {
                    "active: COMMIT does not wait, and a power cut takes all since the last checkpoint"
                        .to_owned()
                }
            };
        }
        if let Some(why) = self.database.passed_through() {
            return format!("inactive: the log is left to SQLite: {why}");
        }
        if self.database.rolls_back() {
            return "inactive: SQLite opened a rollback journal, and no log since: after PRAGMA journal_mode=WAL the next \
                    statement opens it"
                .to_owned();
        }
        "waiting: this connection has not opened the log: nothing was read yet, or PRAGMA journal_mode is not WAL".to_owned()
    }

    /// The present setting of an option: this connection's, or its log's.
    fn setting(&self, name: &str) -> Option<String> {
        let own = options::is_connections(name);
        if own { self.options().get(name) } else { self.database.options().get(name) }
    }

    fn set_option(&self, name: &str, value: &str) -> Result<(), OptionError> {
        if !options::is_connections(name) {
            self.database.set_option(name, value)?;
        }
        let mut own = self.options.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = *own;
        changed.set(name, value)?;
        if let (true, Some(why)) = (changed.durable_reads, self.database.passed_through()) {
            return Err(OptionError::PassedThrough(why));
        }
        *own = changed;
        Ok(())
    }
}
