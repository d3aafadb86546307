//! Goal: what once lost data, hung or differed does so no more.
//! Method: each named program of `generator/named.rs` runs on the system's SQLite and with waldio side by side, as the
//! generator runs its own (`generator/engine.rs` says what must hold).

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]
#![allow(dead_code, reason = "the generator's other users use more of it")]

mod generator;
mod real;

use generator::check::Judge;
use generator::engine::run;
use generator::named::named;
use generator::program::Program;
use generator::worker::at_work;

const WORKER: &str = "worker_process";

/// Not a test: the processes of all others are this one, run again.
#[test]
fn worker_process() {
    at_work(WORKER);
}

#[track_caller]
fn holds(name: &str) {
    let program = Program::parse(named(name));
    if let Err(failure) = run(WORKER, &mut Judge::new(WORKER), &program) {
        panic!("{name}: {failure}\n\n{program}");
    }
}

#[test]
fn exclusive_rollback_leaves_nothing() {
    holds("exclusive_rollback");
}
