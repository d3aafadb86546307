//! `joj bench --waldio-study`: its parts, one file each.

pub mod parts;
pub mod initialisation;
pub mod pattern;
pub mod table_two;
