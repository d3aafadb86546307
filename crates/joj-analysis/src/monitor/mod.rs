//! What the machine did meanwhile: texts of /proc in, rates per interval out. A file uses only files below it.

pub mod document;
pub mod table;
pub mod summary;
pub mod sample;
pub mod reading;
pub mod proc;
pub mod quantity;
pub mod counter;
