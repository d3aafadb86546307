//! Saved traces: Parquet, one row for an event. The description is docs/trace_format.md.
//!
//! ```text
//! reader     reads a trace row group by row group
//! writer     writes one as it comes; the file gets its name when it is whole
//! library    runs the Parquet library, whose panics are damage
//! pages      one row group's bytes, checked before they are decoded
//! names      texts of rows, each hashed once
//! checksum   CRC-32: the page checksums, which the library does not write
//! schema     the columns: names, how they are stored, which field each holds
//! error      why a trace cannot be read or written
//! ```

#[cfg(test)]
mod tests;

mod reader;
mod writer;
mod pages;
mod names;
mod library;
mod checksum;
mod schema;
mod error;

pub use checksum::{Checked, Checksum};
pub use error::{TraceReadError, TraceWriteError};
pub use reader::TraceReader;
pub use writer::{Checksums, TraceWriter};
