//! What `joj bench` shows. Top to bottom: the page, one part for each kind of row; the tables; how rows are grouped.

pub mod page;
pub mod initialisation_page;
pub mod pattern_page;
pub mod table_two_page;
pub mod writers;
pub mod table;
pub mod contended_table;
pub mod initialisation_table;
pub mod pattern_table;
pub mod table_two_table;
pub mod groups;
