//! waldio: a SQLite extension (a VFS) that makes each durable commit one aligned device write.
//!
//! Load it before opening a database (`.load ./libwaldio`, `load_extension`, or linked in), then use
//! `PRAGMA journal_mode=WAL` as ever. See ARCHITECTURE.md for what it promises and why.
//!
//! Top to bottom; a file uses only what stands below it here. `unsafe` is in `extension`, `vfs` and `ffi` alone.

mod extension;
mod vfs;
mod status;
mod process;
mod connection;
#[cfg(test)]
mod overdue_flush;
mod reset_guard;
mod log_file;
mod database;
mod old_spare;
mod worker;
mod window;
mod lazy_thread;
mod queue;
mod process_line;
mod line;
mod gate;
mod patience;
mod super_journal;
mod synced_database;
mod session;
mod transaction;
mod choice;
mod durability;
mod tickets;
mod oldest_commit;
mod rewrite;
mod durable_reads;
mod pending;
mod stats;
mod failure;
mod primitives;
mod origin;
#[cfg(feature = "model")]
pub mod model;
pub mod embedded_file;
pub mod tails;
pub mod embedded;
pub mod planted;
pub mod histogram;
pub mod ffi;
pub mod options;
pub mod recovery;
pub mod layout;
pub mod frame;
pub mod reserve;

/// A program that links waldio chooses for itself.
#[cfg(not(feature = "static-link"))]
#[global_allocator]
static MEMORY: ffi::memory::WithReserve = ffi::memory::WithReserve;

pub use extension::{Registration, register, sqlite3_waldio_init, sqlite3_waldio_register_init};
/// What the model looks into.
#[cfg(feature = "model")]
pub use {
    connection::{Connection, Granted},
    database::Database,
    gate::{CLOSED_MAX, Gate, Outcome, Stayer},
    line::{LOOK_AGAIN, PASSES_MAX, RESERVATION, Seat, Turn},
    patience::Nap,
    primitives::Bell,
    queue::WriteQueue,
    stats::Stats,
    tickets::{Covered, Failed, Ticket, Tickets},
    window::Flusher,
    worker::Worker,
};
