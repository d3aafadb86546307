//! waldio: a SQLite extension (a VFS) that makes each durable commit one aligned device write.
//!
//! Load it before opening a database (`.load ./libwaldio`, `load_extension`, or linked in), then use
//! `PRAGMA journal_mode=WAL` as ever. See ARCHITECTURE.md for what it promises and why.
//!
//! Top to bottom; a folder uses only what stands below it here. `unsafe` is in `sqlite::extension`, `sqlite::vfs` and `ffi` alone.

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

pub use sqlite::extension::{Registration, register, sqlite3_waldio_init, sqlite3_waldio_register_init};
/// What the model looks into.
#[cfg(feature = "model")]
pub use {
    checkpoint::barrier::{Barrier, CLOSED_MAX, Outcome, SlowReader},
    connection::{Connection, Granted},
    database::{Database, Helpers},
    durability::delayed_flush::Flusher,
    durability::group_commit::{CommitNumber, Covered, Failed, GroupCommit},
    durability::growth::Worker,
    stats::Stats,
    threads::primitives::Waker,
    write_lock::busy_timeout::Nap,
    write_lock::lock_queue::LockQueue,
    write_lock::queue_state::{LOOK_AGAIN, PASSES_MAX, RESERVATION, Sleeper, Turn},
};
