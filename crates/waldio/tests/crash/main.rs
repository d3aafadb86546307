//! What crashes leave on the simulated disk. One program: what its tests share is compiled once, and nothing of it is of the
//! whole process.
//!
//! ```text
//! plan: which workload -> record: each write, flush and sync -> explore: cut, choose a state, recover, judge
//! ```
//!
//! stock           SQLite alone: the harness finds nothing where nothing is wrong
//! planted_stock   bugs of a disk or of SQLite's calls: it finds them
//! sides           one connection, each way to make commits durable;  database_sync  the database behind a checkpoint
//! embedded        the embedded layout;  delayed_flush  `waldio_durability=bounded`
//! group           two and three connections, each stopped in the midst of a commit;  group_many  threads
//! faults          an error of the disk at each operation;  group_faults  of a shared flush
//! named_cuts      programs of several connections that once failed;  generated_cuts  from a seed

mod database_sync;
mod delayed_flush;
mod embedded;
mod faults;
#[allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]
mod generated_cuts;
mod group;
mod group_faults;
mod group_many;
#[allow(clippy::unwrap_used, reason = "as above")]
mod named_cuts;
mod planted_stock;
mod sides;
mod stock;

#[allow(clippy::unwrap_used, dead_code, reason = "it belongs to the generator, of which others use more")]
#[path = "../real/chance.rs"]
mod chance;
#[allow(clippy::unwrap_used, dead_code, reason = "as above")]
#[path = "../generator"]
mod generator {
    //! The part of the generator that needs no processes.
    pub mod cut_programs;
    pub mod cuts;
    pub mod program;
    pub mod shrink;
    pub mod verdict;
}
#[path = "../support/mod.rs"]
mod support;
