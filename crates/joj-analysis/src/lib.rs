//! Statistics and the result format of `joj`: bytes in, numbers out.
//!
//! A file uses only files below it. No clock, no file, no process, no thread, no `unsafe`.

#![forbid(unsafe_code)]

pub mod trace;
pub mod lab;
pub mod monitor;
pub mod filesystem;
pub mod bench;
pub mod statistics;
pub mod block_device;
mod words;
