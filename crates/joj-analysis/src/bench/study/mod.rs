//! `joj bench --waldio-study`: its parts. Top to bottom:
//!
//! ```text
//! parts            which parts there are, and the rows of all of them
//! initialisation   part `init`: what it costs to make a log ready ahead of its commits
//! pattern          part `alignment`: how frames may lie on the disk, and what writing them costs
//! table_two        part `table2`: the paper's Table 2 through SQLite as it is today
//! durability       the three ways of the paper to make a write to a log durable
//! ```

pub mod parts;
pub mod initialisation;
pub mod pattern;
pub mod table_two;
pub mod durability;
