//! waldio: a SQLite extension (a VFS) that prepares the log ahead of need, and lets connections share flushes.
//!
//! Load it before opening a database (`.load ./libwaldio`, `load_extension`, or linked in), then use
//! `PRAGMA journal_mode=WAL` as ever. See ARCHITECTURE.md for what it promises and why.
//!
//! ```text
//! sqlite       what SQLite calls: the extension's entry points, the VFS, waldio_status
//! connection   one connection's database file and its log: reads, writes, locks, syncs
//! database     what the connections of this process to one database share
//! checkpoint   copying the log into the database while others write
//! write_lock   who writes next: the queue for the write lock, in this process and between processes
//! durability   what of the log is on the medium, and who flushes it
//! options      what a user may choose, and where
//! stats        what a database counted, for waldio_status;  histogram: durations, counted without a lock
//! failure      what can go wrong with the log
//! threads      threads, locks and time, of the system or of the model that tests them
//! ffi          the border to C: SQLite's structures and functions, system calls that no safe library offers
//! log          the bytes of a log: its layouts, frames, checksums
//! testing      bugs that tests plant; in a release build nothing
//! ```
//!
//! Top to bottom; a folder uses only what stands below it here. `unsafe` is in `sqlite::extension`, `sqlite::vfs` and
//! `ffi` alone.

#![deny(missing_docs)]

mod sqlite;
mod connection;
mod database;
mod checkpoint;
mod write_lock;
mod durability;
pub mod options;
mod stats;
pub mod histogram;
mod failure;
mod threads;
pub mod ffi;
pub mod log;
pub mod testing;

/// A program that links waldio chooses for itself.
#[cfg(not(feature = "static-link"))]
#[global_allocator]
static MEMORY: ffi::memory::WithReserve = ffi::memory::WithReserve;

#[cfg(feature = "static-link")]
pub use sqlite::extension::{NotRegistered, register};
pub use sqlite::extension::{Registration, register_with, sqlite3_waldio_init, sqlite3_waldio_register_init};
/// What the model looks into.
#[cfg(feature = "model")]
pub use {
    checkpoint::barrier::{Barrier, CLOSED_MAX, Outcome, SlowReader},
    connection::{Connection, Granted},
    database::{Database, Helpers},
    durability::group_commit::{CommitNumber, Covered, Failed, GroupCommit},
    ffi::taken_lock::TakenLock,
    stats::Stats,
    threads::primitives::Waker,
    write_lock::busy_timeout::Nap,
    write_lock::lock_queue::LockQueue,
    write_lock::queue_state::{LOOK_AGAIN, PASSES_MAX, RESERVATION, SLICE, Sleeper, Tried, Turn},
};
