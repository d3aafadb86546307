//! Block traces: capture, read, attribute, classify, summarise. What is here works on events alone, saved or live.

pub mod points;
pub mod export;
pub mod steps;
pub mod summary;
pub mod attribution;
pub mod histogram;
pub mod file_type;
pub mod import;
pub mod generate;
pub mod ftrace;
pub mod order;
pub mod header;
pub mod event;
pub mod texts;
