//! File I/O without SQLite. Top to bottom:
//!
//! ```text
//! way   how a record of a file reaches the medium
//! ```

pub mod way;
