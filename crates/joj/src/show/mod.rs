//! A result as people see it: a table for a terminal, a page with plots. Top to bottom: one folder for each subcommand, then what
//! they share.

pub mod monitor;
pub mod trace;
pub mod lab;
pub mod bench;
pub mod latency;
pub mod bars;
pub mod timeline;
mod sheet;
pub mod svg;
pub mod text;
