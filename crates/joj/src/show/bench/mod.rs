//! What `joj bench` shows: the page and the table of a result, then a file for each kind of row, with its part of both.
//!
//! ```text
//! page             a result as one HTML page
//! table            a result as text
//! verdict          a result in four sentences
//! many_writers     many writers on one database, with their plots
//! file_io          records of a file
//! initialisation   the ways to initialise a log
//! pattern          log patterns
//! table_two        Table 2 of the WALDIO paper
//! interval         intervals of rows, and what a ratio of two rows says
//! groups           which rows belong to one table or plot
//! ```

pub mod page;
pub mod table;
pub mod verdict;
pub mod many_writers;
pub mod file_io;
pub mod initialisation;
pub mod pattern;
pub mod table_two;
pub mod interval;
pub mod groups;
