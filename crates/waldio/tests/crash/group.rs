//! Goal: connections that share flushes lose nothing that was acknowledged to any of them.
//! Method: programs of two and three connections, each stopped inside of a commit or a checkpoint while others go on;
//! cut the power at each flush, in every state that it may leave; recover with waldio and with stock SQLite; what is
//! there must be a prefix of the order in which the write lock was given back, no older than what was acknowledged.

use crate::support::acts::Terms;
use crate::support::explore::Explorer;
use crate::support::group::record_group;
use crate::support::group_plan::{
    Choice, GroupStats, all_choices, every_program, hold_group, programs, random_programs, scene, warm,
};
use crate::support::machine::{Machine, Side};
use crate::support::plan::{effort, number};
use crate::support::turns::{Act, Moment, Program};
use crate::support::workload::base_image;

/// What the second connection does while the first has stopped, unless all acts are asked for.
const BESIDE: [Act; 6] = [Act::Commit1, Act::Spill, Act::Read, Act::Passive, Act::Reset, Act::Reopen];

fn group_holds(side: Side, programs: &[Program]) -> GroupStats {
    let machine = Machine::watched(side);
    let (judge, stock) = (Machine::new(side), Machine::new(Side::Stock));
    let judges = if side == Side::Stock { vec![&stock] } else { vec![&judge, &stock] };
    let terms = Terms { durable_reads: side.reads_durably(), ..Terms::default() };
    hold_group(&machine, judges, programs, terms)
}

/// Holds `programs`. Runs where each commit is flushed alone would prove nothing. On a machine that does much else few of them meet: those are
/// run again.
fn hold_with_shared(side: Side, programs: &[Program]) {
    const RUNS_MAX: u32 = 4;
    let mut stats = group_holds(side, programs);
    if crate::support::group_plan::only().is_some() {
        return;
    }
    for _ in 1..RUNS_MAX {
        if stats.shared == 0 {
            stats = group_holds(side, programs);
        }
    }
    assert!(stats.deferred > stats.commits / 4, "few commits were deferred: {stats:?}");
    assert!(stats.shared > 0, "no flush was shared: {stats:?}");
}

#[test]
fn stock_loses_nothing_of_several_connections() {
    group_holds(Side::Stock, &programs(2, 2, 20));
    group_holds(Side::Stock, &programs(3, 0, 10));
}

#[test]
fn flushes_lose_nothing_of_two_connections() {
    group_holds(Side::Flush, &programs(2, 2, 30));
}

#[test]
fn shared_flushes_lose_nothing_of_two_connections() {
    hold_with_shared(Side::Flush, &warm(programs(2, 3, 30)));
}

#[test]
fn shared_flushes_beside_durable_writes_lose_nothing() {
    hold_with_shared(Side::Fua, &warm(programs(2, 2, 30)));
}

#[test]
fn shared_flushes_lose_nothing_of_three_connections() {
    hold_with_shared(Side::Flush, &warm(programs(3, 2, 20)));
    hold_with_shared(Side::Fua, &warm(programs(3, 0, 20)));
}

#[test]
fn commits_and_checkpoints_stop_anywhere_beside_others() {
    let wide = number("CRASH_GROUP_LENGTH", 0) > 3;
    let beside = |program: &Program| match program.0[..] {
        [first, second] if first.until.is_some() => wide || BESIDE.contains(&second.act),
        _ => false,
    };
    let pairs = every_program(&all_choices(), 2, 2).into_iter().filter(beside).collect();
    hold_with_shared(Side::Flush, &warm(pairs));
}

#[test]
fn without_group_commit_no_commit_is_published_before_it_is_durable() {
    let stats = group_holds(Side::Apart, &warm(programs(2, 2, 0)));
    assert_eq!(stats.deferred, 0, "{stats:?}");
}

/// Commits in every stage of becoming durable, one that never does, and readers of them.
const READS: [Choice; 7] = [
    (Act::Read, None),
    (Act::Read, Some(Moment::Held)),
    (Act::Commit1, Some(Moment::Held)),
    (Act::Commit1, Some(Moment::PhaseTwo)),
    (Act::Commit1, Some(Moment::Flushed)),
    (Act::Loose, None),
    (Act::Passive, Some(Moment::CheckpointCopied)),
];

#[test]
fn what_a_durable_reader_saw_is_there_after_a_cut() {
    let reads = |program: &Program| program.0.iter().any(|turn| turn.act == Act::Read);
    let length = number("CRASH_GROUP_LENGTH", 2);
    let of = |connections, length| {
        let mut programs = every_program(&READS, connections, length);
        programs.retain(reads);
        warm(programs)
    };
    let stats = group_holds(Side::DurableReads, &of(2, length));
    assert!(stats.deferred > stats.commits / 4, "few commits were deferred: {stats:?}");
    group_holds(Side::DurableReadsFua, &of(2, length - 1));
    group_holds(Side::DurableReads, &of(3, length - 1));
    let wide = number("CRASH_EXTRA", 20);
    group_holds(Side::DurableReads, &warm(random_programs(3, wide)));
}

/// What a reader has seen of a shared commit may be taken by a power cut: that is what `durable_reads` is for, and the
/// judgement of it must notice.
#[test]
fn reader_sees_a_shared_commit_before_it_is_durable() {
    let (machine, judge) = (Machine::watched(Side::Flush), Machine::new(Side::Flush));
    let base = base_image(&machine, 4096);
    let program: Program = "A:Commit1 B:Commit1 A:Commit1@PhaseTwo B:Read".parse().expect("a program");
    let terms = Terms { durable_reads: true, ..Terms::default() };
    let run = record_group(&machine, &base, &program, terms);
    assert_eq!(run.recording.wrong, Vec::<String>::new());
    let outcome =
        Explorer::new(vec![&judge], effort()).explore_scene(&scene(&program, terms), &run.recording);
    println!("{}", outcome.expect_err("the reader's word is lost"));
}
