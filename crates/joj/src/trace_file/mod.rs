//! Saved traces: Parquet, one row for an event. The description is docs/trace_format.md.

#[cfg(test)]
mod tests;

mod reader;
mod writer;
mod pages;
mod names;
mod checksum;
mod schema;
mod error;

pub use error::{TraceReadError, TraceWriteError};
pub use reader::TraceReader;
pub use writer::TraceWriter;
