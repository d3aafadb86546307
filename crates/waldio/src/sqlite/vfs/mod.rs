//! SQLite's calls into us. Top to bottom:
//!
//! ```text
//! sql                what SQL sees of us: waldio_status, waldio_convert, our VFS in the list
//! vfs_methods        opens, deletes, sleeps: what is about no open file
//! main_file          methods of a database file: its locks, its wal-index, its file controls
//! log_methods        methods of a log file
//! last_close         the last close of an embedded log, also while SQLite without us has the database open
//! taking_back        when a COMMIT that failed, and is published all the same, is taken back
//! handle             what stands in SQLite's memory of an open database file
//! embedding          which layout a log has that SQLite opens now, and how it is changed
//! private_shm        the wal-index and the locks of the embedded layout: `app.db-waldio`
//! checkpoint_locks   the locks that a checkpoint behind a closed barrier takes from the base VFS
//! database_sync      syncs of the database that SQLite does not ask for
//! answers            a failure of ours as SQLite's result code
//! waiter             whose nap `xSleep` is: proves that it is the busy handler's, and waits in the queue instead
//! registered         what belongs to one registration of our VFS: its SQLite, the base VFS, the disk, the options
//! ```

pub(crate) mod sql;
pub(crate) mod vfs_methods;
mod main_file;
mod log_methods;
mod last_close;
mod taking_back;
mod handle;
mod embedding;
mod private_shm;
mod checkpoint_locks;
mod database_sync;
mod answers;
mod waiter;
pub(crate) mod registered;
