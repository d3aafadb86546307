//! What `joj monitor` shows: lines while it runs, then a summary, a table or a page.

pub mod page;
pub mod summary;
pub mod lines;
pub mod csv;
