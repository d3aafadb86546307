//! Goal: nothing that stock SQLite survives loses, damages or changes anything with waldio, also where we did not think of it.
//! Method: programs from a seed, of two to four connections in one to three processes, stock and waldio, under kills, limits
//! and refused system calls, run on stock SQLite and with waldio side by side (`generator/engine.rs` says what must hold).
//!
//! `GENERATOR_SEED=N` runs that program alone, `GENERATOR_PROGRAMS=N` so many, `GENERATOR_SECONDS=N` goes on for so long with
//! new seeds from `GENERATOR_FIRST`; with `GENERATOR_ALL=1` past findings, and `GENERATOR_WITHOUT=sleep,fail` leaves out acts
//! that have one of these words, to look behind a finding. `GENERATOR_FILE=PATH` runs a program from a file, `GENERATOR_TRACE=1` tells each answer. A failure prints its
//! seed and the shortest program found that fails in the same way.

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]
#![allow(dead_code, reason = "the generator's other users use more of it")]

mod generator;
mod real;

use std::time::{Duration, Instant};

use generator::check::Judge;
use generator::engine::run;
use generator::make::make;
use generator::program::Program;
use generator::shrink::shrink;
use generator::verdict::Stats;
use generator::worker::at_work;

const WORKER: &str = "worker_process";
/// Programs of each of the two tests.
const PROGRAMS: u64 = 100;
/// Runs that shrinking may take.
const SHRINK_RUNS_MAX: usize = 250;

/// Not a test: the processes of all others are this one, run again.
#[test]
fn worker_process() {
    at_work(WORKER);
}

/// `GENERATOR_SHRINK=0` prints programs as they were made.
fn shrink_runs_max() -> usize {
    number("GENERATOR_SHRINK").map_or(SHRINK_RUNS_MAX, |runs| usize::try_from(runs).unwrap())
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// What is wrong with a program, in its shortest form; all failures are collected with `GENERATOR_ALL=1`.
fn finding(judge: &mut Judge, program: &Program, stats: &mut Stats) -> Option<String> {
    let failure = match run(WORKER, judge, program) {
        Ok(done) => {
            stats.add(done);
            return None;
        }
        Err(failure) => failure,
    };
    let again = |program: &Program| run(WORKER, judge, program).err();
    let (shortest, failure) = shrink(program, failure, shrink_runs_max(), again);
    Some(format!("{failure}\n\nthe shortest program found:\n{shortest}"))
}

/// Where a run that is bounded by time starts: elsewhere each time.
fn of_today() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    now.as_secs() * 1_000_000
}

/// Every second seed, from `first`.
fn explore(first: u64) {
    let mut judge = Judge::new(WORKER);
    let mut stats = Stats::default();
    if let Ok(path) = std::env::var("GENERATOR_FILE") {
        let program = Program::parse(&std::fs::read_to_string(path).unwrap());
        let found = if first == 0 { finding(&mut judge, &program, &mut stats) } else { None };
        return assert_eq!(found, None);
    }
    let end = number("GENERATOR_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let collects = number("GENERATOR_ALL").is_some();
    let only = number("GENERATOR_SEED");
    let without = std::env::var("GENERATOR_WITHOUT").unwrap_or_default();
    let without: Vec<&str> = without.split(',').filter(|word| !word.is_empty()).collect();
    let start = number("GENERATOR_FIRST").unwrap_or_else(|| if end.is_some() { of_today() } else { 0 });
    let count = number("GENERATOR_PROGRAMS").unwrap_or(PROGRAMS);
    let mut findings = Vec::new();
    for step in 0.. {
        let seed = only.unwrap_or(start + 2 * step + first);
        let over = end.map_or(step >= count, |end| Instant::now() > end);
        if over || only.is_some_and(|only| step > 0 || only % 2 != first) {
            break;
        }
        let mut program = make(seed);
        program.acts.retain(|act| !without.iter().any(|word| act.to_string().contains(word)));
        if let Some(what) = finding(&mut judge, &program, &mut stats) {
            let what = format!("GENERATOR_SEED={seed}: {what}");
            assert!(collects, "{what}");
            eprintln!("{what}");
            findings.push(seed);
        }
    }
    eprintln!("{stats:?}");
    assert_eq!(findings, [0; 0], "seeds that failed");
}

// Two tests for two cores.
#[test]
fn programs_of_even_seeds_do_what_stock_does() {
    explore(0);
}

#[test]
fn programs_of_odd_seeds_do_what_stock_does() {
    explore(1);
}
