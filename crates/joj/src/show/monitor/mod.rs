//! What `joj monitor` shows. Top to bottom:
//!
//! ```text
//! page      what it saw as one HTML page
//! summary   the end as text: mean, percentiles and maximum of each quantity
//! lines     samples while they are taken: a line each, or a table that stays where it is
//! csv       samples as comma-separated values
//! ```

pub mod page;
pub mod summary;
pub mod lines;
pub mod csv;
