//! Block traces: capture, read, attribute, classify, summarise. What is here works on events alone, saved or live.

pub mod points;
pub mod export;
pub mod steps;
pub mod summary;
pub mod attribute;
mod barriers;
mod queued;
mod syncs;
mod works;
pub mod request;
mod files;
mod extents;
mod classify;
mod places;
pub mod histogram;
pub mod file_type;
pub mod layout;
pub mod import;
pub mod generate;
pub mod ftrace;
pub mod order;
pub mod class;
pub mod header;
pub mod event;
pub mod texts;
