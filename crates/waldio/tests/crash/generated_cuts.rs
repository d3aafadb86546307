//! Goal: an acknowledged commit under FULL or EXTRA survives every power cut, and nothing is ever corrupt, whatever
//! several connections with options of their own did before, waldio's and stock's side by side.
//! Method: programs from a seed on the simulated disk, the power cut at each flush in every state that it can leave
//! (`generator/cuts.rs`).
//!
//! `GENERATOR_SEED`, `GENERATOR_PROGRAMS`, `GENERATOR_SECONDS`, `GENERATOR_FIRST`, `GENERATOR_ALL` and `GENERATOR_FILE` as in
//! generator_real.rs; CRASH_SAMPLES looks at more states of each cut.

use std::time::{Duration, Instant};

use crate::generator::cut_programs::make;
use crate::generator::cuts::Lab;
use crate::generator::program::Program;
use crate::generator::shrink::shrink;
use crate::generator::verdict::{Failure, Kind};
use crate::support::explore::Stats;

/// Programs of each of the two tests.
const PROGRAMS: u64 = 30;
/// Runs that shrinking may take.
const SHRINK_RUNS_MAX: usize = 150;

/// `GENERATOR_SHRINK=0` prints programs as they were made.
fn shrink_runs_max() -> usize {
    number("GENERATOR_SHRINK").map_or(SHRINK_RUNS_MAX, |runs| usize::try_from(runs).unwrap())
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn failure(lab: &Lab, program: &Program, stats: &mut Stats) -> Option<Failure> {
    let act = program.acts.len();
    lab.finding(program, stats).map(|text| Failure { kind: Kind::Lost, act, text })
}

fn finding(lab: &Lab, program: &Program, stats: &mut Stats) -> Option<String> {
    let first = failure(lab, program, stats)?;
    let again = |program: &Program| failure(lab, program, stats);
    let (shortest, failure) = shrink(program, first, shrink_runs_max(), again);
    Some(format!("{}\n\nthe shortest program found:\n{shortest}", failure.text))
}

/// Where a run that is bounded by time starts: elsewhere each time.
fn of_today() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    now.as_secs() * 1_000_000
}

/// Every second seed, from `first`.
fn explore(first: u64) {
    let lab = Lab::new();
    let mut stats = Stats::default();
    if let Ok(path) = std::env::var("GENERATOR_FILE") {
        let program = Program::parse(&std::fs::read_to_string(path).unwrap());
        let found = if first == 0 { finding(&lab, &program, &mut stats) } else { None };
        return assert_eq!(found, None);
    }
    let end = number("GENERATOR_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let (only, collects) = (number("GENERATOR_SEED"), number("GENERATOR_ALL").is_some());
    let start = number("GENERATOR_FIRST").unwrap_or_else(|| if end.is_some() { of_today() } else { 0 });
    let count = number("GENERATOR_PROGRAMS").unwrap_or(PROGRAMS);
    let mut findings = Vec::new();
    for step in 0.. {
        let seed = only.unwrap_or(start + 2 * step + first);
        let over = end.map_or(step >= count, |end| Instant::now() > end);
        if over || only.is_some_and(|only| step > 0 || only % 2 != first) {
            break;
        }
        if let Some(what) = finding(&lab, &make(seed), &mut stats) {
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
fn programs_of_even_seeds_lose_nothing_at_a_cut() {
    explore(0);
}

#[test]
fn programs_of_odd_seeds_lose_nothing_at_a_cut() {
    explore(1);
}
