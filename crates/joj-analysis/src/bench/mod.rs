//! What `joj bench` measured, and what follows from it. Top to bottom:
//!
//! ```text
//! compare      two results side by side;  warnings: what a reader must know of one
//! document     the result as JSON
//! study        what the WALDIO paper measured;  many_writers: rows of those;  row: one writer
//! run          one run's figures;  key: what was run
//! ```

pub mod compare;
pub mod warnings;
pub mod document;
pub mod study;
pub mod measurement;
pub mod many_writers;
pub mod row;
pub mod environment;
pub mod run;
pub mod durability;
pub mod key;
