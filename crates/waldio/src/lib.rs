//! waldio: a SQLite extension (a VFS) that makes each durable commit one aligned device write.
//!
//! Load it before opening a database (`.load ./libwaldio`, `load_extension`, or linked in), then use
//! `PRAGMA journal_mode=WAL` as ever. See ARCHITECTURE.md for what it promises and why.
//!
//! Top to bottom; a file uses only what stands below it here (`ffi` alone calls up, into `connection`, `process`
//! and `status`: it is the border).

pub mod ffi;
mod extension;
mod status;
mod process;
mod connection;
mod reset_guard;
mod log_file;
mod database;
mod spare;
mod worker;
mod session;
mod choice;
mod tail;
mod pending;
mod stats;
mod failure;
pub mod options;
pub mod recovery;
pub mod layout;
pub mod frame;
pub mod reserve;
pub mod histogram;
pub mod planted;

pub use extension::{Registration, register, sqlite3_waldio_init, sqlite3_waldio_register_init};
