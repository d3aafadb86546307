//! Which workloads a test runs, and how thoroughly: by default little enough for every build, more by environment.
//!
//! `CRASH_LENGTH=3` makes every sequence of three steps, `CRASH_EXTRA=1000` adds so many longer ones at random,
//! `CRASH_SAMPLES=64` looks at more states of each cut, `CRASH_SEED=2` at others, and `CRASH_AGAIN=1` cuts the recovery of
//! each one as well.
//! `CRASH_ONLY=Commit1,Reset` runs that one sequence, which is how a failure is looked at again.

use std::env;

use blockio::simulated::crash_states::Bounds;

use super::explore::{Effort, Explorer, Stats};
use super::machine::Machine;
use super::workload::{Step, Synchronous, Workload, base_image, record};

/// A number from the environment.
pub fn number(name: &str, default: u64) -> u64 {
    env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The usual effort.
pub fn effort() -> Effort {
    let samples = number("CRASH_SAMPLES", 4);
    let bounds = Bounds { exhaustive_units_max: 12, combinations_max: samples * 8, samples, seed: seed() };
    Effort { bounds, second_crash_every: number("CRASH_AGAIN", 800), system_every: 500 }
}

/// Where random choices start.
pub fn seed() -> u64 {
    number("CRASH_SEED", 1)
}

/// Every sequence of `length` steps out of `steps` (`CRASH_LENGTH` replaces it), then `extra` of four, seeded.
pub fn sequences(steps: &[Step], length: u64, extra: u64) -> Vec<Vec<Step>> {
    if let Ok(only) = env::var("CRASH_ONLY") {
        let find = |name: &str| steps.iter().copied().find(|step| format!("{step:?}") == name.trim());
        return vec![only.split(',').map(|name| find(name).expect("the name of a step")).collect()];
    }
    let mut sequences: Vec<Vec<Step>> = vec![Vec::new()];
    for _ in 0..number("CRASH_LENGTH", length) {
        let longer = |sequence: &Vec<Step>| {
            let sequence = sequence.clone();
            steps.iter().map(move |step| sequence.iter().copied().chain([*step]).collect())
        };
        sequences = sequences.iter().flat_map(longer).collect();
    }
    let mut random = seed();
    for _ in 0..number("CRASH_EXTRA", extra) {
        let mut step = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            steps[usize::try_from(random >> 33).expect("31 bits") % steps.len()]
        };
        sequences.push((0..4).map(|_| step()).collect());
    }
    sequences
}

/// Records each sequence on `machine`, recovers every state of it on each of `judges`, and panics at the first that breaks a
/// promise.
pub fn hold(
    machine: &Machine,
    judges: Vec<&Machine>,
    sequences: Vec<Vec<Step>>,
    page_bytes: u32,
    synchronous: Synchronous,
) -> Stats {
    let mut explorer = Explorer::new(judges, effort());
    let base = base_image(machine, page_bytes);
    for steps in sequences {
        let workload = Workload { steps, page_bytes, synchronous };
        let recording = record(machine, &base, &workload, None);
        for outcome in &recording.outcomes {
            assert_eq!(*outcome, Ok(()), "a step failed without a fault: {workload}");
        }
        if let Err(failure) = explorer.explore(&workload, &recording) {
            panic!("{failure}\n  seed {}", seed());
        }
    }
    println!("{page_bytes} {synchronous:?}: {:?}", explorer.stats);
    explorer.stats
}
