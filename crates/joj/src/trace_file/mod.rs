//! Saved traces: Parquet, one row for an event. The description is docs/trace_format.md.

// Some of it is for `joj trace`, which comes next.
#![allow(dead_code)]

#[cfg(test)]
mod tests;

mod reader;
mod writer;
mod pages;
mod names;
mod checksum;
mod schema;

pub use reader::TraceReader;
pub use writer::TraceWriter;
