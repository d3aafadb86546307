//! File I/O without SQLite. Top to bottom:
//!
//! ```text
//! probe   the result of `joj device probe`
//! row     a row of `joj bench --io`: its runs and their sums
//! job     what is done with the records of a file
//! way     how a record of a file reaches the medium
//! ```

pub mod probe;
pub mod row;
pub mod job;
pub mod way;
