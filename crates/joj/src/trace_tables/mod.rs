//! Analysed traces as tables for a fleet (Parquet): a file of commits and a file of runs for each trace. The description is
//! docs/trace_tables.md; the Python package `joj` reads them.
//!
//! ```text
//! tables     takes what is complete, and has the rows written
//! commits    the columns of a commit, and the row that one gives
//! runs       the columns of a run of a request, and the row that one gives
//! facts      what is the same in every row: the trace, its device, its kernel, its labels
//! writer     writes rows; the file gets its name when it is whole
//! cell       a value of a row, and the column that it stands in
//! error      why tables cannot be written
//! ```

pub mod tables;
mod commits;
mod runs;
pub mod facts;
mod writer;
mod cell;
mod error;

pub use error::TableError;
