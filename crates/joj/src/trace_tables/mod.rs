//! Analysed traces as tables for a fleet (Parquet): a file of commits and a file of runs for each trace. The description is
//! docs/trace_tables.md; the Python package `joj` reads them.
//!
//! ```text
//! tables     takes what is complete, and has the rows written
//! commits    the columns of a commit, and the row that one gives
//! runs       the columns of a run of a request, and the row that one gives
//! facts      what is the same in every row: the trace, its device, its kernel, its labels
//! existing   which labels a table has that is there already
//! writer     writes rows; the file gets its name when it is whole
//! seal       the checksum of a table's end, which stands in that end
//! cell       a value of a row, and the column that it stands in
//! error      why tables cannot be written
//! ```

pub mod tables;
mod commits;
mod runs;
pub mod facts;
mod existing;
mod writer;
mod seal;
mod cell;
mod error;

pub use error::TableError;

/// Whether a label of this name would stand beside a column of the same name, in an engine that takes capitals for small letters.
pub fn hides_column(key: &str) -> bool {
    let columns = commits::columns().into_iter().chain(runs::columns());
    !facts::NAMED.contains(&key) && columns.into_iter().any(|column| column.name.eq_ignore_ascii_case(key))
}
