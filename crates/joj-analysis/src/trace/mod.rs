//! Block traces: capture, read, attribute, classify, summarise. What is here works on events alone, saved or live.

pub mod order;
pub mod class;
pub mod header;
pub mod event;
pub mod texts;
