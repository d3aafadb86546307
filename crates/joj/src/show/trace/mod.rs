//! What `joj trace` shows: the page with its plots, the text for a terminal, their parts.
//!
//! ```text
//! sample      a small trace for tests
//! page        a trace as one HTML page;  plots: its pictures
//! text        the summary as text
//! steps       transactions step by step, as text
//! contents    what is in a request, in words
//! costs       tables: commits, persistence paths, sync calls, latencies
//! volumes     tables: requests and bytes by class, file and disk
//! head        what a trace says of itself: where it comes from, its disks, what to know first
//! processes   table: whom a disk worked for
//! ```

#[cfg(test)]
mod sample;
pub mod page;
mod plots;
pub mod text;
pub mod steps;
mod contents;
mod costs;
mod volumes;
mod head;
mod processes;
