//! The half of `joj bench` that is measured, in a process of its own.
//!
//! ```text
//! serve -> a run of one kind -> workload, stopwatch
//!
//! serve                one task, one answer, end of process
//! many_writers         a run of many writers: prepares the database and starts them
//! page_transactions    commits of a recording, made again
//! mobibench            a test of `joj mobibench`
//! initialisation_run   a run of one way to initialise a log
//! io_run               a run of `--io`: records of a file
//! file_run             a run of block writes: write() + fsync()
//! pattern_run          a run of one log pattern, without SQLite
//! limit_run            the disk without SQLite: a guess before the plan, the limit beside its rows
//! lsmvbt               a run of a model of LS-MVBT, without SQLite
//! database_run         a run of one writer: prepare, measure, verify
//! crash                `joj lab crash`: who commits what is to be cut, and who judges what a cut left
//! libraries            SQLite and the extension, loaded and asked
//! stopwatch            the clock of a run, and all counters beside it
//! order                which record or row comes when: random, and the same in each run
//! workload             the SQL of the workloads
//! task                 what joj and its workers say to each other
//! ```

pub mod serve;
pub mod many_writers;
pub mod page_transactions;
pub mod mobibench;
pub mod initialisation_run;
pub mod io_run;
pub mod file_run;
pub mod pattern_run;
pub mod limit_run;
pub mod lsmvbt;
pub mod database_run;
pub mod crash;
pub mod libraries;
pub mod stopwatch;
pub mod order;
pub mod workload;
pub mod task;
