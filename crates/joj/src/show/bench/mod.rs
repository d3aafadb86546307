//! What `joj bench` shows. Top to bottom: the page and the table of a whole result; a file for each kind of row, with its part of
//! both; how rows are grouped.

pub mod page;
pub mod table;
pub mod many_writers;
pub mod initialisation;
pub mod pattern;
pub mod table_two;
pub mod groups;
