//! What the machine did meanwhile: texts of /proc in, rates per interval out. A file uses only files below it.

pub mod document;
pub mod table;
pub mod summary;
pub mod sample;
pub mod reading;
pub mod stat;
pub mod meminfo;
pub mod diskstats;
pub mod net_dev;
pub mod interrupts;
pub mod quantity;
pub mod counter;
pub mod proc_text;
