//! `joj trace`: a capture or a saved trace, and what is made of it. A file uses only files below it.

pub mod command;
pub mod header_command;
pub mod generate;
pub mod transactions;
pub mod live;
pub mod saved;
mod input;
pub mod analysis;
mod exports;
mod progress;
pub mod error;
