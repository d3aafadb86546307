//! Statistics and the result format of `joj`: bytes in, numbers out.
//!
//!   statistics -> key -> run -> environment -> row -> document -> compare; warnings judges a document, which
//! carries them. Otherwise a file uses only files to its left. No clock, no file, no process, no thread, no `unsafe`.

#![forbid(unsafe_code)]

pub mod statistics;

pub mod key;

pub mod run;

pub mod environment;

pub mod row;

pub mod document;

pub mod warnings;

pub mod compare;
