//! What `joj bench` measured, and what follows from it. Top to bottom:
//!
//! ```text
//! compare        two results side by side
//! verdict        what a result says of waldio on this disk
//! warnings       what a reader must know of a result, with its remedy
//! document       the whole result, as its JSON file has it
//! study          rows of --waldio-study: what the WALDIO paper measured
//! io             file I/O without SQLite
//! measurement    runs of one step without SQLite, and their sums
//! many_writers   rows of many writers on one database: what each of them got, how long it waited
//! row            a row of one writer: its runs, their sums, the ratio to stock WAL
//! promise        places where a COMMIT is not worth what it is on a disk: memory, networks, layers
//! environment    the machine, the builds and the directory that it was measured with
//! pairs          runs of two rows side by side, where the disk was alike
//! run            the figures of one run, as the worker sends them
//! key            what a row measures: the words of the plan, the table and the file
//! ```

pub mod compare;
pub mod verdict;
pub mod warnings;
pub mod document;
pub mod study;
pub mod io;
pub mod measurement;
pub mod many_writers;
pub mod row;
pub mod promise;
pub mod environment;
pub mod pairs;
pub mod run;
pub mod key;
