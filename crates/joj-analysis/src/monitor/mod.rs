//! What the machine did meanwhile: texts of /proc in, rates per interval out. A file uses only files below it.
//!
//! ```text
//! texts of proc -> reading -> sample (between two readings) -> table, summary -> document
//!
//! document   the file of `joj monitor --json`
//! table      samples under each other, a column for each quantity
//! summary    mean, percentiles and maximum of a quantity over all intervals
//! sample     what happened between two readings
//! reading    one look at all texts;  proc: each of them as the kernel writes it
//! quantity   what is measured, with units;  counter: how far a counter that wraps or starts over went
//! ```

pub mod document;
pub mod table;
pub mod summary;
pub mod sample;
pub mod reading;
pub mod proc;
pub mod quantity;
pub mod counter;
