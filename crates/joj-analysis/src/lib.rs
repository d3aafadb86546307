//! Statistics and the result format of `joj`: bytes in, numbers out.
//!
//! A file uses only files below it. No clock, no file, no process, no thread, no `unsafe`.

#![forbid(unsafe_code)]

pub mod compare;
pub mod warnings;
pub mod document;
pub mod contended;
pub mod row;
pub mod environment;
pub mod run;
pub mod key;
pub mod statistics;
