//! Statistics and the result format of `joj`: bytes in, numbers out.
//!
//! A file uses only files below it. No clock, no file, no process, no thread, no `unsafe`.

#![forbid(unsafe_code)]

pub mod trace;
pub mod lab;
pub mod monitor;
pub mod compare;
pub mod warnings;
pub mod document;
pub mod study;
pub mod initialisation;
pub mod pattern;
pub mod table_two;
pub mod measurement;
pub mod contended;
pub mod row;
pub mod environment;
pub mod run;
pub mod durability;
pub mod key;
pub mod statistics;
