//! Which programs of several connections a test runs, and how thoroughly.
//!
//! `CRASH_GROUP_LENGTH=4` makes every program of four turns of the core, `CRASH_EXTRA=1000` adds so many of
//! four turns over all acts and moments at random, `CRASH_SAMPLES` and `CRASH_SEED` are those of one connection;
//! `CRASH_ONLY='A:Commit1@PhaseTwo B:Commit3'` runs that one program.

use std::collections::BTreeSet;
use std::env;

use super::acts::Terms;
use super::explore::{Explorer, Scene, Stats};
use super::flushes::Flushes;
use super::group::{GroupRecording, record_group};
use super::machine::Machine;
use super::plan::{effort, number, seed};
use super::turns::{ACTS, Act, Moment, Program, Turn};
use super::workload::{Synchronous, base_image};

/// Failures that are told before a test gives up.
const FAILURES_MAX: usize = 8;
/// SQLITE_BUSY: it was not done.
const BUSY: i32 = 5;

/// What a connection may do in one turn: an act, and where it stops.
pub type Choice = (Act, Option<Moment>);

/// What matters most to commits that share a flush.
pub const CORE: [Choice; 8] = [
    (Act::Commit1, None),
    (Act::Commit1, Some(Moment::Held)),
    (Act::Commit1, Some(Moment::PhaseTwo)),
    (Act::Commit1, Some(Moment::Flushed)),
    (Act::Passive, None),
    (Act::Passive, Some(Moment::CheckpointStart)),
    (Act::Passive, Some(Moment::CheckpointCopied)),
    (Act::Reset, None),
];

/// Every act with every moment.
pub fn all_choices() -> Vec<Choice> {
    let with_moments = |act: Act| {
        let moments = act.moments().iter().map(move |moment| (act, Some(*moment)));
        std::iter::once((act, None)).chain(moments)
    };
    ACTS.into_iter().flat_map(with_moments).collect()
}

/// Every program of `length` turns of `connections`, without those that equal another one: the connections come in
/// order, and a stop is of use only when another connection goes on.
pub fn every_program(choices: &[Choice], connections: usize, length: u64) -> Vec<Program> {
    let mut programs = vec![Vec::new()];
    for _ in 0..length {
        programs = programs.iter().flat_map(|turns| longer(turns, choices, connections)).collect();
    }
    let ends = |turns: &Vec<Turn>| turns.last().is_none_or(|turn| turn.until.is_none());
    programs.into_iter().filter(ends).map(Program).collect()
}

fn longer(turns: &[Turn], choices: &[Choice], connections: usize) -> Vec<Vec<Turn>> {
    let known = turns.iter().map(|turn| turn.who + 1).max().unwrap_or(0);
    let last = turns.last().filter(|turn| turn.until.is_some()).map(|turn| turn.who);
    let whos = (0..connections.min(known + 1)).filter(|who| Some(*who) != last);
    let with = |who| {
        choices.iter().map(move |(act, until)| {
            let turn = Turn { who, act: *act, until: *until };
            turns.iter().copied().chain([turn]).collect()
        })
    };
    whos.flat_map(with).collect()
}

/// The same programs after a commit of each connection: from then on all of them are open, and the lock changes hands.
pub fn warm(programs: Vec<Program>) -> Vec<Program> {
    let after = |program: Program| {
        let commit = |who| Turn { who, act: Act::Commit1, until: None };
        // The last one's commit is not the first turn's connection's.
        let commits = (0..program.connections().max(2)).map(commit);
        Program(commits.chain(program.0).collect())
    };
    programs.into_iter().map(after).collect()
}

/// `count` programs of four turns and a `Go` or none, seeded.
pub fn random_programs(connections: usize, count: u64) -> Vec<Program> {
    let choices = all_choices();
    let mut random = seed() ^ connections as u64;
    let mut below = move |limit: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(random >> 33).expect("31 bits") % limit
    };
    let mut programs = Vec::new();
    for _ in 0..count {
        let mut turns: Vec<Turn> = (0..4)
            .map(|_| {
                let who = below(connections);
                // Commits are half of it, and half of the acts stop.
                let commits = if below(2) == 0 { choices.len() } else { 12 };
                let (act, until) = choices[below(commits)];
                Turn { who, act, until }
            })
            .collect();
        if below(3) == 0 {
            let at = 1 + below(3);
            let turn = Turn { who: turns[at - 1].who, act: Act::Go, until: None };
            turns.insert(at + below(turns.len() - at), turn);
        }
        programs.push(Program(turns));
    }
    programs
}

/// The one program that `CRASH_ONLY` names.
pub fn only() -> Option<Program> {
    env::var("CRASH_ONLY").ok().map(|text| text.parse().expect("a program"))
}

/// The programs of a test: every one of up to `length` turns of the core (`CRASH_GROUP_LENGTH` replaces it) and `extra`
/// at random.
pub fn programs(connections: usize, length: u64, extra: u64) -> Vec<Program> {
    if let Some(only) = only() {
        return vec![only];
    }
    let length = match (length, connections) {
        (0, _) => 0,
        (_, 2) => number("CRASH_GROUP_LENGTH", length),
        // Three connections make ten times as many.
        _ => number("CRASH_GROUP_LENGTH", length).saturating_sub(1).max(length),
    };
    let lengths = 1..=length;
    let mut programs: Vec<Program> =
        lengths.flat_map(|length| every_program(&CORE, connections, length)).collect();
    programs.extend(random_programs(connections, if extra > 0 { number("CRASH_EXTRA", extra) } else { 0 }));
    programs
}

/// What a test looked at.
#[derive(Debug, Clone, Copy, Default)]
pub struct GroupStats {
    /// Programs.
    pub programs: u64,
    /// Commits with `synchronous=FULL` that were published.
    pub commits: u64,
    /// Of those, commits that were published before they were durable.
    pub deferred: u64,
    /// Of those, commits that shared their flush with another one.
    pub shared: u64,
    /// Acts that met BUSY.
    pub busy: u64,
    /// Of the explorer.
    pub explored: Stats,
}

/// What is wrong with a run in which nothing failed.
fn complaints(run: &GroupRecording) -> Vec<String> {
    let mut wrong = run.recording.wrong.clone();
    for outcome in &run.outcomes {
        if let Err(error) = &outcome.result
            && error.primary() != BUSY
        {
            wrong.push(format!("{} says {error}", outcome.turn));
        }
    }
    for commit in &run.commits {
        if let Err(error) = &commit.outcome {
            wrong.push(format!("COMMIT of {} says {error}", commit.txn));
        }
    }
    wrong
}

impl GroupStats {
    /// Counts what a run did.
    pub fn count(&mut self, run: &GroupRecording) {
        self.programs += 1;
        self.busy += run.outcomes.iter().filter(|outcome| outcome.result.is_err()).count() as u64;
        let flushes = Flushes::of(&run.recording.records);
        let mut covering = BTreeSet::new();
        for commit in run.commits.iter().filter(|commit| commit.full && commit.published_at.is_some()) {
            self.commits += 1;
            let covered_at = flushes.covering(commit);
            self.deferred += u64::from(covered_at >= commit.published_at);
            self.shared += u64::from(!covering.insert(covered_at));
        }
    }
}

/// Records each program on `machine`, recovers every state of it on each of `judges`, and panics with the programs that
/// break a promise.
pub fn hold_group(
    machine: &Machine,
    judges: Vec<&Machine>,
    programs: &[Program],
    terms: Terms,
) -> GroupStats {
    let mut explorer = Explorer::new(judges, effort());
    let base = base_image(machine, terms.page_bytes);
    let mut stats = GroupStats::default();
    let mut failures = Vec::new();
    for program in programs {
        let run = record_group(machine, &base, program, terms);
        stats.count(&run);
        let scene = scene(program, terms);
        let mut wrong = complaints(&run);
        wrong.extend(explorer.explore_scene(&scene, &run.recording).err().map(|failure| failure.to_string()));
        failures.extend(wrong.iter().map(|wrong| format!("{:?} {program}: {wrong}", machine.side)));
        if failures.len() >= FAILURES_MAX {
            break;
        }
    }
    stats.explored = explorer.stats;
    println!("{:?} {terms:?}: {stats:?}", machine.side);
    assert!(failures.is_empty(), "seed {}\n{}", seed(), failures.join("\n"));
    stats
}

/// What the explorer needs to know of a program.
pub fn scene(program: &Program, terms: Terms) -> Scene {
    let title = format!("{program} page_size={}", terms.page_bytes);
    Scene { title, page_bytes: terms.page_bytes, synchronous: Synchronous::Full }
}
